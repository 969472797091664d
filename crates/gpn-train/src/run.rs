//! The run directory: settings, origin, metrics, checkpoints and the model.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};

use gpn_files::FileLock;
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::error::TrainError;
use crate::events::Events;
use crate::trainer::Progress;

const CONFIG: &str = "config.toml";
const ORIGIN: &str = "run.json";
const METRICS: &str = "metrics.jsonl";
const LOCK: &str = ".lock";

/// Where a run comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The program.
    pub program: String,
    /// The commit it was built from, where known.
    pub commit: Option<String>,
    /// The benchmark directory, as given.
    pub data: PathBuf,
    /// Fingerprint of the benchmark.
    pub benchmark: String,
    /// Seed of everything random.
    pub seed: u64,
    /// The machine that started it.
    pub host: Host,
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Operating system and processor family, such as `linux x86_64`.
    pub system: String,
    /// Threads used.
    pub threads: usize,
    /// Instruction set of the CPU kernels.
    pub simd: String,
}

impl Host {
    /// This machine.
    pub fn here() -> Self {
        Self {
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            threads: rayon::current_num_threads(),
            simd: gpn_model::simd_name().to_owned(),
        }
    }
}

/// A run directory.
pub struct RunDirectory {
    folder: PathBuf,
    events: Events,
    /// Held while this process trains the run.
    lock: Option<FileLock>,
}

/// One line of `metrics.jsonl`.
#[derive(Serialize, Deserialize)]
struct Line {
    episode: u64,
    loss: Option<f32>,
    accuracy: Option<f32>,
    auxiliary_loss: Option<f32>,
    auxiliary_accuracy: Option<f32>,
    /// Accuracy on the validation tasks in percent, before and after propagation.
    validation_base: Option<f64>,
    validation: Option<f64>,
    lambda: f32,
    rate: f64,
    seconds: f64,
    seconds_data: f64,
    seconds_backbone: f64,
    seconds_propagation: f64,
    seconds_memory: f64,
}

impl Line {
    fn new(progress: &Progress) -> Self {
        let time = progress.time;
        let (tasks, auxiliary) = (progress.few_shot.as_ref(), progress.auxiliary.as_ref());
        Self {
            episode: progress.episode,
            loss: tasks.map(|result| result.loss),
            accuracy: tasks.map(|result| result.accuracy),
            auxiliary_loss: auxiliary.map(|result| result.loss),
            auxiliary_accuracy: auxiliary.map(|result| result.accuracy),
            validation_base: progress.validation.as_ref().map(|result| result.base().mean),
            validation: progress.validation.as_ref().map(|result| result.method().mean),
            lambda: progress.lambda,
            rate: progress.rate,
            seconds: time.total().as_secs_f64(),
            seconds_data: time.data.as_secs_f64(),
            seconds_backbone: time.steps.backbone.as_secs_f64(),
            seconds_propagation: time.steps.method.as_secs_f64(),
            seconds_memory: time.memory.as_secs_f64(),
        }
    }

    /// The numbers for TensorBoard.
    fn scalars(&self) -> Vec<(&'static str, f64)> {
        let given = [
            ("task/loss", self.loss.map(f64::from)),
            ("task/accuracy", self.accuracy.map(f64::from)),
            ("auxiliary/loss", self.auxiliary_loss.map(f64::from)),
            ("auxiliary/accuracy", self.auxiliary_accuracy.map(f64::from)),
            ("validation/before_propagation", self.validation_base),
            ("validation/after_propagation", self.validation),
            ("schedule/lambda", Some(f64::from(self.lambda))),
            ("schedule/rate", Some(self.rate)),
        ];
        given.into_iter().filter_map(|(tag, value)| Some((tag, value?))).collect()
    }
}

impl RunDirectory {
    /// Makes the directory of a new run, for this process alone; one that holds a run already is an error.
    pub fn create(folder: &Path, config: &Config, origin: &Origin) -> Result<Self, TrainError> {
        let run = Self::at(folder);
        run.refuse_existing()?;
        fs::create_dir_all(folder).map_err(|source| io("create", folder, source))?;
        // Before anything is written: of two that begin at once, one has the directory.
        let run = run.locked()?;
        run.refuse_existing()?;
        // invariant: settings and origin are plain data, which always serialise.
        run.write(ORIGIN, &serde_json::to_string_pretty(origin).unwrap())?;
        run.write(CONFIG, &toml::to_string(config).unwrap())?;
        run.events.restart()?;
        Ok(run)
    }

