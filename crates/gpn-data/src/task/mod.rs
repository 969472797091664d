//! Few-shot tasks: how they are drawn, and the file form of fixed ones.

mod file;
mod pool;
mod sampler;

pub use file::{read_tasks, write_tasks};
pub use pool::{LeftOut, PoolClass, TaskPool};
pub use sampler::{SamplerError, Sampling, SnowballRule, TaskConfig, TaskSampler};

use serde::{Deserialize, Serialize};

/// One few-shot task: the classes to tell apart, and for each its labelled samples and its queries.
///
/// Classes are numbered as in their data set (see [`crate::benchmark::Benchmark`]), samples as in `samples.csv`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The target classes, `[way]`.
    pub classes: Vec<u32>,
    /// Labelled samples of each class, `[way][shot]`.
    pub support: Vec<Vec<u32>>,
    /// Samples to classify, `[way][queries]`.
    pub query: Vec<Vec<u32>>,
}
