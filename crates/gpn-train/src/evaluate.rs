//! Evaluation on few-shot tasks, before and after propagation.

use std::collections::BTreeSet;

use gpn_data::benchmark::{DataSet, Store};
use gpn_data::task::Task;
use gpn_model::{Embedder, Propagator};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::TrainError;
use crate::memory::{Memory, embed_samples};
use crate::network::{accuracy, class_means, mix, with_memory};
use crate::pathways::{PathwayConfig, Surroundings, nearest_classes};

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
        let samples: BTreeSet<u32> =
            tasks.iter().flat_map(|task| task.support.iter().chain(&task.query)).flatten().copied().collect();
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
    tasks
        .par_iter()
        .map(|task| evaluate_task(trained, data_set, embeddings, task, hierarchy, lambda))
        .collect()
}

fn evaluate_task(
    trained: Trained<'_>,
    data_set: &DataSet,
    embeddings: &Embeddings,
    task: &Task,
    hierarchy: Hierarchy,
    lambda: f32,
) -> Result<TaskResult, TrainError> {
    let dim = embeddings.dim;
    let mut first = Vec::with_capacity(task.classes.len() * dim);
    for support in &task.support {
        first.extend(class_means(&embeddings.gathered(support), support.len(), dim));
    }
    let hops = trained.propagator.config().steps;
    let surroundings = match hierarchy {
        Hierarchy::Known => Surroundings::known(&data_set.graph, data_set.training, &task.classes, hops),
        Hierarchy::Unknown => {
            let near = nearest_classes(&trained.memory.prototypes, &first, dim, trained.pathways.nearest);
            Surroundings::unknown(&data_set.training_graph, &task.classes, &near, hops)?
        }
    };
    let prototypes = with_memory(&surroundings, &first, trained.memory);
    let graph = surroundings.thinned(trained.pathways.spanning_tree, &prototypes);
    let tape = trained.propagator.forward(&graph, &prototypes);
    let last = tape.result(&graph);

    let labels: Vec<usize> = task
        .query
        .iter()
        .enumerate()
        .flat_map(|(class, queries)| std::iter::repeat_n(class, queries.len()))
        .collect();
    let queries: Vec<&[f32]> = task.query.iter().flatten().map(|&sample| embeddings.of(sample)).collect();
    let percent = |prototypes: &[f32]| -> f64 {
        let logits: Vec<f32> = queries
            .iter()
            .flat_map(|query| {
                prototypes.chunks_exact(dim).map(move |prototype| -squared_distance(query, prototype))
            })
            .collect();
        100.0 * f64::from(accuracy(&logits, &labels))
    };
    Ok(TaskResult {
        base: percent(&first),
        propagated: percent(last),
        mixed: percent(&mix(lambda, &first, last)),
    })
}

pub(crate) fn squared_distance(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}