    fn refuse_existing(&self) -> Result<(), TrainError> {
        if !self.folder.join(CONFIG).exists() {
            return Ok(());
        }
        Err(TrainError::Malformed {
            path: self.folder.clone(),
            reason: "it holds a run already; go on with `gpn train --resume`, or choose another directory"
                .into(),
        })
    }

    fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), events: Events::new(folder), lock: None }
    }

    /// Opens the directory of a run, with its settings and where it comes from.
    pub fn open(folder: &Path) -> Result<(Self, Config, Origin), TrainError> {
        let run = Self::at(folder);
        let path = run.folder.join(CONFIG);
        let text = fs::read_to_string(&path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => TrainError::Malformed {
                path: run.folder.clone(),
                reason: format!(
                    "it is no run (no {CONFIG}); start one with `gpn train --data DIR --out RUN`"
                ),
            },
            _ => io("read", &path, source),
        })?;
        let config = Config::from_run_file(&text, &path)?;
        let path = run.folder.join(ORIGIN);
        let text = fs::read_to_string(&path).map_err(|source| io("read", &path, source))?;
        let origin = serde_json::from_str(&text)
            .map_err(|error| TrainError::Malformed { path, reason: error.to_string() })?;
        Ok((run, config, origin))
    }

    /// The same for this process alone, until it is dropped: two that train one run would spoil it.
    pub fn locked(mut self) -> Result<Self, TrainError> {
        if self.lock.is_some() {
            return Ok(self);
        }
        let path = self.folder.join(LOCK);
        match FileLock::attempt(&path).map_err(|source| io("lock", &path, source))? {
            Ok(lock) => self.lock = Some(lock),
            Err(holder) => {
                return Err(TrainError::Malformed {
                    path: self.folder,
                    reason: format!("{holder} is training this run; wait until it ends, or stop it"),
                });
            }
        }
        for folder in [&self.folder, &self.checkpoints()] {
            gpn_files::remove_partials(folder).map_err(|source| io("tidy", folder, source))?;
        }
        Ok(self)
    }

    /// The directory of checkpoints.
    pub fn checkpoints(&self) -> PathBuf {
        self.folder.join("checkpoints")
    }

    /// The model file.
    pub fn model(&self) -> PathBuf {
        self.folder.join("model.safetensors")
    }

    /// Drops metrics and events after `episode`: a run that goes on from a checkpoint writes them anew.
    pub fn cut_metrics(&self, episode: u64) -> Result<(), TrainError> {
        self.events.restart()?;
        let path = self.folder.join(METRICS);
        let Ok(file) = fs::File::open(&path) else { return Ok(()) };
        let mut kept = String::new();
        for line in BufReader::new(file).lines() {
            let line = line.map_err(|source| io("read", &path, source))?;
            match serde_json::from_str::<Line>(&line) {
                Ok(parsed) if parsed.episode <= episode => {
                    self.events.add(parsed.episode, &parsed.scalars())?;
                    kept.push_str(&line);
                    kept.push('\n');
                }
                // A line cut short by a kill, or one after the checkpoint.
                _ => break,
            }
        }
        self.write(METRICS, &kept)
    }

    /// Appends to the metrics and to the TensorBoard events.
    pub fn log(&self, progress: &Progress) -> Result<(), TrainError> {
        let path = self.folder.join(METRICS);
        let line = Line::new(progress);
        // invariant: a line is plain numbers, which always serialise.
        let text = serde_json::to_string(&line).unwrap();
        fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .and_then(|mut file| writeln!(file, "{text}"))
            .map_err(|source| io("write", &path, source))?;
        self.events.add(line.episode, &line.scalars())
    }

    /// Writes the model card.
    pub fn write_card(&self, card: &str) -> Result<(), TrainError> {
        self.write("model_card.md", card)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), TrainError> {
        let path = self.folder.join(name);
        gpn_files::write(&path, text).map_err(|source| io("write", &path, source))
    }
}

fn io(action: &'static str, path: &Path, source: std::io::Error) -> TrainError {
    TrainError::Io { action, path: path.to_owned(), source }
}
