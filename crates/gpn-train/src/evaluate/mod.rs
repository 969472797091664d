//! Evaluation of a method on few-shot tasks.

mod statistics;

pub use statistics::{Estimate, INTERVAL};

use std::collections::BTreeSet;

use gpn_data::benchmark::{DataSet, Store};
use gpn_data::task::Task;
use gpn_model::methods::{Method, TestTask};
use gpn_model::prior::KnownClasses;
use gpn_model::propagation::Influence;
use gpn_model::{Embedder, Memory, Neighbourhood, PrototypeIndex};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::distributed::Ranks;
use crate::embedding::embed_samples;
use crate::error::TrainError;
use crate::stop::StopHandle;

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
    /// Nearest training classes that a class of unknown place is linked to.
    pub nearest: usize,
    /// Embeddings of the texts of test classes, by the class's number in the data set.
    pub texts: &'a [Option<Vec<f32>>],
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
    pub fn of_tasks<'a>(
        embedder: &Embedder,
        store: &Store,
        tasks: &[Task],
        ranks: impl Into<Ranks<'a>>,
    ) -> Result<Self, TrainError> {
        Self::of_samples(embedder, store, tasks.iter().flat_map(Task::samples), ranks)
    }

    /// Embeds samples in evaluation mode.
    pub fn of_samples<'a>(
        embedder: &Embedder,
        store: &Store,
        samples: impl IntoIterator<Item = u32>,
        ranks: impl Into<Ranks<'a>>,
    ) -> Result<Self, TrainError> {
        let samples: BTreeSet<u32> = samples.into_iter().collect();
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
        embed_samples(embedder, store, &samples, ranks.into(), |embeddings| {
            values.extend_from_slice(embeddings);
        })?;
        Ok(Self { samples, values, dim })
    }

    /// The embedding of a sample, which must be one of those embedded.
    pub fn of(&self, sample: u32) -> &[f32] {
        // invariant: every sample that is asked for was embedded.
        let row = self.samples.binary_search(&sample).unwrap();
        &self.values[row * self.dim..][..self.dim]
    }

    /// The task as embeddings, without its neighbourhood.
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
            neighbourhood: None,
            memory,
            classes: task.classes.clone(),
            known: None,
            texts: Vec::new(),
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
    stop: &StopHandle,
) -> Result<Vec<TaskResult>, TrainError> {
    let rows = accuracies(trained, data_set, embeddings, tasks, hierarchy, &[0.0, lambda], stop)?;
    let base = |task: &Task| embeddings.percent(task, &embeddings.prototypes(task));
    let base: Vec<f64> = tasks.par_iter().map(base).collect();
    let result = |(base, row): (f64, Vec<f64>)| TaskResult { base, method: row[0], mixed: row[1] };
    Ok(base.into_iter().zip(rows).map(result).collect())
}

/// Accuracies in percent of each task for each lambda, the weight of the prototype before propagation: `[tasks][lambdas]`.
/// Ranks divide the tasks.
pub fn accuracies<'a>(
    trained: Trained<'_>,
    data_set: &DataSet,
    embeddings: &Embeddings,
    tasks: &[Task],
    hierarchy: Hierarchy,
    lambdas: &[f32],
    ranks: impl Into<Ranks<'a>>,
) -> Result<Vec<Vec<f64>>, TrainError> {
    let ranks = ranks.into();
    let own = &tasks[ranks.part_of(ranks.group.rank(), tasks.len())];
    let answers = answers(trained, data_set, embeddings, own, hierarchy, lambdas, ranks.stop);
    let row = |(task, of_task): (&Task, &Vec<Vec<usize>>)| {
        of_task.iter().map(|answers| percent(task, answers)).collect()
    };
    let rows =
        |answers: Vec<Vec<Vec<usize>>>| -> Vec<Vec<f64>> { own.iter().zip(&answers).map(row).collect() };
    if ranks.is_alone() {
        return answers.map(rows);
    }
    let values = match answers {
        Ok(answers) => rows(answers).concat(),
        // All ranks say so when they meet.
        Err(TrainError::Interrupted) => Vec::new(),
        Err(error) => return Err(error),
    };
    let values = ranks.gathered(&values)?;
    Ok(values.chunks_exact(lambdas.len()).map(<[f64]>::to_vec).collect())
}

