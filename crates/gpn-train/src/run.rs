//! The run directory: settings, origin, metrics, checkpoints and the model.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};

use gpn_data::benchmark::Benchmark;
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::error::TrainError;
use crate::trainer::Progress;

const CONFIG: &str = "config.toml";
const ORIGIN: &str = "run.json";
const METRICS: &str = "metrics.jsonl";

/// Where a run comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The program.
    pub program: String,
    /// The benchmark directory, as given.
    pub data: PathBuf,
    /// Fingerprint of the benchmark.
    pub benchmark: String,
}

/// A run directory.
pub struct RunDirectory {
    folder: PathBuf,
}

/// One line of `metrics.jsonl`.
#[derive(Serialize, Deserialize)]
struct Line {
    episode: u64,
    loss: Option<f32>,
    accuracy: Option<f32>,
    auxiliary_loss: Option<f32>,
    auxiliary_accuracy: Option<f32>,
    lambda: f32,
    rate: f64,
    seconds: f64,
}

impl RunDirectory {
    /// Makes the directory of a new run; one that holds a run already is an error.
    pub fn create(
        folder: &Path,
        config: &Config,
        data: &Path,
        benchmark: &Benchmark,
    ) -> Result<Self, TrainError> {
        let run = Self { folder: folder.to_owned() };
        if run.folder.join(CONFIG).exists() {
            return Err(TrainError::Malformed {
                path: run.folder,
                reason:
                    "it holds a run already; go on with `gpn train --resume`, or choose another directory"
                        .into(),
            });
        }
        fs::create_dir_all(&run.folder).map_err(|source| io("create", &run.folder, source))?;
        let origin = Origin {
            program: format!("gpn {}", env!("CARGO_PKG_VERSION")),
            data: data.to_owned(),
            benchmark: benchmark.manifest().fingerprint(),
        };
        // invariant: settings and origin are plain data, which always serialise.
        run.write(ORIGIN, &serde_json::to_string_pretty(&origin).unwrap())?;
        run.write(CONFIG, &toml::to_string(config).unwrap())?;
        Ok(run)
    }

    /// Opens the directory of a run, with its settings and where it comes from.
    pub fn open(folder: &Path) -> Result<(Self, Config, Origin), TrainError> {
        let run = Self { folder: folder.to_owned() };
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
        let config = Config::default().with_toml(&text, &path)?;
        let path = run.folder.join(ORIGIN);
        let text = fs::read_to_string(&path).map_err(|source| io("read", &path, source))?;
        let origin = serde_json::from_str(&text)
            .map_err(|error| TrainError::Malformed { path, reason: error.to_string() })?;
        Ok((run, config, origin))
    }

    /// The directory of checkpoints.
    pub fn checkpoints(&self) -> PathBuf {
        self.folder.join("checkpoints")
    }

    /// The model file.
    pub fn model(&self) -> PathBuf {
        self.folder.join("model.safetensors")
    }

    /// Drops metrics after `episode`: a run that goes on from a checkpoint writes them anew.
    pub fn cut_metrics(&self, episode: u64) -> Result<(), TrainError> {
        let path = self.folder.join(METRICS);
        let Ok(file) = fs::File::open(&path) else { return Ok(()) };
        let mut kept = String::new();
        for line in BufReader::new(file).lines() {
            let line = line.map_err(|source| io("read", &path, source))?;
            match serde_json::from_str::<Line>(&line) {
                Ok(parsed) if parsed.episode <= episode => {
                    kept.push_str(&line);
                    kept.push('\n');
                }
                // A line cut short by a kill, or one after the checkpoint.
                _ => break,
            }
        }
        self.write(METRICS, &kept)
    }

    /// Appends a line of metrics.
    pub fn log(&self, progress: &Progress) -> Result<(), TrainError> {
        let path = self.folder.join(METRICS);
        let time = progress.time;
        let line = Line {
            episode: progress.episode,
            loss: progress.few_shot.as_ref().map(|result| result.loss),
            accuracy: progress.few_shot.as_ref().map(|result| result.accuracy),
            auxiliary_loss: progress.auxiliary.as_ref().map(|result| result.loss),
            auxiliary_accuracy: progress.auxiliary.as_ref().map(|result| result.accuracy),
            lambda: progress.lambda,
            rate: progress.rate,
            seconds: (time.data + time.steps + time.memory).as_secs_f64(),
        };
        // invariant: a line is plain numbers, which always serialise.
        let text = serde_json::to_string(&line).unwrap();
        fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .and_then(|mut file| writeln!(file, "{text}"))
            .map_err(|source| io("write", &path, source))
    }

    fn write(&self, name: &str, text: &str) -> Result<(), TrainError> {
        let path = self.folder.join(name);
        let beside = self.folder.join(format!("{name}.partial"));
        fs::write(&beside, text)
            .and_then(|()| fs::rename(&beside, &path))
            .map_err(|source| io("write", &path, source))
    }
}

fn io(action: &'static str, path: &Path, source: std::io::Error) -> TrainError {
    TrainError::Io { action, path: path.to_owned(), source }
}
