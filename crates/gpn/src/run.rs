//! Runs: training that is started, resumed, extended, completed and evaluated.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use gpn_data::benchmark::{Benchmark, Check};
use gpn_model::{Device, Weights};
use gpn_train::{
    Config, Estimate, Host, ModelInfo, Origin, Progress, RunDirectory, RunModel, Shipped, StepResult,
    TimeSplit, TrainError, TrainedModel, Trainer,
};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::evaluation::{Evaluation, EvaluationRequest, TestTasks, evaluate_model};
use crate::watch::{Event, Watch};

/// How a run is started.
pub struct StartRequest<'a> {
    /// The settings.
    pub config: &'a Config,
    /// The benchmark directory, for whoever resumes the run; empty for a benchmark in memory.
    pub data: &'a Path,
    /// Weights that the backbone begins with.
    pub init: Option<&'a Path>,
    /// Whether a run at the directory may be replaced.
    pub replace: bool,
    /// The commit that the program was built from.
    pub commit: Option<String>,
    /// Where to compute.
    pub device: &'a Device,
}

impl<'a> StartRequest<'a> {
    /// A run of these settings.
    pub fn new(config: &'a Config, device: &'a Device) -> Self {
        Self { config, data: Path::new(""), init: None, replace: false, commit: None, device }
    }
}

/// How a run is resumed.
pub struct ResumeRequest<'a> {
    /// The benchmark directory, where it is not where the run began.
    pub data: Option<&'a Path>,
    /// Episodes in all, where the run is to become longer.
    pub episodes: Option<u64>,
    /// How closely the benchmark is compared with its hashes.
    pub check: Check,
    /// Where to compute.
    pub device: &'a Device,
}

/// Means over the episodes since the report before.
#[derive(Clone, Debug, Serialize)]
pub struct TrainingReport {
    /// Episodes done.
    pub episode: u64,
    /// Loss and accuracy of few-shot tasks.
    pub tasks: Option<StepResult>,
    /// Loss and accuracy of auxiliary batches.
    pub auxiliary: Option<StepResult>,
    /// Weight of the prototype before propagation.
    pub lambda: f32,
    /// Learning rate.
    pub rate: f64,
    /// Accuracy in percent on the validation tasks, before and after propagation, where they were just evaluated.
    pub validation: Option<[Estimate; 2]>,
}

impl From<&Progress> for TrainingReport {
    fn from(progress: &Progress) -> Self {
        Self {
            episode: progress.episode,
            tasks: progress.few_shot.clone(),
            auxiliary: progress.auxiliary.clone(),
            lambda: progress.lambda,
            rate: progress.rate,
            validation: progress.validation.as_ref().map(|result| [result.base(), result.method()]),
        }
    }
}

/// How training ended.
pub enum Trained {
    /// All episodes are done.
    Finished(Box<Shipped>),
    /// It was stopped and can be resumed.
    Stopped {
        /// Episodes done.
        episode: u64,
    },
}

/// A run directory that this process trains.
pub struct Run {
    pub(crate) folder: PathBuf,
    directory: RunDirectory,
    pub(crate) trainer: Trainer,
    device: Device,
    /// Whether the run has no checkpoint yet; if training fails now, the directory is removed.
    is_new: bool,
}

impl Run {
    /// Makes the directory of a new run.
    pub fn start(
        folder: &Path,
        benchmark: Benchmark,
        request: &StartRequest<'_>,
        watch: &Watch<'_>,
    ) -> Result<Self> {
        let mut trainer =
            Trainer::new(request.config, benchmark, request.device)?.with_stop(watch.stop_handle());
        if let Some(file) = request.init {
            let weights = Weights::read(file)?;
            weights.load(&mut trainer.network().embedder)?;
            if !weights.has_checksum() {
                let file = file.display();
                watch.note(&format!("{file} has no checksum; whether it is intact cannot be told"));
            }
        }
        let origin = Origin {
            program: format!("gpn {}", env!("CARGO_PKG_VERSION")),
            commit: request.commit.clone(),
            data: recorded(request.data)?,
            benchmark: trainer.benchmark().manifest().fingerprint(),
            seed: trainer.config().train.seed,
            host: Host::here(),
        };
        let directory = RunDirectory::create(folder, trainer.config(), &origin, request.replace)?;
        Ok(Self {
            folder: folder.to_owned(),
            directory,
            trainer,
            device: request.device.clone(),
            is_new: true,
        })
    }

    /// Opens a run to go on with.
    pub fn resume(folder: &Path, request: &ResumeRequest<'_>, watch: &Watch<'_>) -> Result<Self> {
        Self::resume_by(folder, request, watch, |origin| {
            Ok(Benchmark::open_with(request.data.unwrap_or(&origin.data), request.check)?)
        })
    }

