//! The Gated Propagation Network: prototypes of related classes, weighed by attention and gated.

use gpn_model::{Propagator, TensorList, Update, Weights};

use super::by_prototypes::ByPrototypes;
use super::{Episode, EpisodePass, Method, MethodKind, Refined, TestTask, nearest_refined};
use crate::error::TrainError;
use crate::pathways::{SpanningTree, Surroundings};

pub(super) const KIND: MethodKind = MethodKind {
    name: "gpn",
    title: "GPN",
    about: "gated propagation of prototypes over the class graph, several steps and heads",
    tunes_lambda: true,
    adjust: |_| {},
    make: |config, dim, _| {
        Ok(Box::new(Gpn {
            propagator: Propagator::new(config.propagation.clone(), dim, config.train.seed)?,
            tree: config.pathways.spanning_tree,
            loss: config.into(),
        }))
    },
};

struct Gpn {
    propagator: Propagator,
    tree: SpanningTree,
    loss: ByPrototypes,
}

impl Method for Gpn {
    fn hops(&self) -> Option<usize> {
        Some(self.propagator.config().steps)
    }

    fn learn(&mut self, episode: &Episode<'_>) -> Result<EpisodePass, TrainError> {
        let tree = self.tree;
        self.loss.learn_propagated(episode, &mut self.propagator, |surroundings, nodes| {
            surroundings.thinned(tree, nodes)
        })
    }

    fn refine(&self, surroundings: &Surroundings, nodes: &[f32]) -> Option<Refined> {
        let graph = surroundings.thinned(self.tree, nodes);
        let tape = self.propagator.forward(&graph, nodes);
        Some(Refined { prototypes: tape.result(&graph).to_vec(), influences: tape.influences() })
    }

    fn answer(&self, task: &TestTask<'_>, lambdas: &[f32]) -> Result<Vec<Vec<usize>>, TrainError> {
        Ok(nearest_refined(self, task, lambdas))
    }

    fn state(&self) -> TensorList {
        self.propagator.parameters().clone()
    }

    fn load(&mut self, weights: &Weights) -> Result<(), TrainError> {
        Ok(self.propagator.load(weights)?)
    }

    fn updates(&mut self) -> Vec<Update<'_>> {
        self.propagator.updates()
    }
}
