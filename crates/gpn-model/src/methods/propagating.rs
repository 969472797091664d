//! What GPN and PPN have in common: prototypes are propagated over a graph that each makes in its own way.

use super::by_prototypes::ByPrototypes;
use super::{Episode, EpisodePass, Method, MethodSettings, Refined, TestTask, nearest_refined};
use crate::error::Result;
use crate::neighbourhood::Neighbourhood;
use crate::optim::Update;
use crate::propagation::{PropagationConfig, PropagationGraph};
use crate::propagator::Propagator;
use crate::tensors::TensorList;
use crate::trainable::Trainable;
use crate::weights::Weights;

/// Makes the graph to propagate on from a task's neighbourhood and the prototypes of its nodes.
type MakeGraph = Box<dyn Fn(&Neighbourhood, &[f32]) -> PropagationGraph + Send + Sync>;

/// A method that propagates prototypes.
pub(super) struct Propagating {
    propagator: Propagator,
    loss: ByPrototypes,
    graph: MakeGraph,
}

impl Propagating {
    pub(super) fn new(
        settings: &MethodSettings,
        propagation: PropagationConfig,
        dim: usize,
        graph: impl Fn(&Neighbourhood, &[f32]) -> PropagationGraph + Send + Sync + 'static,
    ) -> Result<Self> {
        let propagator = Propagator::new(propagation, dim, settings.seed)?;
        Ok(Self { propagator, loss: settings.into(), graph: Box::new(graph) })
    }
}

impl Method for Propagating {
    fn hops(&self) -> Option<usize> {
        Some(self.propagator.config().steps)
    }

    fn learn(&mut self, episode: &Episode<'_>) -> Result<EpisodePass> {
        self.loss.learn_propagated(episode, &mut self.propagator, &self.graph)
    }

    fn refine(&self, neighbourhood: &Neighbourhood, nodes: &[f32]) -> Option<Refined> {
        let graph = (self.graph)(neighbourhood, nodes);
        let tape = self.propagator.forward(&graph, nodes);
        Some(Refined { prototypes: tape.result(&graph).to_vec(), influences: tape.influences() })
    }

    fn answer(&self, task: &TestTask<'_>, lambdas: &[f32]) -> Result<Vec<Vec<usize>>> {
        Ok(nearest_refined(self, task, lambdas))
    }

    fn state(&self) -> TensorList {
        self.propagator.parameters().clone()
    }

    fn load(&mut self, weights: &Weights) -> Result<()> {
        self.propagator.load(weights)
    }

    fn updates(&mut self) -> Vec<Update<'_>> {
        self.propagator.updates()
    }
}
