//! Training and evaluation of gated propagation networks.

mod error;
mod evaluate;
mod memory;
mod network;
mod pathways;
mod schedule;
mod statistics;

pub use error::TrainError;
pub use evaluate::{Embeddings, Hierarchy, TaskResult, Trained, evaluate};
pub use memory::{Memory, MemoryConfig, MemoryNorm};
pub use network::{EpisodeShape, Network, StepResult, accuracy, class_means, mix, with_memory};
pub use pathways::{PathwayConfig, SpanningTree, Surroundings, nearest_classes};
pub use schedule::{Schedule, ScheduleConfig, StepKind};
pub use statistics::{Estimate, INTERVAL};