    /// Opens a run to go on with on a benchmark in memory, the same that it was started on.
    pub fn resume_on(
        folder: &Path,
        benchmark: Benchmark,
        request: &ResumeRequest<'_>,
        watch: &Watch<'_>,
    ) -> Result<Self> {
        Self::resume_by(folder, request, watch, |_| Ok(benchmark))
    }

    fn resume_by(
        folder: &Path,
        request: &ResumeRequest<'_>,
        watch: &Watch<'_>,
        benchmark: impl FnOnce(&Origin) -> Result<Benchmark>,
    ) -> Result<Self> {
        let (directory, mut config, origin) = RunDirectory::open(folder)?;
        let directory = directory.locked()?;
        let taught = directory.taught();
        if !taught.is_empty() {
            return Err(Error::Conflict {
                what: directory.model().display().to_string(),
                reason: format!(
                    "it has been taught classes since it was trained ({}), and going on would write it anew; move it elsewhere first",
                    first_few(&taught)
                ),
            });
        }
        let benchmark = benchmark(&origin)?;
        if benchmark.manifest().fingerprint() != origin.benchmark {
            let data = request.data.unwrap_or(&origin.data).to_owned();
            return Err(Error::OtherBenchmark { data, run: folder.to_owned() });
        }
        let length = config.train.episodes;
        config.train.episodes = request.episodes.unwrap_or(length);
        let mut trainer = Trainer::new(&config, benchmark, request.device)?.with_stop(watch.stop_handle());
        for warning in trainer.resume(&directory.checkpoints())?.warnings {
            watch.warn(&warning);
        }
        let done = trainer.position().episode;
        if config.train.episodes != length {
            if config.train.episodes <= done {
                let reason = format!(
                    "{} has {done} episodes behind it; give the number in all, more than that",
                    folder.display()
                );
                return Err(Error::input(format!("{} episodes", config.train.episodes), reason));
            }
            directory.write_config(trainer.config())?;
        }
        directory.cut_metrics(done)?;
        Ok(Self {
            folder: folder.to_owned(),
            directory,
            trainer,
            device: request.device.clone(),
            is_new: false,
        })
    }

    /// Brings the run at `folder` to its end, whether it is new, begun or done already; false if it was stopped.
    pub fn complete(folder: &Path, request: &StartRequest<'_>, watch: &Watch<'_>) -> Result<bool> {
        let benchmark = Benchmark::open(request.data)?;
        let mut run = if folder.join("config.toml").is_file() {
            let (directory, found, origin) = RunDirectory::open(folder)?;
            let fingerprint = benchmark.manifest().fingerprint();
            let wanted = Trainer::new(request.config, benchmark, request.device)?;
            if found != *wanted.config() || fingerprint != origin.benchmark {
                return Err(Error::Conflict {
                    what: folder.display().to_string(),
                    reason: "it was trained with other settings or on other data; choose another directory, or remove this one"
                        .into(),
                });
            }
            if matches!(directory.newest_model(&found)?, Some(RunModel::Finished(_))) {
                return Ok(true);
            }
            let resume = ResumeRequest {
                data: Some(request.data),
                episodes: None,
                check: Check::Sampled,
                device: request.device,
            };
            Self::resume(folder, &resume, watch)?
        } else {
            Self::start(folder, benchmark, request, watch)?
        };
        Ok(matches!(run.train(watch)?, Trained::Finished(_)))
    }

    /// Trains until the end or until it is stopped. A new run that fails before its first checkpoint leaves nothing behind.
    pub fn train(&mut self, watch: &Watch<'_>) -> Result<Trained> {
        let outcome = self.carry_out(watch);
        if outcome.is_err() {
            self.discard_if_new()?;
        }
        outcome
    }

    /// Removes a new run that failed before its first checkpoint: it would be in the way of the corrected call.
    pub(crate) fn discard_if_new(&mut self) -> Result<()> {
        if self.is_new && self.directory.newest_checkpoint()?.is_none() {
            self.directory.discard()?;
        }
        Ok(())
    }

    fn carry_out(&mut self, watch: &Watch<'_>) -> Result<Trained> {
        let Self { directory, trainer, .. } = self;
        let total = trainer.episodes();
        let mut failed = None;
        trainer.run(Some(&directory.checkpoints()), |done, progress| {
            if let Some(Err(error)) = progress.map(|progress| directory.log(progress)) {
                failed = Some(error);
                return ControlFlow::Break(());
            }
            let report = progress.map(TrainingReport::from);
            let time = progress.map(|progress| progress.time);
            watch.tell(&Event::Episode { done, total, report: report.as_ref(), time })
        })?;
        if let Some(error) = failed {
            return Err(error.into());
        }
        let episode = trainer.position().episode;
        if episode < trainer.episodes() || trainer.position().unreported {
            return Ok(Trained::Stopped { episode });
        }
        Ok(Trained::Finished(Box::new(trainer.ship(directory)?)))
    }

