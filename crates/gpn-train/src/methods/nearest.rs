//! Nearest prototype on frozen embeddings, with nothing learned.

use super::{Episode, EpisodePass, Lessons, Method, MethodKind, TestTask};
use crate::error::TrainError;

pub(super) const KIND: MethodKind = MethodKind {
    name: "nearest",
    title: "Nearest prototype, nothing learned",
    about: "nearest mean of embeddings as they are given; of images, of their pixels",
    tunes_lambda: false,
    adjust: |config| config.model.backbone = gpn_model::BackboneKind::Identity.to_string(),
    values: |_, _| Some(0),
    make: |_, _, _| Ok(Box::new(Nearest)),
};

struct Nearest;

impl Method for Nearest {
    fn lessons(&self) -> Lessons {
        Lessons::Nothing
    }

    fn learn(&mut self, _episode: &Episode<'_>) -> Result<EpisodePass, TrainError> {
        unreachable!("invariant: a trainer gives no lessons to a method that learns from nothing")
    }

    fn answer(&self, task: &TestTask<'_>, lambdas: &[f32]) -> Result<Vec<Vec<usize>>, TrainError> {
        Ok(vec![task.nearest(&task.prototypes()); lambdas.len()])
    }
}
