//! Nearest prototype on frozen embeddings, with nothing learned.

use super::{Episode, EpisodePass, LearnsFrom, Method, MethodKind, Needs, TestTask};
use crate::error::Result;

pub(super) const KIND: MethodKind = MethodKind {
    name: "nearest",
    title: "Nearest prototype, nothing learned",
    about: "nearest mean of embeddings as they are given; of images, of their pixels",
    tunes_lambda: false,
    needs: Needs { given_embeddings: true, ..Needs::NOTHING },
    values: |_, _| Some(0),
    make: |_, _, _| Ok(Box::new(Nearest)),
};

struct Nearest;

impl Method for Nearest {
    fn learns_from(&self) -> LearnsFrom {
        LearnsFrom::Nothing
    }

    fn learn(&mut self, _episode: &Episode<'_>) -> Result<EpisodePass> {
        unreachable!("invariant: a trainer gives nothing to learn to a method that learns from nothing")
    }

    fn answer(&self, task: &TestTask<'_>, lambdas: &[f32]) -> Result<Vec<Vec<usize>>> {
        Ok(vec![task.nearest(&task.prototypes()); lambdas.len()])
    }
}
