//! The compared few-shot methods, behind one trait.
//!
//! All of them work on embeddings: backbone, tasks, schedule and optimiser are the same for each. A new method is one file
//! here, with its [`MethodKind`], and one line in [`METHODS`].

mod baseline;
mod by_prototypes;
mod gnn;
mod gpn;
mod nearest;
mod ppn;
mod propagating;
mod protonet;

use gpn_model::propagation::Influence;
use gpn_model::{HeadPass, TensorList, Update, Weights};

use crate::config::{Config, unknown};
use crate::error::TrainError;
use crate::evaluate::squared_distance;
use crate::memory::Memory;
use crate::network::{EpisodeShape, class_means, highest, mix, with_memory};
use crate::pathways::Surroundings;

/// Every method, by the name that `train.method` and `gpn train --method` take.
pub const METHODS: [MethodKind; 6] =
    [nearest::KIND, protonet::KIND, gnn::KIND, baseline::KIND, ppn::KIND, gpn::KIND];

/// What is known of a method before it is made.
pub struct MethodKind {
    /// Its name in settings.
    pub name: &'static str,
    /// Its name in tables.
    pub title: &'static str,
    /// What it does, in a sentence.
    pub about: &'static str,
    /// Whether the weight of the prototype before propagation is chosen on validation tasks; otherwise it is 0.
    pub tunes_lambda: bool,
    /// Settings that it needs to be other than usual.
    pub adjust: fn(&mut Config),
    /// How many values it learns beside those that there is one row of for each training class; `None` where they cannot be
    /// counted. Looked at before it is made by the settings of an unknown file.
    pub values: fn(config: &Config, dim: usize) -> Option<usize>,
    /// Makes it.
    pub make: MakeMethod,
}

/// Makes a method for embeddings of length `dim` and so many training classes.
pub type MakeMethod = fn(config: &Config, dim: usize, classes: usize) -> Result<Box<dyn Method>, TrainError>;

impl MethodKind {
    /// The method of a name.
    pub fn named(name: &str) -> Result<&'static Self, TrainError> {
        METHODS.iter().find(|kind| kind.name == name).ok_or_else(|| TrainError::Setting {
            key: "train.method".into(),
            reason: format!(
                "{} (there are {})",
                unknown(name, METHODS.iter().map(|kind| kind.name), "method"),
                METHODS.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ")
            ),
        })
    }
}

/// What a method learns from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lessons {
    /// Few-shot tasks, and batches of the auxiliary task as the schedule says.
    Tasks,
    /// Batches over all training classes only.
    Batches,
    /// Nothing: it is used as it is.
    Nothing,
}

/// A few-shot task to learn from, as embeddings.
#[derive(Clone, Copy)]
pub struct Episode<'a> {
    /// Labelled samples, class by class, then those of "other": `[way * shot + rest, dim]`.
    pub support: &'a [f32],
    /// Queries, answer by answer, as many for each: `[queries, dim]`.
    pub queries: &'a [f32],
    /// The answer of each query.
    pub labels: &'a [usize],
    /// Classes and samples.
    pub shape: EpisodeShape,
    /// Length of an embedding.
    pub dim: usize,
    /// The classes around the targets, for methods that use the graph.
    pub surroundings: Option<&'a Surroundings>,
    /// Prototypes of the training classes.
    pub memory: &'a Memory,
}

impl Episode<'_> {
    /// Number of answers: the classes, and "other" where it is one.
    pub fn answers(&self) -> usize {
        self.shape.way + usize::from(self.shape.rest > 0)
    }

    /// The answer of each labelled sample.
    pub fn support_labels(&self) -> Vec<usize> {
        let EpisodeShape { way, shot, rest, .. } = self.shape;
        let of_classes = (0..way).flat_map(|answer| std::iter::repeat_n(answer, shot));
        of_classes.chain(std::iter::repeat_n(way, rest)).collect()
    }
}

/// What came of learning from an episode.
#[derive(Clone, Debug)]
pub struct EpisodePass {
    /// Mean loss over the queries.
    pub loss: f32,
    /// Share of the queries looked at that were answered correctly.
    pub accuracy: f32,
    /// Gradient of the labelled samples' embeddings.
    pub grad_support: Vec<f32>,
    /// Gradient of the queries' embeddings.
    pub grad_queries: Vec<f32>,
}

