//! The compared few-shot methods, behind one trait.
//!
//! All of them work on embeddings: backbone, tasks, schedule and optimiser are the same for each. A new method of this crate
//! is one file here, with its [`MethodKind`], and one line in `kind.rs`; one from outside is registered
//! by [`MethodKind::register`].

mod baseline;
mod by_prototypes;
mod gnn;
mod gpn;
mod kind;
mod nearest;
mod ppn;
mod prior;
mod propagating;
mod protonet;
mod task;
mod uniform;

pub use kind::{MakeMethod, MethodKind, MethodRef, MethodSettings, Needs};
pub use task::{Episode, EpisodePass, EpisodeShape, TestTask};

use std::sync::Arc;

use gpn_taxonomy::Taxonomy;

use crate::error::Result;
use crate::head::HeadPass;
use crate::memory::{Memory, highest, mix};
use crate::neighbourhood::Neighbourhood;
use crate::optim::Update;
use crate::prior::{PriorModel, TrainingSamples};
use crate::propagation::Influence;
use crate::tensors::TensorList;
use crate::weights::Weights;

/// What a method learns from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LearnsFrom {
    /// Few-shot tasks, and batches of the auxiliary task as the schedule says.
    Tasks,
    /// Batches over all training classes only.
    Batches,
    /// Nothing: it is used as it is.
    Nothing,
}

/// A few-shot method: it learns from tasks, and answers queries by a few labelled samples of each class.
pub trait Method: Send + Sync {
    /// How many hops around a task's targets it looks at; `None` where it does not use the class graph.
    fn hops(&self) -> Option<usize> {
        None
    }

    /// What it learns from.
    fn learns_from(&self) -> LearnsFrom {
        LearnsFrom::Tasks
    }

    /// Learns from a task: the gradients of embeddings are returned, those of its own parameters kept for
    /// [`updates`](Self::updates).
    fn learn(&mut self, episode: &Episode<'_>) -> Result<EpisodePass>;

    /// Learns from a batch over all training classes with a classifier of its own; `None` where the linear classifier of
    /// the auxiliary task is to be used.
    fn learn_batch(&mut self, _embeddings: &[f32], _labels: &[usize]) -> Option<Result<HeadPass>> {
        None
    }

    /// Works on the prototypes `nodes: [nodes, dim]` of a task's neighbourhood: new ones for the targets. `None` where
    /// prototypes stay as they are.
    fn refine(&self, _neighbourhood: &Neighbourhood, _nodes: &[f32]) -> Option<Refined> {
        None
    }

    /// Whether it answers by the nearest prototype, so that classes can be taught and told apart one by one.
    fn answers_by_prototypes(&self) -> bool {
        true
    }

    /// Whether it is fitted to the samples of the training classes after training.
    fn is_fitted_to_samples(&self) -> bool {
        false
    }

    /// Whether it is fitted anew at each refresh of the memory, because it learns from tasks by what was fitted.
    fn is_refitted(&self) -> bool {
        false
    }

    /// Takes the graph whose first nodes are the training classes, before it learns.
    fn take_graph(&mut self, _graph: &Arc<Taxonomy>) {}

    /// Fits what is fitted in closed form to the samples of the training classes.
    fn fit(&mut self, _training: &TrainingSamples<'_>) -> Result<()> {
        Ok(())
    }

    /// The graph prior, where the method has one and it is fitted.
    fn prior(&self) -> Option<&Arc<PriorModel>> {
        None
    }

    /// Takes a graph prior that was fitted elsewhere; methods without one ignore it.
    fn set_prior(&mut self, _prior: Arc<PriorModel>) {}

    /// Squared distances of each query to each answer, `[queries, answers]`, scaled so that a softmax of their negatives gives
    /// probabilities.
    fn distances(&self, task: &TestTask<'_>) -> Result<Vec<f32>> {
        let first = task.prototypes();
        let of_targets = task.neighbourhood.as_ref().and_then(|around| {
            self.refine(around, &task.memory.with_targets(around, &first[..task.way * task.dim]))
        });
        let mut last = first;
        if let Some(refined) = of_targets {
            last[..refined.prototypes.len()].copy_from_slice(&refined.prototypes);
        }
        Ok(task.distances(&last))
    }

    /// The answer to each query, once for each of `lambdas`, the weight of the prototype before propagation. Methods that do
    /// not propagate ignore it.
    fn answer(&self, task: &TestTask<'_>, lambdas: &[f32]) -> Result<Vec<Vec<usize>>>;

    /// Its parameters and all else that it has learned, named as in model files.
    fn state(&self) -> TensorList {
        TensorList::new(Vec::new(), |_, _| Vec::new())
    }

    /// Takes its state from a model file.
    fn load(&mut self, _weights: &Weights) -> Result<()> {
        Ok(())
    }

    /// Parameters with the gradients of the last task or batch.
    fn updates(&mut self) -> Vec<Update<'_>> {
        Vec::new()
    }

    /// All that is averaged over the tasks of a step, where it has several: gradients, and whatever else learning from a task
    /// changes, such as running statistics.
    fn averaged(&mut self) -> Vec<&mut [f32]> {
        self.updates().into_iter().map(|update| update.gradient).collect()
    }
}

/// Prototypes that a method has worked on.
#[derive(Clone, Debug, Default)]
pub struct Refined {
    /// `[answers, dim]`.
    pub prototypes: Vec<f32>,
    /// Who shaped whom in each step, by node.
    pub influences: Vec<Vec<Influence>>,
}

/// Lets a method work on the prototypes `first: [answers, dim]`, of which the first `way` belong to classes of the graph.
pub fn refined(
    method: &dyn Method,
    neighbourhood: Option<&Neighbourhood>,
    memory: &Memory,
    first: &[f32],
    way: usize,
) -> Refined {
    let targets = &first[..way * memory.dim];
    let of_targets = neighbourhood
        .and_then(|neighbourhood| method.refine(neighbourhood, &memory.with_targets(neighbourhood, targets)));
    let mut last = first.to_vec();
    let influences = of_targets.map_or_else(Vec::new, |refined| {
        last[..targets.len()].copy_from_slice(&refined.prototypes);
        refined.influences
    });
    Refined { prototypes: last, influences }
}

/// The answers of a method that works on prototypes: nearest prototype, before and after mixed by each lambda.
fn nearest_refined(method: &dyn Method, task: &TestTask<'_>, lambdas: &[f32]) -> Vec<Vec<usize>> {
    let first = task.prototypes();
    let last = task.refined(method, &first).prototypes;
    lambdas.iter().map(|&lambda| task.nearest(&mix(lambda, &first, &last))).collect()
}

/// The highest of the first `answers` entries of each row of `logits: [rows, width]`.
fn highest_of_rows(logits: &[f32], width: usize, answers: usize) -> Vec<usize> {
    logits.chunks_exact(width).map(|row| highest(&row[..answers])).collect()
}
