//! Algorithm 1: the training loop.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use gpn_data::benchmark::{Benchmark, Part, Split, Store};
use gpn_data::task::TaskSampler;
use gpn_model::methods::LearnsFrom;
use gpn_model::{Device, InputShape, Memory};
use gpn_taxonomy::{HopSearch, Taxonomy};

use super::best::{self, Best};
use super::checkpoint::{Checkpoints, Position, Resumed};
use super::step;
use crate::distributed::{Alone, Group, Ranks};
use crate::error::TrainError;
use crate::learn::fitting::{Fitting, fit_method};
use crate::learn::means::Means;
use crate::learn::memory::Refresh;
use crate::learn::network::{Network, StepResult, StepTime};
use crate::learn::optimisers::Optimisers;
use crate::learn::schedule::{Schedule, StepKind};
use crate::learn::validation::{Validation, ValidationResult};
use crate::model::file::{ModelInfo, TrainedModel};
use crate::settings::{Config, MemoryConfig};
use crate::stop::StopHandle;

/// Where the time of training goes.
#[derive(Clone, Copy, Debug, Default)]
pub struct TimeSplit {
    /// Waiting for batches.
    pub data: Duration,
    /// Training steps.
    pub steps: StepTime,
    /// Refreshing the memory.
    pub memory: Duration,
    /// Validation tasks and checkpoints.
    pub upkeep: Duration,
    /// Exchanging gradients with other processes, and waiting for them.
    pub exchange: Duration,
}

impl TimeSplit {
    /// All of it.
    pub fn total(&self) -> Duration {
        let StepTime { backbone, method, other } = self.steps;
        self.data + backbone + method + other + self.memory + self.upkeep + self.exchange
    }
}

/// Means over the episodes since the last report.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Episodes done.
    pub episode: u64,
    /// Loss and accuracy of few-shot episodes; `None` where there was none.
    pub few_shot: Option<StepResult>,
    /// Loss and accuracy of auxiliary batches.
    pub auxiliary: Option<StepResult>,
    /// Weight of the prototype before propagation.
    pub lambda: f32,
    /// Learning rate.
    pub rate: f64,
    /// Accuracy on the validation tasks, where they were just evaluated.
    pub validation: Option<ValidationResult>,
    /// Time since this process began to train.
    pub time: TimeSplit,
}

/// A run in progress.
pub struct Trainer {
    pub(super) config: Config,
    pub(super) benchmark: Arc<Benchmark>,
    pub(super) graph: Taxonomy,
    pub(super) samples_of: Vec<Vec<u32>>,
    /// Draws training tasks; none for a method that learns from nothing.
    sampler: Option<Arc<TaskSampler>>,
    pub(super) schedule: Schedule,
    pub(super) network: Network,
    pub(super) optimisers: Optimisers,
    pub(super) memory: Memory,
    validation: Option<Arc<Validation>>,
    pub(super) position: Position,
    pub(super) time: TimeSplit,
    pub(super) stop: StopHandle,
    /// The processes that train this run.
    pub(super) group: Arc<dyn Group>,
    /// Whether this process has been asked to stop.
    pub(super) wants_stop: bool,
    /// Whether all processes have heard that one of them has been.
    pub(super) is_stop_agreed: bool,
}

impl Trainer {
    /// A run that has not begun.
    pub fn new(config: &Config, benchmark: Benchmark, device: &Device) -> Result<Self, TrainError> {
        config.check_numbers()?;
        let data_set = benchmark.data_set(Split::Train);
        let samples_of: Vec<Vec<u32>> =
            data_set.rows.iter().map(|&row| benchmark.samples(row, Part::Train).to_vec()).collect();
        let input = match benchmark.store() {
            Store::Images { .. } => {
                let size = config.model.image_size as usize;
                InputShape::Image { height: size, width: size }
            }
            Store::Embeddings { dim, .. } => InputShape::Embedding { len: *dim as usize },
            Store::Empty => {
                return Err(TrainError::NoSamples {
                    path: benchmark.folder().map(Path::to_owned).unwrap_or_default(),
                });
            }
        };
        let counts: Vec<usize> = samples_of.iter().map(Vec::len).collect();
        let config = config.resolved(&counts);
        let seed = config.train.seed;
        let network = Network::new(&config, input, samples_of.len(), device)?;
        // Fails before anything is written if tasks cannot be drawn.
        let sampler = match network.method.learns_from() {
            LearnsFrom::Nothing => None,
            LearnsFrom::Batches | LearnsFrom::Tasks => {
                let pool = benchmark.task_pool(Split::Train, Part::Train);
                Some(Arc::new(TaskSampler::new(&pool, config.task.sampler_config(), seed)?))
            }
        };
        step::check_shards(&config, counts.iter().sum(), network.method.learns_from())?;
        let schedule = Schedule::new(config.schedule.clone(), config.rate, config.train.episodes, seed);
        Ok(Self {
            validation: Validation::new(&config, &benchmark)?.map(Arc::new),
            optimisers: Optimisers::new(config.optimiser, config.train.own_moments),
            benchmark: Arc::new(benchmark),
            graph: data_set.training_graph,
            samples_of,
            sampler,
            schedule,
            network,
            memory: Memory::default(),
            position: Position::default(),
            time: TimeSplit::default(),
            stop: StopHandle::default(),
            group: Arc::new(Alone),
            wants_stop: false,
            is_stop_agreed: false,
            config,
        })
    }

