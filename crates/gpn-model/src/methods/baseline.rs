//! Baseline++ of "A Closer Look at Few-shot Classification": a cosine classifier over all training classes; for each task
//! a new one is fitted to the labelled samples.

use super::{Episode, EpisodePass, LearnsFrom, Method, MethodKind, Needs, TestTask, highest_of_rows};
use crate::cosine_fit::{CosineFit, fit_cosine_head};
use crate::cosine_head::CosineHead;
use crate::error::Result;
use crate::head::HeadPass;
use crate::optim::Update;
use crate::tensors::TensorList;
use crate::trainable::Trainable;
use crate::weights::Weights;

pub(super) const KIND: MethodKind = MethodKind {
    name: "baseline++",
    title: "Closer Look (Baseline++)",
    about: "a cosine classifier over all training classes; its head is fitted anew to the labelled samples of each task",
    tunes_lambda: false,
    needs: Needs::NOTHING,
    values: |_, _| Some(0),
    make: |settings, dim, classes| {
        let (fit, seed) = (settings.baseline, settings.seed);
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
    fn learns_from(&self) -> LearnsFrom {
        LearnsFrom::Batches
    }

    fn learn(&mut self, _episode: &Episode<'_>) -> Result<EpisodePass> {
        unreachable!("invariant: a trainer gives no tasks to a method that learns from batches")
    }

    fn learn_batch(&mut self, embeddings: &[f32], labels: &[usize]) -> Option<Result<HeadPass>> {
        Some(self.head.forward_backward(embeddings, labels))
    }

    fn answers_by_prototypes(&self) -> bool {
        false
    }

    fn answer(&self, task: &TestTask<'_>, lambdas: &[f32]) -> Result<Vec<Vec<usize>>> {
        let answers = task.shots.len();
        let fitted = fit_cosine_head(&task.support, &task.support_labels(), answers, self.fit, self.seed)?;
        let logits = fitted.logits(&task.queries)?;
        Ok(vec![highest_of_rows(&logits, answers, answers); lambdas.len()])
    }

    fn state(&self) -> TensorList {
        self.head.parameters().clone()
    }

    fn load(&mut self, weights: &Weights) -> Result<()> {
        self.head.load(weights)
    }

    fn updates(&mut self) -> Vec<Update<'_>> {
        self.head.updates()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;
    use crate::methods::MethodSettings;

    #[test]
    fn separable_labelled_samples_are_told_apart_without_fault() {
        let method = (KIND.make)(&MethodSettings::default(), 4, 7).unwrap();
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
            neighbourhood: None,
            memory: &memory,
            classes: vec![0, 1, 2],
            known: None,
            texts: Vec::new(),
        };
        assert_eq!(method.answer(&task, &[0.0]).unwrap(), [[0, 0, 1, 1, 2, 2]]);
    }
}