/// A few-shot task to answer, as embeddings.
pub struct TestTask<'a> {
    /// Labelled samples, answer by answer, `[samples, dim]`.
    pub support: Vec<f32>,
    /// Number of labelled samples of each answer.
    pub shots: Vec<usize>,
    /// Queries, `[queries, dim]`.
    pub queries: Vec<f32>,
    /// Length of an embedding.
    pub dim: usize,
    /// Answers that are classes; one more, "other", has no place in the graph.
    pub way: usize,
    /// The classes around the targets, for methods that use the graph.
    pub surroundings: Option<Surroundings>,
    /// Prototypes of the training classes.
    pub memory: &'a Memory,
}

impl TestTask<'_> {
    /// The mean embedding of each answer's labelled samples, `[answers, dim]`.
    pub fn prototypes(&self) -> Vec<f32> {
        let mut rest = &self.support[..];
        let mut prototypes = Vec::with_capacity(self.shots.len() * self.dim);
        for &shot in &self.shots {
            let (own, others) = rest.split_at(shot * self.dim);
            prototypes.extend(class_means(own, shot, self.dim));
            rest = others;
        }
        prototypes
    }

    /// The answer of each labelled sample.
    pub fn support_labels(&self) -> Vec<usize> {
        let of = |(answer, &shot): (usize, &usize)| std::iter::repeat_n(answer, shot);
        self.shots.iter().enumerate().flat_map(of).collect()
    }

    /// The answer with the nearest prototype for each query; of equally near ones the first.
    pub fn nearest(&self, prototypes: &[f32]) -> Vec<usize> {
        let nearest = |query: &[f32]| {
            let mut best = (0, f32::INFINITY);
            for (answer, prototype) in prototypes.chunks_exact(self.dim).enumerate() {
                let distance = squared_distance(query, prototype);
                if distance < best.1 {
                    best = (answer, distance);
                }
            }
            best.0
        };
        self.queries.chunks_exact(self.dim).map(nearest).collect()
    }

    /// The prototypes of all answers after the method has worked on them, and who shaped whom.
    pub fn refined(&self, method: &dyn Method, first: &[f32]) -> Refined {
        refined(method, self.surroundings.as_ref(), self.memory, first, self.way)
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
    surroundings: Option<&Surroundings>,
    memory: &Memory,
    first: &[f32],
    way: usize,
) -> Refined {
    let targets = &first[..way * memory.dim];
    let of_targets = surroundings
        .and_then(|surroundings| method.refine(surroundings, &with_memory(surroundings, targets, memory)));
    let mut last = first.to_vec();
    let influences = of_targets.map_or_else(Vec::new, |refined| {
        last[..targets.len()].copy_from_slice(&refined.prototypes);
        refined.influences
    });
    Refined { prototypes: last, influences }
}

/// A few-shot method: it learns from tasks, and answers queries by a few labelled samples of each class.
pub trait Method: Send + Sync {
    /// How many hops around a task's targets it looks at; `None` where it does not use the class graph.
    fn hops(&self) -> Option<usize> {
        None
    }

    /// What it learns from.
    fn lessons(&self) -> Lessons {
        Lessons::Tasks
    }

    /// Learns from a task: the gradients of embeddings are returned, those of its own parameters kept for
    /// [`updates`](Self::updates).
    fn learn(&mut self, episode: &Episode<'_>) -> Result<EpisodePass, TrainError>;

    /// Learns from a batch over all training classes with a classifier of its own; `None` where the linear classifier of
    /// the auxiliary task is to be used.
    fn learn_batch(
        &mut self,
        _embeddings: &[f32],
        _labels: &[usize],
    ) -> Option<Result<HeadPass, TrainError>> {
        None
    }

    /// Works on the prototypes `nodes: [nodes, dim]` of a task's surroundings: new ones for the targets. `None` where
    /// prototypes stay as they are.
    fn refine(&self, _surroundings: &Surroundings, _nodes: &[f32]) -> Option<Refined> {
        None
    }

    /// Whether it answers by the nearest prototype, so that classes can be taught and told apart one by one.
    fn answers_by_prototypes(&self) -> bool {
        true
    }

    /// The answer to each query, once for each of `lambdas`: the weight of the prototype before the method's work, of which
    /// methods that do not work on prototypes take no notice.
    fn answer(&self, task: &TestTask<'_>, lambdas: &[f32]) -> Result<Vec<Vec<usize>>, TrainError>;

    /// Its parameters and all else that it has learned, named as in model files.
    fn state(&self) -> TensorList {
        TensorList::new(Vec::new(), |_, _| Vec::new())
    }

    /// Takes its state from a model file.
    fn load(&mut self, _weights: &Weights) -> Result<(), TrainError> {
        Ok(())
    }

    /// Parameters with the gradients of the last lesson.
    fn updates(&mut self) -> Vec<Update<'_>> {
        Vec::new()
    }
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

#[cfg(test)]
mod tests;
