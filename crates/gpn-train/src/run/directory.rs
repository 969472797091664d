//! The run directory: settings, origin, metrics, checkpoints and the model.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};

use gpn_files::FileLock;
use gpn_model::Weights;
use gpn_taxonomy::plain_words;
use serde::{Deserialize, Serialize};

use super::events::{self, Events};
use super::metrics::{METRICS, MetricsLine};
use super::trainer::Progress;
use super::{best, checkpoint};
use crate::error::TrainError;
use crate::model::file::ModelInfo;
use crate::settings::Config;

const CONFIG: &str = "config.toml";
const ORIGIN: &str = "run.json";
const MODEL: &str = "model.safetensors";
const LAST: &str = "last.safetensors";
const CARD: &str = "model_card.md";
const CHECKPOINTS: &str = "checkpoints";
const LOCK: &str = ".lock";
/// The files of a run, without checkpoints and lock. The settings go first when a run is removed: what is left is no run.
const FILES: [&str; 7] = [CONFIG, ORIGIN, METRICS, MODEL, LAST, CARD, events::NAME];

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

/// The newest model of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunModel {
    /// That of a run that came to its end.
    Finished(PathBuf),
    /// The best on the validation tasks of a run that goes on or was stopped.
    BestSoFar {
        /// Its file.
        path: PathBuf,
        /// Episodes it was trained for.
        episode: u64,
    },
    /// Only the state of the newest checkpoint, to be loaded by [`Trainer::load`](crate::Trainer::load).
    Checkpoint {
        /// Episodes it was trained for.
        episode: u64,
    },
}

/// The model file that a path means: that file, or the model of a run that came to its end.
pub fn model_file(path: &Path) -> Result<PathBuf, TrainError> {
    let file = path.join(MODEL);
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    if file.is_file() {
        return Ok(file);
    }
    let path = path.to_owned();
    if path.join(CONFIG).is_file() {
        let best = best::newest(&path.join(CHECKPOINTS))?;
        return Err(TrainError::Unfinished { path, best });
    }
    Err(TrainError::NoModel { path })
}

/// A run directory.
pub struct RunDirectory {
    folder: PathBuf,
    /// Whether the directory was made for this run.
    made: bool,
    events: Events,
    /// Held while this process trains the run.
    lock: Option<FileLock>,
}

impl RunDirectory {
    /// Makes the directory of a new run, for this process alone. One that holds a run already is an error unless `replace`
    /// allows to remove that run; one that holds anything else always is.
    pub fn create(
        folder: &Path,
        config: &Config,
        origin: &Origin,
        replace: bool,
    ) -> Result<Self, TrainError> {
        let mut run = Self::at(folder);
        run.check_vacant(replace)?;
        run.made = !folder.exists();
        fs::create_dir_all(folder).map_err(|source| io("create", folder, source))?;
        let run = run.locked()?;
        // Again, now that no other process can begin a run here.
        run.check_vacant(replace)?;
        run.remove_files()?;
        // invariant: settings and origin are plain data, which always serialise.
        run.write(ORIGIN, &serde_json::to_string_pretty(origin).unwrap())?;
        run.write_config(config)?;
        run.events.restart()?;
        Ok(run)
    }

