//! Evaluation of a method on few-shot tasks.

use std::collections::BTreeSet;

use gpn_data::benchmark::{DataSet, Store};
use gpn_data::task::Task;
use gpn_model::Embedder;
use gpn_model::propagation::Influence;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::TrainError;
use crate::memory::{Memory, embed_samples};
use crate::methods::{Method, TestTask};
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
    /// The method that answers.
    pub method: &'a dyn Method,
    /// Prototypes of the training classes.
    pub memory: &'a Memory,
    /// How task graphs are made.
    pub pathways: &'a PathwayConfig,
}

/// Accuracies of one task, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskResult {
    /// Nearest mean of embeddings: before propagation.
    pub base: f64,
    /// The method's own answers; for one that propagates, with prototypes after propagation.
    pub method: f64,
    /// With prototypes before and after propagation mixed by lambda.
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

    /// The task as embeddings, without its surroundings.
    fn of_task<'a>(&self, task: &Task, memory: &'a Memory) -> TestTask<'a> {
        let gathered = |samples: &[Vec<u32>]| -> Vec<f32> {
            samples.iter().flatten().flat_map(|&sample| self.of(sample)).copied().collect()
        };
        TestTask {
            support: gathered(&task.support),
            shots: task.support.iter().map(Vec::len).collect(),
            queries: gathered(&task.query),
            dim: self.dim,
            way: task.classes.len(),
            surroundings: None,
            memory,
        }
    }

    /// The mean embedding of each answer's labelled samples, `[answers, dim]`.
    pub fn prototypes(&self, task: &Task) -> Vec<f32> {
        self.of_task(task, &Memory::default()).prototypes()
    }

    /// The answer with the nearest prototype for each query, answer by answer.
    pub fn nearest(&self, task: &Task, prototypes: &[f32]) -> Vec<usize> {
        self.of_task(task, &Memory::default()).nearest(prototypes)
    }

    /// Accuracy in percent of a task's queries, each given to its nearest prototype.
    pub fn percent(&self, task: &Task, prototypes: &[f32]) -> f64 {
        percent(task, &self.nearest(task, prototypes))
    }
}

/// The share of a task's queries that were answered correctly, in percent.
fn percent(task: &Task, answers: &[usize]) -> f64 {
    let labels = task.query.iter().enumerate().flat_map(|(answer, of)| std::iter::repeat_n(answer, of.len()));
    let correct = answers.iter().zip(labels).filter(|(answer, label)| *answer == label).count();
    100.0 * correct as f64 / answers.len().max(1) as f64
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
    let rows = accuracies(trained, data_set, embeddings, tasks, hierarchy, &[0.0, lambda])?;
    let base = |task: &Task| embeddings.percent(task, &embeddings.prototypes(task));
    let base: Vec<f64> = tasks.par_iter().map(base).collect();
    let result = |(base, row): (f64, Vec<f64>)| TaskResult { base, method: row[0], mixed: row[1] };
    Ok(base.into_iter().zip(rows).map(result).collect())
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
    let answers = answers(trained, data_set, embeddings, tasks, hierarchy, lambdas)?;
    let row = |(task, of_task): (&Task, &Vec<Vec<usize>>)| {
        of_task.iter().map(|answers| percent(task, answers)).collect()
    };
    Ok(tasks.iter().zip(&answers).map(row).collect())
}

/// The answer to every query of each task for each lambda: `[tasks][lambdas][queries]`.
pub fn answers(
    trained: Trained<'_>,
    data_set: &DataSet,
    embeddings: &Embeddings,
    tasks: &[Task],
    hierarchy: Hierarchy,
    lambdas: &[f32],
) -> Result<Vec<Vec<Vec<usize>>>, TrainError> {
    let index = PrototypeIndex::new(trained.memory);
    tasks
        .par_iter()
        .map(|task| {
            let asked = with_surroundings(&index, trained, data_set, embeddings, task, hierarchy)?;
            trained.method.answer(&asked, lambdas)
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
    /// Who shaped whom, step by step, by node; empty for a method that does not propagate.
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
    let asked = with_surroundings(&index, trained, data_set, embeddings, task, hierarchy)?;
    let first = asked.prototypes();
    let refined = asked.refined(trained.method, &first);
    let (classes, edges) = asked.surroundings.map_or_else(
        || (task.classes.clone(), Vec::new()),
        |around| {
            let edges = around.edges().to_vec();
            (around.classes, edges)
        },
    );
    Ok(Propagated { first, last: refined.prototypes, classes, edges, influences: refined.influences })
}

/// The task as embeddings, with the classes around its targets where the method looks at them.
fn with_surroundings<'a>(
    index: &PrototypeIndex<'_>,
    trained: Trained<'a>,
    data_set: &DataSet,
    embeddings: &Embeddings,
    task: &Task,
    hierarchy: Hierarchy,
) -> Result<TestTask<'a>, TrainError> {
    let mut asked = embeddings.of_task(task, trained.memory);
    let Some(hops) = trained.method.hops() else { return Ok(asked) };
    asked.surroundings = Some(match hierarchy {
        Hierarchy::Known => Surroundings::known(&data_set.graph, data_set.training, &task.classes, hops),
        Hierarchy::Unknown => {
            let targets = &asked.prototypes()[..asked.way * asked.dim];
            let near = index.nearest(targets, trained.pathways.nearest);
            Surroundings::unknown(&data_set.training_graph, &task.classes, &near, hops)?
        }
    });
    Ok(asked)
}

/// Summed in lanes, in a fixed order: a single sum would wait for every addition.
pub(crate) fn squared_distance(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 16;
    let square = |(a, b): (&f32, &f32)| (a - b) * (a - b);
    let (a, last_of_a) = a.as_chunks::<LANES>();
    let (b, last_of_b) = b.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for (a, b) in a.iter().zip(b) {
        for (sum, pair) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += square(pair);
        }
    }
    let last = last_of_a.iter().zip(last_of_b).map(square);
    sums.into_iter().chain(last).sum()
}
