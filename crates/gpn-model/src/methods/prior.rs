//! The graph prior: the posterior of each class mean, given its samples and its relatives.

use std::sync::Arc;

use gpn_taxonomy::Taxonomy;

use super::by_prototypes::ByPrototypes;
use super::{Episode, EpisodePass, Method, MethodKind, Needs, TestTask};
use crate::error::{ModelError, Result};
use crate::memory::accuracy;
use crate::prior::{LearnBy, Lesson, Posterior, PriorConfig, PriorModel, TrainingSamples};
use crate::tensors::{TensorInfo, TensorList};
use crate::weights::Weights;

pub(super) const KIND: MethodKind = MethodKind {
    name: "prior",
    title: "Graph prior",
    about: "posterior of each class mean given its samples and its relatives, in closed form",
    tunes_lambda: false,
    needs: Needs { posteriors: true, ..Needs::NOTHING },
    // It is made empty, and takes what the file holds.
    values: |_, _| Some(0),
    make: |settings, dim, classes| {
        Ok(Box::new(Prior {
            dim,
            classes,
            loss: settings.into(),
            config: settings.prior.clone(),
            seed: settings.seed,
            through_prototypes: settings.through_prototypes,
            graph: None,
            fitted: None,
            lesson: None,
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
    seed: u64,
    through_prototypes: bool,
    /// The graph of training classes, where tasks are learned from by posteriors.
    graph: Option<Arc<Taxonomy>>,
    /// What was fitted last: after training, and at each refresh where tasks are learned from by posteriors.
    fitted: Option<Arc<PriorModel>>,
    /// What training tasks are answered with, from the first task after a fit.
    lesson: Option<Lesson>,
}

impl Prior {
    fn set(&mut self, fitted: Option<Arc<PriorModel>>) {
        (self.fitted, self.lesson) = (fitted, None);
    }

    fn learn_by_posteriors(&mut self, episode: &Episode<'_>) -> Result<Option<EpisodePass>> {
        let (Some(graph), Some(model), Some(around)) = (&self.graph, &self.fitted, episode.neighbourhood)
        else {
            return Ok(None);
        };
        let lesson = self.lesson.get_or_insert_with(|| Lesson::new(model, graph, self.seed));
        let (of_classes, of_rest) =
            episode.support.split_at(episode.shape.way * episode.shape.shot * episode.dim);
        let mut support: Vec<&[f32]> = of_classes.chunks_exact(episode.shape.shot * episode.dim).collect();
        support.extend((!of_rest.is_empty()).then_some(of_rest));
        let classes = &around.classes[..around.targets()];
        let mut pass = lesson.learn(model, classes, &support, episode.queries, episode.labels)?;
        if !self.through_prototypes {
            pass.grad_support.fill(0.0);
        }
        Ok(Some(EpisodePass {
            loss: pass.loss,
            accuracy: accuracy(&pass.logits, episode.labels),
            grad_support: pass.grad_support,
            grad_queries: pass.grad_queries,
        }))
    }
}

impl Method for Prior {
    fn hops(&self) -> Option<usize> {
        // The classes of a task are asked for, not those around them.
        self.is_refitted().then_some(0)
    }

    fn learn(&mut self, episode: &Episode<'_>) -> Result<EpisodePass> {
        match self.learn_by_posteriors(episode)? {
            Some(pass) => Ok(pass),
            None => self.loss.learn(episode),
        }
    }

    fn is_refitted(&self) -> bool {
        self.config.learn_by == LearnBy::Posteriors
    }

    fn take_graph(&mut self, graph: &Arc<Taxonomy>) {
        self.graph = self.is_refitted().then(|| graph.clone());
    }

    fn is_fitted_to_samples(&self) -> bool {
        true
    }

    fn fit(&mut self, training: &TrainingSamples<'_>) -> Result<()> {
        self.set(Some(Arc::new(PriorModel::fit(training, &self.config)?.as_stored()?)));
        Ok(())
    }

    fn prior(&self) -> Option<&Arc<PriorModel>> {
        self.fitted.as_ref()
    }

    fn set_prior(&mut self, prior: Arc<PriorModel>) {
        self.set(Some(prior));
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
        self.set(fitted.map(Arc::new));
        Ok(())
    }
}