    /// Whether a run may begin here: in a new or empty directory, or in one with what is left of a start that failed.
    fn check_vacant(&self, replace: bool) -> Result<(), TrainError> {
        let refused = |reason: String| Err(TrainError::Conflict { path: self.folder.clone(), reason });
        if self.folder.is_file() {
            return refused("it is a file; name a directory".into());
        }
        if self.folder.join(CONFIG).exists() && self.folder.join(ORIGIN).exists() {
            if replace {
                return Ok(());
            }
            return Err(TrainError::RunExists { path: self.folder.clone() });
        }
        let Ok(entries) = fs::read_dir(&self.folder) else { return Ok(()) };
        let is_left_over = |name: &str| {
            name.starts_with('.') || name.contains(".partial") || [ORIGIN, events::NAME].contains(&name)
        };
        let mut foreign: Vec<String> = entries
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| !is_left_over(name))
            .collect();
        foreign.sort();
        match foreign.first() {
            Some(name) => refused(format!(
                "it holds other files ({name}) and is no run; name a new directory, which will be made"
            )),
            None => Ok(()),
        }
    }

    /// Removes the files of the run that is here, and no others.
    fn remove_files(&self) -> Result<(), TrainError> {
        let remove = |path: PathBuf| match fs::remove_file(&path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => Err(io("remove", &path, source)),
            _ => Ok(()),
        };
        FILES.iter().try_for_each(|name| remove(self.folder.join(name)))?;
        let Ok(entries) = fs::read_dir(self.checkpoints()) else { return Ok(()) };
        let saved = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "safetensors");
        entries.flatten().map(|entry| entry.path()).filter(saved).try_for_each(remove)?;
        // Whatever else lies there is not ours.
        let _ = fs::remove_dir(self.checkpoints());
        Ok(())
    }

    /// Removes a run that failed before its first checkpoint, so that the corrected call can use the directory.
    pub fn discard(&mut self) -> Result<(), TrainError> {
        self.remove_files()?;
        // Its file goes with it.
        drop(self.lock.take());
        if self.made {
            // A directory that somebody has put something into by now stays.
            let _ = fs::remove_dir(&self.folder);
        }
        Ok(())
    }

    fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), made: false, events: Events::new(folder), lock: None }
    }

    /// Writes the settings: those of a new run, or the new length of an old one.
    pub fn write_config(&self, config: &Config) -> Result<(), TrainError> {
        // invariant: settings are plain data, which always serialise.
        self.write(CONFIG, &toml::to_string(config).unwrap())
    }

    /// Opens the directory of a run, with its settings and where it comes from.
    pub fn open(folder: &Path) -> Result<(Self, Config, Origin), TrainError> {
        let run = Self::at(folder);
        let path = run.folder.join(CONFIG);
        let text = fs::read_to_string(&path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => TrainError::NotARun { path: run.folder.clone() },
            _ => io("read", &path, source),
        })?;
        let config = Config::from_run_file(&text, &path)?;
        let path = run.folder.join(ORIGIN);
        let text = fs::read_to_string(&path).map_err(|source| io("read", &path, source))?;
        let origin = serde_json::from_str(&text)
            .map_err(|error| TrainError::Malformed { path, reason: plain_words(&error.to_string()) })?;
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
                return Err(TrainError::Conflict {
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
        self.folder.join(CHECKPOINTS)
    }

    /// The model file.
    pub fn model(&self) -> PathBuf {
        self.folder.join(MODEL)
    }

    /// The file of the model after the last episode.
    pub fn last_model(&self) -> PathBuf {
        self.folder.join(LAST)
    }

    /// Episodes done at the newest checkpoint, if there is one.
    pub fn newest_checkpoint(&self) -> Result<Option<u64>, TrainError> {
        Ok(checkpoint::episodes(&self.checkpoints())?.last().copied())
    }

    /// The newest model of the run with these settings, if there is one yet.
    pub fn newest_model(&self, config: &Config) -> Result<Option<RunModel>, TrainError> {
        let checkpoint = self.newest_checkpoint()?;
        // The model of a run that is being made longer is still that of its first end.
        let ended = checkpoint.is_none_or(|episode| episode >= config.train.episodes);
        if ended && self.model().is_file() {
            return Ok(Some(RunModel::Finished(self.model())));
        }
        if let Some((episode, path)) = best::newest(&self.checkpoints())? {
            return Ok(Some(RunModel::BestSoFar { path, episode }));
        }
        Ok(checkpoint.map(|episode| RunModel::Checkpoint { episode }))
    }

    /// Ids of the classes that the model of this run has been taught since it was trained.
    pub fn taught(&self) -> Vec<String> {
        // A model that cannot be read has nothing to lose.
        let metadata =
            Weights::read(&self.model()).ok().and_then(|weights| weights.metadata().map(str::to_owned));
        let info = metadata.and_then(|text| serde_json::from_str::<ModelInfo>(&text).ok());
        info.map_or_else(Vec::new, |info| info.taught.into_iter().map(|class| class.id).collect())
    }

    /// Drops metrics and events after `episode`: a run that goes on from a checkpoint writes them anew.
    pub fn cut_metrics(&self, episode: u64) -> Result<(), TrainError> {
        self.events.restart()?;
        let path = self.folder.join(METRICS);
        let Ok(file) = fs::File::open(&path) else { return Ok(()) };
        let mut kept = String::new();
        for line in BufReader::new(file).lines() {
            let line = line.map_err(|source| io("read", &path, source))?;
            match serde_json::from_str::<MetricsLine>(&line) {
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
        let line = MetricsLine::new(progress);
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
        self.write(CARD, card)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), TrainError> {
        let path = self.folder.join(name);
        gpn_files::write(&path, text).map_err(|source| io("write", &path, source))
    }
}

fn io(action: &'static str, path: &Path, source: std::io::Error) -> TrainError {
    TrainError::Io { action, path: path.to_owned(), source }
}
