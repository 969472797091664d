//! The graph prior: the posterior of each class mean, given its samples and its relatives.

use std::sync::Arc;

use super::by_prototypes::ByPrototypes;
use super::{Episode, EpisodePass, Method, MethodKind, Needs, TestTask};
use crate::error::{ModelError, Result};
use crate::prior::{Posterior, PriorConfig, PriorModel, TrainingSamples};
use crate::tensors::{TensorInfo, TensorList};
use crate::weights::Weights;

pub(super) const KIND: MethodKind = MethodKind {
    name: "prior",
    title: "Graph prior",
    about: "posterior of each class mean given its samples and its relatives, in closed form; trained as a Prototypical Network",
    tunes_lambda: false,
    needs: Needs::NOTHING,
    // It is made empty, and takes what the file holds.
    values: |_, _| Some(0),
    make: |settings, dim, classes| {
        Ok(Box::new(Prior {
            dim,
            classes,
            loss: settings.into(),
            config: settings.prior.clone(),
            fitted: None,
        }))
    },
};

/// The posterior of each answer. Classes of known place go together; beside texts, and for "other", each goes alone.
fn posteriors(model: &PriorModel, task: &TestTask<'_>) -> Result<Vec<Posterior>> {
    let mut rest = &task.support[..];
    let mut samples: Vec<&[f32]> = Vec::with_capacity(task.shots.len());
    for &shot in &task.shots {
        let (own, others) = rest.split_at(shot * task.dim);
        samples.push(own);
        rest = others;
    }
    let has_text = task.texts.iter().any(Option::is_some);
    let joint = match task.known {
        Some(known) if !has_text => model.prior().of_all(known, &task.classes),
        _ => None,
    };
    let mut posteriors: Vec<Posterior> = Vec::with_capacity(samples.len());
    if let Some(joint) = joint {
        let own = &samples[..task.classes.len()];
        let own: Vec<Vec<f32>> =
            own.iter().map(|samples| model.metric().apply(samples)).collect::<Result<_>>()?;
        let own: Vec<&[f32]> = own.iter().map(Vec::as_slice).collect();
        posteriors = model.prior().posteriors(&joint, &own)?;
    }
    for (answer, own) in samples.iter().enumerate().skip(posteriors.len()) {
        let place = task.known.zip(task.classes.get(answer).copied());
        let text = task.texts.get(answer).and_then(Option::as_deref);
        posteriors.push(model.posterior(&model.prior_of(place, text)?, own)?);
    }
    Ok(posteriors)
}

struct Prior {
    dim: usize,
    /// Training classes.
    classes: usize,
    loss: ByPrototypes,
    config: PriorConfig,
    /// What was fitted after training.
    fitted: Option<Arc<PriorModel>>,
}

impl Method for Prior {
    fn learn(&mut self, episode: &Episode<'_>) -> Result<EpisodePass> {
        self.loss.learn(episode)
    }

    fn is_fitted_to_samples(&self) -> bool {
        true
    }

    fn fit(&mut self, training: &TrainingSamples<'_>) -> Result<()> {
        self.fitted = Some(Arc::new(PriorModel::fit(training, &self.config)?));
        Ok(())
    }

    fn prior(&self) -> Option<&Arc<PriorModel>> {
        self.fitted.as_ref()
    }

    fn set_prior(&mut self, prior: PriorModel) {
        self.fitted = Some(Arc::new(prior));
    }

    fn answer(&self, task: &TestTask<'_>, lambdas: &[f32]) -> Result<Vec<Vec<usize>>> {
        let distances = self.distances(task)?;
        let answers = task.shots.len();
        let nearest = |row: &[f32]| {
            let mut best = 0;
            for (answer, distance) in row.iter().enumerate() {
                if *distance < row[best] {
                    best = answer;
                }
            }
            best
        };
        Ok(vec![distances.chunks_exact(answers).map(nearest).collect(); lambdas.len()])
    }

    fn distances(&self, task: &TestTask<'_>) -> Result<Vec<f32>> {
        let model = self.fitted.as_ref().ok_or(ModelError::NotFitted { method: KIND.name })?;
        let posteriors = posteriors(model, task)?;
        let queries = model.metric().apply(&task.queries)?;
        let of_query = |query: &[f32]| -> Vec<f32> {
            let temperature = model.temperature();
            posteriors.iter().map(|posterior| temperature * model.distance(query, posterior)).collect()
        };
        Ok(queries.chunks_exact(task.dim).flat_map(of_query).collect())
    }

    fn state(&self) -> TensorList {
        let tensors = self.fitted.as_ref().map_or_else(Vec::new, |fitted| fitted.to_tensors());
        let infos =
            tensors.iter().map(|(name, shape, _)| TensorInfo { name: (*name).into(), shape: shape.clone() });
        let infos = infos.collect();
        TensorList::new(infos, |index, _| tensors[index].2.clone())
    }

    fn load(&mut self, weights: &Weights) -> Result<()> {
        let tensors: Vec<_> = weights.iter().collect();
        let find = |name: &str| {
            tensors.iter().find(|tensor| tensor.name == name).map(|tensor| (tensor.shape, tensor.values))
        };
        let fitted = PriorModel::from_tensors(self.dim, find)?;
        if let Some(got) =
            fitted.as_ref().map(|fitted| fitted.statistics().len()).filter(|&got| got != self.classes)
        {
            let expected = format!("a row for each of the {} training classes", self.classes);
            return Err(ModelError::WrongLength { what: "prior.means", expected, got });
        }
        self.fitted = fitted.map(Arc::new);
        Ok(())
    }
}