    /// The model that the run has shipped: the best on the validation tasks, or the last where there are none.
    pub fn model(&self) -> Result<TrainedModel> {
        Ok(TrainedModel::read(&self.directory.model(), &self.device)?)
    }

    /// The benchmark that it trains on.
    pub fn benchmark(&self) -> &Benchmark {
        self.trainer.benchmark()
    }

    /// Evaluates that model on tasks of the run's own benchmark.
    pub fn evaluate(&self, request: &EvaluationRequest, watch: &Watch<'_>) -> Result<Evaluation> {
        let (model, benchmark) = (self.model()?, self.trainer.benchmark());
        evaluate_model(&model, benchmark, &TestTasks::of(benchmark, request)?, request, watch)
    }

    /// Where the run is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its files.
    pub fn directory(&self) -> &RunDirectory {
        &self.directory
    }

    /// Episodes done and in all.
    pub fn episodes(&self) -> (u64, u64) {
        (self.trainer.position().episode, self.trainer.episodes())
    }

    /// Whether the settings ask for validation but the benchmark has too few samples for it.
    pub fn lacks_validation(&self) -> bool {
        self.trainer.config().validation.tasks > 0 && !self.trainer.validates()
    }
}

/// The path of a benchmark as a run records it; a benchmark in memory has none.
fn recorded(data: &Path) -> Result<PathBuf> {
    if data.as_os_str().is_empty() {
        return Ok(PathBuf::new());
    }
    std::path::absolute(data).map_err(|source| Error::Io { action: "find", path: data.to_owned(), source })
}

/// The newest model at a path: a model file, the model of a finished run, or the best so far of an unfinished one. `data` is
/// needed for a run that has only checkpoints.
pub fn newest_model(path: &Path, data: &Path, device: &Device, watch: &Watch<'_>) -> Result<TrainedModel> {
    if !path.join("config.toml").is_file() {
        return Ok(TrainedModel::read(&gpn_train::model_file(path)?, device)?);
    }
    let (run, config, _) = RunDirectory::open(path)?;
    let unfinished = |what: &str, episode: u64| {
        let (path, episodes) = (path.display(), config.train.episodes);
        watch.warn(&format!(
            "{path}: its training is not finished; {what} is evaluated, after episode {episode} of {episodes}"
        ));
    };
    match run.newest_model(&config)? {
        Some(RunModel::Finished(path)) => Ok(TrainedModel::read(&path, device)?),
        Some(RunModel::BestSoFar { path, episode }) => {
            unfinished("the best model so far", episode);
            Ok(TrainedModel::read(&path, device)?)
        }
        Some(RunModel::Checkpoint { episode }) => {
            unfinished("its newest checkpoint", episode);
            let mut trainer =
                Trainer::new(&config, Benchmark::open(data)?, device)?.with_stop(watch.stop_handle());
            for warning in trainer.load(&run.checkpoints())?.warnings {
                watch.warn(&warning);
            }
            Ok(trainer.into_model()?)
        }
        None => Err(TrainError::NoCheckpoint { path: path.to_owned() }.into()),
    }
}

/// Where the time went, in percent of all of it.
pub fn time_shares(time: &TimeSplit) -> impl Iterator<Item = (&'static str, f64)> {
    let total = time.total().as_secs_f64().max(1e-9);
    let parts = [
        ("data", time.data),
        ("backbone", time.steps.backbone),
        ("propagation", time.steps.method),
        ("optimiser", time.steps.other),
        ("memory", time.memory),
        ("validation and checkpoints", time.upkeep),
        ("exchange", time.exchange),
    ];
    // A process alone has nobody to exchange anything with.
    let parts = parts.into_iter().filter(|(name, part)| *name != "exchange" || !part.is_zero());
    parts.map(move |(name, part)| (name, 100.0 * part.as_secs_f64() / total))
}

/// The accuracy of a model on the validation tasks, in words.
pub fn reached(info: &ModelInfo) -> String {
    match &info.validation {
        Some(result) if info.method().tunes_lambda => format!(
            "{} before propagation, {} after, {} mixed with lambda {}",
            result.base(),
            result.method(),
            result.reached(info.method()),
            info.lambda()
        ),
        Some(result) => result.method().to_string(),
        None => "not evaluated".into(),
    }
}

/// The first of some names, for a message.
pub(crate) fn first_few(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
