//! Training and evaluation of gated propagation networks.
//!
//! **In** come a benchmark directory ([`gpn_data::benchmark`]) and settings ([`Config`]). A [`Trainer`] runs Algorithm 1
//! of the paper: batches of an auxiliary classification task at first, few-shot tasks more and more often; each task
//! propagates prototypes over the classes around its targets ([`Surroundings`]), whose own prototypes come from the
//! [`Memory`]. **Out** come checkpoints from which a run goes on bit for bit, and a [`TrainedModel`], which [`evaluate`]
//! measures on tasks of unseen classes.
//!
//! ```
//! use std::ops::ControlFlow;
//!
//! use gpn_data::benchmark::{Benchmark, BuildConfig, build};
//! use gpn_data::source::{Source, SyntheticSource};
//! use gpn_data::synthetic::SyntheticConfig;
//! use gpn_model::Device;
//! use gpn_train::{Config, Trainer};
//!
//! # let folder = tempfile::tempdir()?;
//! # let (data, checkpoints) = (folder.path().join("data"), folder.path().join("checkpoints"));
//! let source = SyntheticSource::new(SyntheticConfig { per_leaf: 40, ..SyntheticConfig::default() });
//! let taxonomy = source.taxonomy().unwrap()?.taxonomy;
//! let mut settings = BuildConfig { size: 32, ..BuildConfig::default() };
//! settings.assign.per_leaf = 4;
//! build(&source, &taxonomy, "built in", &settings, &data, &|_done, _total| {})?;
//!
//! let config = Config::default().with_setting("train.episodes=3")?;
//! let mut trainer = Trainer::new(config, Benchmark::open(&data)?, &Device::cpu())?;
//! trainer.run(&checkpoints, |_done, _report| ControlFlow::Continue(()))?;
//! assert_eq!(trainer.position().episode, 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod checkpoint;
mod config;
mod error;
mod evaluate;
mod memory;
mod model_file;
mod network;
mod pathways;
mod prototype_index;
mod run;
mod schedule;
mod statistics;
mod trainer;

pub use checkpoint::{Checkpoints, Position};
pub use config::{AugmentSettings, Config, ModelSettings, PRESETS, TaskSettings, TrainSettings};
pub use error::TrainError;
pub use evaluate::{Embeddings, Hierarchy, TaskResult, Trained, evaluate};
pub use memory::{Memory, MemoryConfig, MemoryNorm};
pub use model_file::{ModelInfo, TrainedModel};
pub use network::{EpisodeShape, Network, StepResult, accuracy, class_means, mix, with_memory};
pub use pathways::{PathwayConfig, SpanningTree, Surroundings};
pub use prototype_index::{EXACT_UP_TO, PrototypeIndex, nearest_classes};
pub use run::{Origin, RunDirectory};
pub use schedule::{Schedule, ScheduleConfig, StepKind};
pub use statistics::{Estimate, INTERVAL};
pub use trainer::{Progress, TimeSplit, Trainer};