/// The answer to every query of each task for each lambda: `[tasks][lambdas][queries]`.
pub fn answers(
    trained: Trained<'_>,
    data_set: &DataSet,
    embeddings: &Embeddings,
    tasks: &[Task],
    hierarchy: Hierarchy,
    lambdas: &[f32],
    stop: &StopHandle,
) -> Result<Vec<Vec<Vec<usize>>>, TrainError> {
    for_each_task(trained, data_set, embeddings, tasks, hierarchy, stop, |asked| {
        Ok(trained.method.answer(asked, lambdas)?)
    })
}

/// The probability of each answer for every query of each task: `[tasks][queries * answers]`.
pub fn probabilities(
    trained: Trained<'_>,
    data_set: &DataSet,
    embeddings: &Embeddings,
    tasks: &[Task],
    hierarchy: Hierarchy,
    stop: &StopHandle,
) -> Result<Vec<Vec<f64>>, TrainError> {
    for_each_task(trained, data_set, embeddings, tasks, hierarchy, stop, |asked| {
        let distances = trained.method.distances(asked)?;
        let softmax = |row: &[f32]| {
            let least = row.iter().copied().fold(f32::INFINITY, f32::min);
            let likelihood = |distance: &f32| libm::exp(f64::from(least) - f64::from(*distance));
            let total: f64 = row.iter().map(likelihood).sum();
            row.iter().map(|distance| likelihood(distance) / total).collect::<Vec<f64>>()
        };
        Ok(distances.chunks_exact(asked.shots.len()).flat_map(softmax).collect())
    })
}

/// Does something with every task as its method sees it, in parallel.
fn for_each_task<R: Send>(
    trained: Trained<'_>,
    data_set: &DataSet,
    embeddings: &Embeddings,
    tasks: &[Task],
    hierarchy: Hierarchy,
    stop: &StopHandle,
    work: impl Fn(&TestTask<'_>) -> Result<R, TrainError> + Sync,
) -> Result<Vec<R>, TrainError> {
    let graph = Graph::new(trained, data_set, hierarchy);
    tasks
        .par_iter()
        .map(|task| {
            stop.check()?;
            work(&graph.task(embeddings, task)?)
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
    let graph = Graph::new(trained, data_set, hierarchy);
    let asked = graph.task(embeddings, task)?;
    let first = asked.prototypes();
    let refined = asked.refined(trained.method, &first);
    let (classes, edges) = asked.neighbourhood.map_or_else(
        || (task.classes.clone(), Vec::new()),
        |around| {
            let edges = around.edges().to_vec();
            (around.classes, edges)
        },
    );
    Ok(Propagated { first, last: refined.prototypes, classes, edges, influences: refined.influences })
}

/// The class graph of a data set, prepared for the tasks of a method.
struct Graph<'a> {
    trained: Trained<'a>,
    data_set: &'a DataSet,
    hierarchy: Hierarchy,
    index: PrototypeIndex<'a>,
    /// The training classes, where the method has a prior and the place of test classes is known.
    known: Option<KnownClasses<'a>>,
}

impl<'a> Graph<'a> {
    fn new(trained: Trained<'a>, data_set: &'a DataSet, hierarchy: Hierarchy) -> Self {
        let prior = trained.method.prior().filter(|_| hierarchy == Hierarchy::Known);
        Self {
            trained,
            data_set,
            hierarchy,
            index: PrototypeIndex::new(trained.memory),
            known: prior.map(|prior| prior.known(&data_set.whole_graph)),
        }
    }

    /// A task as embeddings, with what the method looks at beside them.
    fn task<'b>(&'b self, embeddings: &Embeddings, task: &Task) -> Result<TestTask<'b>, TrainError> {
        let Self { trained, data_set, .. } = self;
        let mut asked = embeddings.of_task(task, trained.memory);
        asked.known = self.known.as_ref();
        let text = |&class: &u32| trained.texts.get(class as usize).cloned().flatten();
        asked.texts = task.classes.iter().map(text).collect();
        let Some(hops) = trained.method.hops() else { return Ok(asked) };
        asked.neighbourhood = Some(match self.hierarchy {
            Hierarchy::Known => Neighbourhood::known(&data_set.graph, data_set.training, &task.classes, hops),
            Hierarchy::Unknown => {
                let targets = &asked.prototypes()[..asked.way * asked.dim];
                let near = self.index.nearest(targets, trained.nearest);
                Neighbourhood::unknown(&data_set.training_graph, &task.classes, &near, hops)?
            }
        });
        Ok(asked)
    }
}