    /// Lets a handle stop the run within a batch, as a break from its progress does.
    #[must_use]
    pub fn with_stop(mut self, stop: StopHandle) -> Self {
        self.stop = stop;
        self
    }

    /// Trains the run with a group of processes. Each has a trainer with the same settings and the same state.
    ///
    /// `train.shards` must be at least as many: a process without a shard would have nothing to do.
    pub fn join(&mut self, group: Arc<dyn Group>) -> Result<(), TrainError> {
        let (shards, size) = (self.config.train.shards, group.size());
        if size > shards {
            return Err(TrainError::Setting {
                key: "train.shards".into(),
                reason: format!(
                    "the work of a step is divided into {shards}, but there are {size} processes; start at most {shards} of \
                     them, or a new run with more shards"
                ),
            });
        }
        self.group = group;
        Ok(())
    }

    /// The network as it is now.
    pub fn network(&mut self) -> &mut Network {
        &mut self.network
    }

    /// The memory as it is now.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The settings, with every interval worked out.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What a file of the model as it is now says beside its tensors.
    pub fn info(&self) -> ModelInfo {
        let last = self.position.validation.as_ref();
        ModelInfo::new(&self.config, &self.network, &self.benchmark, self.position.episode, last)
    }

    /// Writes the model as it is now.
    pub fn save_model(&self, path: &Path) -> Result<(), TrainError> {
        TrainedModel::save(path, &self.info(), &self.network, &self.memory)
    }

    /// The model as it is now, with the memory of test time.
    pub fn into_model(mut self) -> Result<TrainedModel, TrainError> {
        self.refresh(&self.config.memory.as_tested())?;
        self.fit_method()?;
        Ok(TrainedModel { info: self.info(), network: self.network, memory: self.memory })
    }

    /// Whether there are validation tasks.
    pub fn validates(&self) -> bool {
        self.validation.is_some()
    }

    /// The benchmark trained on.
    pub fn benchmark(&self) -> &Benchmark {
        &self.benchmark
    }

    /// Episodes of the whole run.
    pub fn episodes(&self) -> u64 {
        self.config.train.episodes
    }

    /// Where the run stands.
    pub fn position(&self) -> &Position {
        &self.position
    }

    /// Goes on from the newest checkpoint in `folder`, if there is one. What was trained after it and lost is removed.
    pub fn resume(&mut self, folder: &Path) -> Result<Resumed, TrainError> {
        let resumed = self.load(folder)?;
        best::remove_after(folder, self.position.episode)?;
        self.position.best = self.position.best.filter(|best| best::path(folder, best.episode).is_file());
        Ok(resumed)
    }

    /// Takes the state of the newest sound checkpoint in `folder`, if there is one.
    pub fn load(&mut self, folder: &Path) -> Result<Resumed, TrainError> {
        let checkpoints = self.checkpoints(folder);
        let resumed = checkpoints.load_newest(&mut self.network, &mut self.optimisers, &mut self.memory)?;
        self.position = resumed.position.clone().unwrap_or_default();
        Ok(resumed)
    }

    /// All that another process needs to go on from where this one stands, with the same settings.
    pub fn state(&self) -> Result<Vec<u8>, TrainError> {
        let Self { config, position, network, optimisers, memory, .. } = self;
        Checkpoints::new(PathBuf::new(), config).to_bytes(position, network, optimisers, memory)
    }

    /// Takes the [`state`](Self::state) of another process.
    pub fn set_state(&mut self, state: &[u8]) -> Result<(), TrainError> {
        let Self { config, network, optimisers, memory, .. } = self;
        self.position =
            Checkpoints::new(PathBuf::new(), config).restore(state, network, optimisers, memory)?;
        Ok(())
    }

