//! Prototypical Networks: nearest mean of embeddings, trained on tasks.

use super::by_prototypes::ByPrototypes;
use super::{Episode, EpisodePass, Method, MethodKind, TestTask};
use crate::error::TrainError;

pub(super) const KIND: MethodKind = MethodKind {
    name: "protonet",
    title: "Prototypical Network",
    about: "nearest mean of embeddings, no class graph; schedule.auxiliary=false trains it on tasks alone",
    tunes_lambda: false,
    adjust: |_| {},
    values: |_, _| Some(0),
    make: |config, _, _| Ok(Box::new(ProtoNet { loss: config.into() })),
};

struct ProtoNet {
    loss: ByPrototypes,
}

impl Method for ProtoNet {
    fn learn(&mut self, episode: &Episode<'_>) -> Result<EpisodePass, TrainError> {
        self.loss.learn(episode)
    }

    fn answer(&self, task: &TestTask<'_>, lambdas: &[f32]) -> Result<Vec<Vec<usize>>, TrainError> {
        Ok(vec![task.nearest(&task.prototypes()); lambdas.len()])
    }
}
