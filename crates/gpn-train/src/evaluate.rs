//! Evaluation on few-shot tasks, before and after propagation.

use std::collections::BTreeSet;

use gpn_data::benchmark::{DataSet, Store};
use gpn_data::task::Task;
use gpn_model::propagation::Influence;
use gpn_model::{Embedder, Propagator};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::TrainError;
use crate::memory::{Memory, embed_samples};
use crate::network::{class_means, mix, with_memory};
use crate::pathways::{PathwayConfig, Surroundings};
use crate::prototype_index::PrototypeIndex;

/// What is known of the test classes' place in the graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hierarchy {
    /// Their parents and children ("GPN+").
    #[default]
    Known,
    /// Nothing: they are linked to the nearest training classes ("GPN").
    Unknown,
}

/// The trained parts that evaluation needs.
#[derive(Clone, Copy)]
pub struct Trained<'a> {
    /// Propagation.
    pub propagator: &'a Propagator,
    /// Prototypes of the training classes.
    pub memory: &'a Memory,
    /// How task graphs are made.
    pub pathways: &'a PathwayConfig,
}

/// Accuracies of one task, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskResult {
    /// Nearest prototype before propagation.
    pub base: f64,
    /// After propagation.
    pub propagated: f64,
    /// With both mixed by lambda.
    pub mixed: f64,
}

/// Embeddings of the samples that tasks use, each computed once.
pub struct Embeddings {
    samples: Vec<u32>,
    values: Vec<f32>,
    dim: usize,
}

impl Embeddings {
    /// Embeds every sample of `tasks` in evaluation mode.
    pub fn of_tasks(embedder: &mut Embedder, store: &Store, tasks: &[Task]) -> Result<Self, TrainError> {
        let samples: BTreeSet<u32> = tasks.iter().flat_map(Task::samples).collect();
        let samples: Vec<u32> = samples.into_iter().collect();
        if let Some(&missing) = samples.last().filter(|&&sample| sample as usize >= store.len()) {
            return Err(TrainError::Setting {
                key: "tasks".into(),
                reason: format!(
                    "a task asks for sample {missing}, but the benchmark has {}; use tasks made for it",
                    store.len()
                ),
            });
        }
        let dim = embedder.embedding_len();
        let mut values = Vec::with_capacity(samples.len() * dim);
        embed_samples(embedder, store, &samples, |embeddings| values.extend_from_slice(embeddings))?;
        Ok(Self { samples, values, dim })
    }

    fn of(&self, sample: u32) -> &[f32] {
        // invariant: `of_tasks` embedded every sample of the tasks that ask here.
        let row = self.samples.binary_search(&sample).unwrap();
        &self.values[row * self.dim..][..self.dim]
    }

    /// The mean embedding of each answer's labelled samples, `[answers, dim]`.
    pub fn prototypes(&self, task: &Task) -> Vec<f32> {
        let of = |support: &Vec<u32>| class_means(&self.gathered(support), support.len(), self.dim);
        task.support.iter().flat_map(of).collect()
    }

    /// The answer with the nearest prototype for each query, answer by answer.
    pub fn nearest(&self, task: &Task, prototypes: &[f32]) -> Vec<usize> {
        let nearest = |&sample: &u32| {
            let query = self.of(sample);
            let distances =
                prototypes.chunks_exact(self.dim).map(|prototype| squared_distance(query, prototype));
            let mut best = (0, f32::INFINITY);
            for (answer, distance) in distances.enumerate() {
                if distance < best.1 {
                    best = (answer, distance);
                }
            }
            best.0
        };
        task.query.iter().flatten().map(nearest).collect()
    }

    /// Accuracy in percent of a task's queries, each given to its nearest prototype.
    pub fn percent(&self, task: &Task, prototypes: &[f32]) -> f64 {
        let labels =
            task.query.iter().enumerate().flat_map(|(answer, of)| std::iter::repeat_n(answer, of.len()));
        let answers = self.nearest(task, prototypes);
        let correct = answers.iter().zip(labels).filter(|(answer, label)| *answer == label).count();
        100.0 * correct as f64 / answers.len().max(1) as f64
    }