    /// Trains until all episodes are done or it is stopped, by a break from `on_progress` or by the run's handle. Checkpoints
    /// go to `folder`, one when it ends too; without a folder nothing is written, and the last model counts.
    ///
    /// `on_progress` is called after every episode, with a report after every `train.log_every` of them and after the last.
    pub fn run(
        &mut self,
        folder: Option<&Path>,
        on_progress: impl FnMut(u64, Option<&Progress>) -> ControlFlow<()> + Send,
    ) -> Result<(), TrainError> {
        // A thread outside the pool sleeps and is woken in every parallel step, which a small batch has dozens of.
        rayon::scope(|_| self.run_in_pool(folder, on_progress))
    }

    fn run_in_pool(
        &mut self,
        folder: Option<&Path>,
        mut on_progress: impl FnMut(u64, Option<&Progress>) -> ControlFlow<()>,
    ) -> Result<(), TrainError> {
        match self.train(folder, &mut on_progress) {
            // What was under way has been taken back, so that this is a sound place to go on from.
            Err(TrainError::Interrupted) => self.save_checkpoint(folder),
            outcome => outcome,
        }
    }

    fn train(
        &mut self,
        folder: Option<&Path>,
        on_progress: &mut impl FnMut(u64, Option<&Progress>) -> ControlFlow<()>,
    ) -> Result<(), TrainError> {
        (self.wants_stop, self.is_stop_agreed) = (false, false);
        if self.position.unreported && self.finish_episode(folder, on_progress)?.is_break() {
            return Ok(());
        }
        let Some(sampler) = self.sampler.clone() else {
            // Nothing is learned: only memory and accuracy are computed.
            self.position.episode = self.config.train.episodes;
            return self.finish_episode(folder, on_progress).map(drop);
        };
        if self.network.method.is_refitted() {
            let graph = Arc::new(self.benchmark.data_set(Split::Train).whole_graph);
            self.network.method.take_graph(&graph);
        }
        let mut loader = self.loader(sampler);
        let mut search = HopSearch::new(&self.graph);
        while self.position.episode < self.config.train.episodes {
            let t = self.position.episode;
            if self.refresh_is_due() && self.position.refreshed_at != Some(t) {
                // The refresh comes last: where either is interrupted, both are still to be done.
                if self.network.method.is_refitted() {
                    self.fit_method()?;
                }
                self.refresh(&self.config.memory.clone())?;
            }
            let kind = self.step(&mut loader, &mut search)?;
            self.time.steps = self.network.time;
            self.position.episode += 1;
            self.position.few_shot += u64::from(kind == StepKind::FewShot);
            if self.finish_episode(folder, on_progress)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// What follows an episode: at the end the memory of test time, now and then validation, a report, a checkpoint. Where it is
    /// interrupted all of this is still to be done.
    fn finish_episode(
        &mut self,
        folder: Option<&Path>,
        on_progress: &mut impl FnMut(u64, Option<&Progress>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, TrainError> {
        let done = self.position.episode;
        let ended = done == self.config.train.episodes;
        let validation = if ended || done.is_multiple_of(self.config.validation.every) {
            let before = (self.memory.clone(), self.position.clone());
            let learned_by = self.network.method.prior().cloned();
            let result = self.validate(folder, ended);
            if result.is_err() {
                (self.memory, self.position) = before;
                self.position.unreported = true;
            }
            // The fit for validation is also that of training only where a refresh went with it.
            if self.position.refreshed_at != Some(done)
                && let Some(prior) = learned_by
            {
                self.network.method.set_prior(prior);
            }
            result?
        } else {
            None
        };
        self.position.unreported = false;
        let is_report_due = validation.is_some() || ended || done.is_multiple_of(self.config.train.log_every);
        let report = is_report_due.then(|| self.report(validation));
        self.wants_stop |= on_progress(done, report.as_ref()).is_break() || self.stop.is_stopped();
        // Several processes stop after the same episode: the one in which all have heard of it.
        let stop = if self.group.size() == 1 { self.wants_stop } else { self.is_stop_agreed };
        if stop || ended || done.is_multiple_of(self.config.train.checkpoint_every) {
            self.save_checkpoint(folder)?;
        }
        Ok(if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn save_checkpoint(&mut self, folder: Option<&Path>) -> Result<(), TrainError> {
        let Some(folder) = folder else { return Ok(()) };
        let started = Instant::now();
        self.checkpoints(folder).save(&self.position, &self.network, &self.optimisers, &self.memory)?;
        best::remove_superseded(folder)?;
        self.time.upkeep += started.elapsed();
        Ok(())
    }

    fn refresh_is_due(&self) -> bool {
        let is_used = self.network.method.hops().is_some();
        is_used && self.config.memory.is_due(self.position.episode)
    }

    /// Evaluates the validation tasks, and keeps the model in `folder` if it is the best so far. At the end of the run the memory
    /// becomes that of test time, whatever training used.
    fn validate(
        &mut self,
        folder: Option<&Path>,
        ended: bool,
    ) -> Result<Option<ValidationResult>, TrainError> {
        if ended {
            self.refresh(&self.config.memory.as_tested())?;
        }
        if ended || self.validation.is_some() {
            self.fit_method()?;
        }
        let Some(validation) = self.validation.clone() else { return Ok(None) };
        let as_tested = MemoryConfig { samples: 0, ..self.config.memory.as_tested() };
        let fresh = self.position.refreshed_at == Some(self.position.episode);
        let mut stale = None;
        if !fresh && self.refresh_is_due() && self.config.memory == as_tested {
            // The refresh that the next episode would begin with.
            self.refresh(&as_tested)?;
        } else if !fresh || self.config.memory != as_tested {
            // Validation changes nothing in the course of training: this memory is put back afterwards.
            stale = Some((self.memory.clone(), self.position.clone()));
            self.refresh(&as_tested)?;
        }
        let started = Instant::now();
        let nearest = self.config.pathways.nearest;
        let ranks = Ranks { group: self.group.as_ref(), stop: &self.stop };
        let result = validation.run(&self.network, &self.memory, nearest, &self.benchmark, ranks)?;
        let reached = Best {
            episode: self.position.episode,
            accuracy: result.reached(self.config.train.method.kind()).mean,
        };
        let is_best = self.position.best.is_none_or(|best| reached.accuracy > best.accuracy);
        self.position.validation = Some(result.clone());
        let kept_in = folder.filter(|_| is_best);
        if let Some(folder) = kept_in {
            std::fs::create_dir_all(folder).map_err(|source| TrainError::Io {
                action: "create",
                path: folder.to_owned(),
                source,
            })?;
            self.save_model(&best::path(folder, reached.episode))?;
        }
        if let Some((memory, position)) = stale {
            self.memory = memory;
            self.position = Position { validation: Some(result.clone()), ..position };
        }
        if kept_in.is_some() {
            self.position.best = Some(reached);
        }
        self.time.upkeep += started.elapsed();
        Ok(Some(result))
    }

    /// Fits the method to the current embeddings of the training classes, if it needs that.
    fn fit_method(&mut self) -> Result<(), TrainError> {
        let started = Instant::now();
        let Network { embedder, method, .. } = &mut self.network;
        let seed = self.config.train.seed;
        let fitting = Fitting { embedder, benchmark: &self.benchmark, texts: None, seed };
        let ranks = Ranks { group: self.group.as_ref(), stop: &self.stop };
        fit_method(method.as_mut(), &fitting, ranks)?;
        self.time.memory += started.elapsed();
        Ok(())
    }

    fn checkpoints(&self, folder: &Path) -> Checkpoints {
        Checkpoints::new(folder.to_owned(), &self.config)
    }

    fn refresh(&mut self, config: &MemoryConfig) -> Result<(), TrainError> {
        let started = Instant::now();
        let refresh = Refresh {
            store: self.benchmark.store(),
            samples_of: &self.samples_of,
            config,
            augmented: &self.config.augment.view(),
            seed: self.config.train.seed,
            number: self.position.refreshes,
        };
        let ranks = Ranks { group: self.group.as_ref(), stop: &self.stop };
        self.memory = refresh.run(&mut self.network.embedder, ranks)?;
        self.position.refreshes += 1;
        self.position.refreshed_at = Some(self.position.episode);
        self.time.memory += started.elapsed();
        Ok(())
    }

    fn report(&mut self, validation: Option<ValidationResult>) -> Progress {
        let t = self.position.episode;
        let Means { few_shot, auxiliary } = std::mem::take(&mut self.position.means);
        Progress {
            episode: t,
            few_shot: few_shot.mean(),
            auxiliary: auxiliary.mean(),
            lambda: self.schedule.lambda(t),
            rate: self.schedule.rate(t, self.position.few_shot),
            validation,
            time: self.time,
        }
    }
}
