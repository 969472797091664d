//! Prototypical Networks: nearest mean of embeddings, trained on tasks.

use super::by_prototypes::ByPrototypes;
use super::{Episode, EpisodePass, Method, MethodKind, Needs, TestTask};
use crate::error::Result;

pub(super) const KIND: MethodKind = MethodKind {
    name: "protonet",
    title: "Prototypical Network",
    about: "nearest mean of embeddings, no class graph; schedule.auxiliary=false trains it on tasks alone",
    tunes_lambda: false,
    needs: Needs::NOTHING,
    values: |_, _| Some(0),
    make: |settings, _, _| Ok(Box::new(ProtoNet { loss: settings.into() })),
};

struct ProtoNet {
    loss: ByPrototypes,
}

impl Method for ProtoNet {
    fn learn(&mut self, episode: &Episode<'_>) -> Result<EpisodePass> {
        self.loss.learn(episode)
    }

    fn answer(&self, task: &TestTask<'_>, lambdas: &[f32]) -> Result<Vec<Vec<usize>>> {
        Ok(vec![task.nearest(&task.prototypes()); lambdas.len()])
    }
}
