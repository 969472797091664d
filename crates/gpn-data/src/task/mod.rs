//! Few-shot tasks: how they are drawn, and the file form of fixed ones.

mod file;
mod fingerprint;
mod pool;
mod rest;
mod sampler;

pub use file::{read_tasks, write_tasks};
pub use fingerprint::fingerprint_of_list;
pub use pool::{LeftOut, PoolClass, TaskPool};
pub use sampler::{SamplerError, Sampling, SnowballRule, TaskConfig, TaskSampler};

use serde::{Deserialize, Serialize};

/// One few-shot task: the classes to tell apart, and for each its labelled samples and its queries.
///
/// Classes are numbered as in their data set (see [`crate::benchmark::Benchmark`]), samples as in `samples.csv`.
/// A task may have one more answer than classes, "other": its samples are of classes outside the task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The target classes, `[way]`.
    pub classes: Vec<u32>,
    /// Labelled samples of each answer, `[answers][shot]`: the classes, then "other" if it is one.
    pub support: Vec<Vec<u32>>,
    /// Samples to classify, `[answers][queries]`.
    pub query: Vec<Vec<u32>>,
}

impl Task {
    /// Whether "other" is an answer.
    pub fn has_rest(&self) -> bool {
        self.support.len() > self.classes.len()
    }

    /// All samples: support, then queries, answer by answer.
    pub fn samples(&self) -> impl Iterator<Item = u32> + '_ {
        self.support.iter().chain(&self.query).flatten().copied()
    }
}
