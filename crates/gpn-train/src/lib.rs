//! Training and evaluation of gated propagation networks.
//!
//! **In** come a benchmark directory ([`gpn_data::benchmark`]) and settings ([`Config`]). A [`Trainer`] runs Algorithm 1
//! of the paper: batches of an auxiliary classification task at first, few-shot tasks more and more often; each task
//! propagates prototypes over the classes around its targets ([`Surroundings`]), whose own prototypes come from the
//! [`Memory`]. **Out** come checkpoints from which a run goes on bit for bit, and a [`TrainedModel`], which [`evaluate`]
//! measures on tasks of unseen classes. The few-shot method itself, gated propagation or one that it is compared with, stands
//! behind the trait [`methods::Method`]. A [`Classifier`] puts such a model to use: it is taught new classes from a few
//! samples and tells samples apart.
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
//! let mut trainer = Trainer::new(&config, Benchmark::open(&data)?, &Device::cpu())?;
//! trainer.run(&checkpoints, |_done, _report| ControlFlow::Continue(()))?;
//! assert_eq!(trainer.position().episode, 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod best;
mod candidates;
mod checkpoint;
mod class_graph;
mod classifier;
mod config;
mod config_file;
mod error;
mod evaluate;
mod events;
mod exact_sum;
mod finish;
mod limits;
mod means;
mod memory;
pub mod methods;
mod model_card;
mod model_check;
mod model_file;
mod network;
mod optimisers;
mod pathways;
mod prototype_index;
mod run;
mod sample;
mod schedule;
mod statistics;
mod taught;
mod teach;
mod trainer;
mod validation;

pub use best::Best;
pub use candidates::{Among, Candidates, ClassName, Guess, Relation, Share};
pub use checkpoint::{Checkpoints, Position, Resumed};
pub use class_graph::ClassKind;
pub use classifier::{ClassEntry, Classifier};
pub use config::{AugmentSettings, Config, ModelSettings, PRESETS, TaskSettings, TrainSettings};
pub use error::TrainError;
pub use evaluate::{
    Embeddings, Hierarchy, Propagated, TaskResult, Trained, accuracies, answers, evaluate, propagate,
};
pub use exact_sum::ExactSum;
pub use finish::Shipped;
pub use means::{Mean, Means};
pub use memory::{Memory, MemoryConfig, MemoryNorm, MemoryView};
pub use model_card::model_card;
pub use model_file::{ClassInfo, ModelInfo, TrainedModel};
pub use network::{EpisodeShape, Network, StepResult, StepTime, accuracy, class_means, mix, with_memory};
pub use optimisers::Optimisers;
pub use pathways::{PathwayConfig, SpanningTree, Surroundings};
pub use prototype_index::{EXACT_UP_TO, PrototypeIndex, nearest_classes};
pub use run::{Host, Origin, RunDirectory, RunModel, model_file};
pub use sample::Sample;
pub use schedule::{Schedule, ScheduleConfig, StepKind};
pub use statistics::{Estimate, INTERVAL};
pub use taught::{Place, TaughtClass};
pub use teach::{Again, Learned, Lesson, Placing};
pub use trainer::{Progress, TimeSplit, Trainer};
pub use validation::{LAMBDAS, ValidationConfig, ValidationResult};
