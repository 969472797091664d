//! Baseline++ of "A Closer Look at Few-shot Classification": a cosine classifier over all training classes; for each task
//! a new one is fitted to the labelled samples.

use gpn_model::{CosineFit, CosineHead, HeadPass, TensorList, Update, Weights, fit_cosine_head};

use super::{Episode, EpisodePass, Lessons, Method, MethodKind, TestTask, highest_of_rows};
use crate::error::TrainError;

pub(super) const KIND: MethodKind = MethodKind {
    name: "baseline++",
    title: "Closer Look (Baseline++)",
    about: "a cosine classifier over all training classes; its head is fitted anew to the labelled samples of each task",
    tunes_lambda: false,
    adjust: |_| {},
    values: |_, _| Some(0),
    make: |config, dim, classes| {
        let (fit, seed) = (config.baseline, config.train.seed);
        Ok(Box::new(Baseline { head: CosineHead::new(dim, classes, fit.scale, seed)?, fit, seed }))
    },
};

struct Baseline {
    /// Over all training classes.
    head: CosineHead,
    fit: CosineFit,
    seed: u64,
}

impl Method for Baseline {
    fn lessons(&self) -> Lessons {
        Lessons::Batches
    }

    fn learn(&mut self, _episode: &Episode<'_>) -> Result<EpisodePass, TrainError> {
        unreachable!("invariant: a trainer gives no tasks to a method that learns from batches")
    }

    fn learn_batch(&mut self, embeddings: &[f32], labels: &[usize]) -> Option<Result<HeadPass, TrainError>> {
        Some(self.head.forward_backward(embeddings, labels).map_err(TrainError::from))
    }

    fn answers_by_prototypes(&self) -> bool {
        false
    }

    fn answer(&self, task: &TestTask<'_>, lambdas: &[f32]) -> Result<Vec<Vec<usize>>, TrainError> {
        let answers = task.shots.len();
        let fitted = fit_cosine_head(&task.support, &task.support_labels(), answers, self.fit, self.seed)?;
        let logits = fitted.logits(&task.queries)?;
        Ok(vec![highest_of_rows(&logits, answers, answers); lambdas.len()])
    }

    fn state(&self) -> TensorList {
        self.head.parameters().clone()
    }

    fn load(&mut self, weights: &Weights) -> Result<(), TrainError> {
        Ok(self.head.load(weights)?)
    }

    fn updates(&mut self) -> Vec<Update<'_>> {
        self.head.updates()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::memory::Memory;

    #[test]
    fn separable_labelled_samples_are_told_apart_without_fault() {
        let method = (KIND.make)(&Config::default(), 4, 7).unwrap();
        // Three classes, each along an axis of its own, two samples of each; the queries are the samples again.
        let support: Vec<f32> = [0, 0, 1, 1, 2, 2]
            .iter()
            .enumerate()
            .flat_map(|(sample, &class)| {
                let mut values = [0.1 + 0.05 * sample as f32; 4];
                values[class] += 1.0;
                values
            })
            .collect();
        let memory = Memory::default();
        let task = TestTask {
            queries: support.clone(),
            support,
            shots: vec![2; 3],
            dim: 4,
            way: 3,
            surroundings: None,
            memory: &memory,
        };
        assert_eq!(method.answer(&task, &[0.0]).unwrap(), [[0, 0, 1, 1, 2, 2]]);
    }
}
