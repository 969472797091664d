//! Training and evaluation of gated propagation networks.
//!
//! **In** come a benchmark directory ([`gpn_data::benchmark`]) and settings ([`Config`]). A [`Trainer`] runs Algorithm 1
//! of the paper: batches of an auxiliary classification task at first, few-shot tasks more and more often; each task
//! propagates prototypes over the classes around its targets ([`Neighbourhood`]), whose own prototypes come from the
//! [`Memory`]. **Out** come checkpoints from which a run goes on bit for bit, and a [`TrainedModel`], which [`evaluate`]
//! measures on tasks of unseen classes. The few-shot method itself, gated propagation or one that it is compared with, stands
//! behind the trait [`Method`](gpn_model::methods::Method).
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
//! build(&source, &taxonomy, "built in", &settings, &data, &())?;
//!
//! let config = Config::default().with_setting("train.episodes=3")?;
//! let mut trainer = Trainer::new(&config, Benchmark::open(&data)?, &Device::cpu())?;
//! trainer.run(Some(&checkpoints), |_done, _report| ControlFlow::Continue(()))?;
//! assert_eq!(trainer.position().episode, 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod distributed;
mod embedding;
mod error;
mod evaluate;
mod learn;
mod model;
mod run;
mod settings;
mod stop;

#[cfg(feature = "mpi")]
pub use distributed::MpiGroup;
pub use distributed::{Alone, ByRank, Group, Ranks, ThreadGroup, mpi_group};
pub use error::TrainError;
pub use evaluate::{
    Embeddings, Estimate, Hierarchy, INTERVAL, Propagated, TaskResult, Trained, accuracies, answers,
    evaluate, probabilities, propagate,
};
pub use learn::fitting::{Fitting, fit_method};
pub use learn::means::{Mean, Means};
pub use learn::memory::Refresh;
pub use learn::network::{Learned, Network, Optimiser, StepPass, StepResult, StepTask, StepTime};
pub use learn::optimisers::Optimisers;
pub use learn::schedule::{Schedule, StepKind};
pub use learn::validation::{LAMBDAS, ValidationResult};
pub use model::changes::Changes;
pub use model::exact_sum::ExactSum;
pub use model::file::{ClassInfo, FitInfo, ModelInfo, TrainedModel};
pub use model::taught::{Placement, TaughtClass};
pub use run::best::Best;
pub use run::checkpoint::{Checkpoints, Position, Resumed};
pub use run::directory::{Host, Origin, RunDirectory, RunModel, model_file};
pub use run::finish::Shipped;
pub use run::metrics::{MetricsLine, read_metrics};
pub use run::model_card::model_card;
pub use run::trainer::{Progress, TimeSplit, Trainer};
pub use settings::{
    AugmentSettings, Config, MemoryConfig, MemoryNorm, MemoryView, ModelSettings, PRESETS, PathwayConfig,
    ScheduleConfig, TaskSettings, TrainSettings, ValidationConfig,
};
pub use stop::StopHandle;
