//! What GPN and PPN have in common: prototypes are propagated over a graph that each makes in its own way.

use gpn_model::{PropagationConfig, PropagationGraph, Propagator, TensorList, Update, Weights};

use super::by_prototypes::ByPrototypes;
use super::{Episode, EpisodePass, Method, Refined, TestTask, nearest_refined};
use crate::config::Config;
use crate::error::TrainError;
use crate::pathways::Surroundings;

/// Makes the graph to propagate on from a task's surroundings and the prototypes of its nodes.
type MakeGraph = Box<dyn Fn(&Surroundings, &[f32]) -> PropagationGraph + Send + Sync>;

/// A method that propagates prototypes.
pub(super) struct Propagating {
    propagator: Propagator,
    loss: ByPrototypes,
    graph: MakeGraph,
}

impl Propagating {
    pub(super) fn new(
        config: &Config,
        propagation: PropagationConfig,
        dim: usize,
        graph: impl Fn(&Surroundings, &[f32]) -> PropagationGraph + Send + Sync + 'static,
    ) -> Result<Self, TrainError> {
        let propagator = Propagator::new(propagation, dim, config.train.seed)?;
        Ok(Self { propagator, loss: config.into(), graph: Box::new(graph) })
    }
}

impl Method for Propagating {
    fn hops(&self) -> Option<usize> {
        Some(self.propagator.config().steps)
    }

    fn learn(&mut self, episode: &Episode<'_>) -> Result<EpisodePass, TrainError> {
        self.loss.learn_propagated(episode, &mut self.propagator, &self.graph)
    }

    fn refine(&self, surroundings: &Surroundings, nodes: &[f32]) -> Option<Refined> {
        let graph = (self.graph)(surroundings, nodes);
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