    fn gathered(&self, samples: &[u32]) -> Vec<f32> {
        samples.iter().flat_map(|&sample| self.of(sample)).copied().collect()
    }
}

/// Evaluates tasks in parallel; the result of a task depends on that task alone.
pub fn evaluate(
    trained: Trained<'_>,
    data_set: &DataSet,
    embeddings: &Embeddings,
    tasks: &[Task],
    hierarchy: Hierarchy,
    lambda: f32,
) -> Result<Vec<TaskResult>, TrainError> {
    let rows = accuracies(trained, data_set, embeddings, tasks, hierarchy, &[1.0, 0.0, lambda])?;
    Ok(rows.into_iter().map(|row| TaskResult { base: row[0], propagated: row[1], mixed: row[2] }).collect())
}

/// Accuracies in percent of each task for each lambda, the weight of the prototype before propagation: `[tasks][lambdas]`.
pub fn accuracies(
    trained: Trained<'_>,
    data_set: &DataSet,
    embeddings: &Embeddings,
    tasks: &[Task],
    hierarchy: Hierarchy,
    lambdas: &[f32],
) -> Result<Vec<Vec<f64>>, TrainError> {
    let index = PrototypeIndex::new(trained.memory);
    tasks
        .par_iter()
        .map(|task| {
            let Propagated { first, last, .. } =
                propagate_over(&index, trained, data_set, embeddings, task, hierarchy)?;
            Ok(lambdas.iter().map(|&lambda| embeddings.percent(task, &mix(lambda, &first, &last))).collect())
        })
        .collect()
}

/// What propagation made of one task.
#[derive(Clone, Debug)]
pub struct Propagated {
    /// Prototypes of the answers before propagation, `[answers, dim]`.
    pub first: Vec<f32>,
    /// Prototypes of the answers after it.
    pub last: Vec<f32>,
    /// The class of each node of the task's graph, targets first.
    pub classes: Vec<u32>,
    /// `(parent, child)` of the task's graph, by node.
    pub edges: Vec<(u32, u32)>,
    /// Who shaped whom, step by step, by node.
    pub influences: Vec<Vec<Influence>>,
}

/// Propagates the prototypes of a task, and tells how.
pub fn propagate(
    trained: Trained<'_>,
    data_set: &DataSet,
    embeddings: &Embeddings,
    task: &Task,
    hierarchy: Hierarchy,
) -> Result<Propagated, TrainError> {
    let index = PrototypeIndex::exact(trained.memory);
    propagate_over(&index, trained, data_set, embeddings, task, hierarchy)
}

fn propagate_over(
    index: &PrototypeIndex<'_>,
    trained: Trained<'_>,
    data_set: &DataSet,
    embeddings: &Embeddings,
    task: &Task,
    hierarchy: Hierarchy,
) -> Result<Propagated, TrainError> {
    let dim = embeddings.dim;
    let first = embeddings.prototypes(task);
    // "Other" has no place in the graph: only the classes are propagated.
    let targets = &first[..task.classes.len() * dim];
    let hops = trained.propagator.config().steps;
    let surroundings = match hierarchy {
        Hierarchy::Known => Surroundings::known(&data_set.graph, data_set.training, &task.classes, hops),
        Hierarchy::Unknown => {
            let near = index.nearest(targets, trained.pathways.nearest);
            Surroundings::unknown(&data_set.training_graph, &task.classes, &near, hops)?
        }
    };
    let nodes = with_memory(&surroundings, targets, trained.memory);
    let graph = surroundings.thinned(trained.pathways.spanning_tree, &nodes);
    let tape = trained.propagator.forward(&graph, &nodes);
    let mut last = first.clone();
    last[..targets.len()].copy_from_slice(tape.result(&graph));
    let edges = surroundings.edges().to_vec();
    Ok(Propagated { first, last, influences: tape.influences(), classes: surroundings.classes, edges })
}

pub(crate) fn squared_distance(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}
