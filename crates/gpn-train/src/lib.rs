//! Training and evaluation of gated propagation networks.

mod checkpoint;
mod config;
mod error;
mod evaluate;
mod memory;
mod model_file;
mod network;
mod pathways;
mod run;
mod schedule;
mod statistics;
mod trainer;

pub use checkpoint::{Checkpoints, Position};
pub use config::{
    AugmentSettings, Config, ModelSettings, PRESETS, TaskSettings, TrainSettings,
};
pub use error::TrainError;
pub use evaluate::{Embeddings, Hierarchy, TaskResult, Trained, evaluate};
pub use memory::{Memory, MemoryConfig, MemoryNorm};
pub use model_file::{ModelInfo, TrainedModel};
pub use network::{EpisodeShape, Network, StepResult, accuracy, class_means, mix, with_memory};
pub use pathways::{PathwayConfig, SpanningTree, Surroundings, nearest_classes};
pub use run::{Origin, RunDirectory};
pub use schedule::{Schedule, ScheduleConfig, StepKind};
pub use statistics::{Estimate, INTERVAL};
pub use trainer::{Progress, TimeSplit, Trainer};
