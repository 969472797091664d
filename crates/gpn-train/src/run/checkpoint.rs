//! Checkpoints: all that a run needs to go on as if it had never stopped.

use std::path::{Path, PathBuf};

use gpn_model::{Memory, ModelError, Weights, weight_bytes};
use serde::{Deserialize, Serialize};

use super::best::Best;
use crate::error::TrainError;
use crate::learn::means::Means;
use crate::learn::network::Network;
use crate::learn::optimisers::Optimisers;
use crate::learn::validation::ValidationResult;
use crate::model::file::{memory_tensor, read_memory};
use crate::settings::Config;

const EXTENSION: &str = "safetensors";

/// Where a run stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Position {
    /// Episodes done.
    pub episode: u64,
    /// Few-shot episodes among them.
    pub few_shot: u64,
    /// Refreshes of the memory done.
    pub refreshes: u64,
    /// Episodes done when the memory was last refreshed.
    pub refreshed_at: Option<u64>,
    /// The last result on the validation tasks.
    pub validation: Option<ValidationResult>,
    /// The best result on the validation tasks so far.
    pub best: Option<Best>,
    /// Loss and accuracy since the last report.
    pub means: Means,
    /// The run was stopped after a training step and before the validation and report that follow it.
    #[serde(default)]
    pub unreported: bool,
}

/// What a checkpoint says beside its tensors.
#[derive(Serialize, Deserialize)]
struct CheckpointInfo {
    /// Fingerprint of the settings that it was made with.
    settings: String,
    /// How the run rounded, see [`Embedder::rounding`](gpn_model::Embedder::rounding).
    rounding: String,
    position: Position,
}

/// The result of loading a checkpoint.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resumed {
    /// Where the run stands; `None` where there was no checkpoint.
    pub position: Option<Position>,
    /// What a user should know, one sentence each.
    pub warnings: Vec<String>,
}

/// The directory of a run's checkpoints.
pub struct Checkpoints {
    folder: PathBuf,
    keep: usize,
    settings: String,
}

impl Checkpoints {
    /// The checkpoints in `folder` of a run with these settings; the newest `train.keep_checkpoints` are kept.
    pub fn new(folder: PathBuf, config: &Config) -> Self {
        Self { folder, keep: config.train.keep_checkpoints.max(1), settings: config.fingerprint() }
    }

    /// Writes a checkpoint, whole or not at all; then removes those too old.
    pub fn save(
        &self,
        position: &Position,
        network: &Network,
        optimisers: &Optimisers,
        memory: &Memory,
    ) -> Result<(), TrainError> {
        let io = |action, source| TrainError::Io { action, path: self.folder.clone(), source };
        std::fs::create_dir_all(&self.folder).map_err(|source| io("create", source))?;
        let path = self.path(position.episode);
        let bytes = self.to_bytes(position, network, optimisers, memory)?;
        gpn_files::write(&path, bytes).map_err(|source| TrainError::Io { action: "write", path, source })?;
        for old in episodes(&self.folder)?.iter().rev().skip(self.keep) {
            std::fs::remove_file(self.path(*old))
                .map_err(|source| io("remove old checkpoints in", source))?;
        }
        Ok(())
    }

    /// The bytes of a checkpoint.
    pub(crate) fn to_bytes(
        &self,
        position: &Position,
        network: &Network,
        optimisers: &Optimisers,
        memory: &Memory,
    ) -> Result<Vec<u8>, TrainError> {
        let moments = optimisers.state();
        let shape = [memory.classes(), memory.dim];
        let parameters = network.state();
        let tensors = parameters.iter().chain(moments.iter()).chain([memory_tensor(memory, &shape)]);
        let info = CheckpointInfo {
            settings: self.settings.clone(),
            rounding: network.embedder.rounding().to_owned(),
            position: position.clone(),
        };
        // invariant: a position is plain numbers, which always serialise.
        let metadata = serde_json::to_string(&info).unwrap();
        Ok(weight_bytes(tensors, Some(&metadata))?)
    }

    /// Takes all from the bytes of a checkpoint that another process has just made.
    pub(crate) fn restore(
        &self,
        bytes: &[u8],
        network: &mut Network,
        optimisers: &mut Optimisers,
        memory: &mut Memory,
    ) -> Result<Position, TrainError> {
        let path = Path::new("the state of rank 0");
        let (weights, info) = parse(bytes, path)?;
        self.take(&weights, &info, path, network, optimisers, memory)?;
        Ok(info.position)
    }

    /// Takes network, optimisers and memory from a checkpoint.
    fn take(
        &self,
        weights: &Weights,
        info: &CheckpointInfo,
        path: &Path,
        network: &mut Network,
        optimisers: &mut Optimisers,
        memory: &mut Memory,
    ) -> Result<(), TrainError> {
        let refused = |reason: String| Err(TrainError::Malformed { path: path.to_owned(), reason });
        if info.settings != self.settings {
            return refused(
                "it was made with other settings than config.toml has now; put config.toml back as it was, or start \
                 another run"
                    .into(),
            );
        }
        network.load(weights)?;
        optimisers.load(weights)?;
        *memory = read_memory(weights, path)?;
        let (classes, dim) = (network.head.classes(), network.embedder.embedding_len());
        if memory.classes() > 0 && (memory.classes() != classes || memory.dim != dim) {
            return refused(format!("its memory is not one of {classes} classes and length {dim}"));
        }
        Ok(())
    }

    /// Loads the newest checkpoint that is sound, if there is any. Newer ones that are damaged are put aside, with a warning.
    pub fn load_newest(
        &self,
        network: &mut Network,
        optimisers: &mut Optimisers,
        memory: &mut Memory,
    ) -> Result<Resumed, TrainError> {
        let mut damaged: Vec<(PathBuf, String)> = Vec::new();
        for &episode in episodes(&self.folder)?.iter().rev() {
            let path = self.path(episode);
            let (weights, info) = match read(&path) {
                Ok(found) => found,
                Err(error) if is_damage(&error) => {
                    damaged.push((path, error.to_string()));
                    continue;
                }
                Err(error) => return Err(error),
            };
            self.take(&weights, &info, &path, network, optimisers, memory)?;
            let mut warnings = Vec::with_capacity(damaged.len());
            for (path, reason) in &damaged {
                warnings.push(format!("{reason}; {}", put_aside(path, episode)?));
            }
            let here = network.embedder.rounding();
            if info.rounding != here {
                warnings.push(format!(
                    "{}: it was computed with {} rounding, and here it is {here}: the run goes on, but not to the very model \
                     that it would have become there",
                    path.display(),
                    info.rounding
                ));
            }
            return Ok(Resumed { position: Some(info.position), warnings });
        }
        match damaged.first() {
            None => Ok(Resumed::default()),
            Some((_, reason)) => Err(TrainError::Malformed {
                path: self.folder.clone(),
                reason: format!("no checkpoint of the run is sound, start it anew; the newest: {reason}"),
            }),
        }
    }

    fn path(&self, episode: u64) -> PathBuf {
        self.folder.join(format!("{episode:010}.{EXTENSION}"))
    }
}

/// The episodes of all checkpoints in a directory, ascending.
pub(crate) fn episodes(folder: &Path) -> Result<Vec<u64>, TrainError> {
    let io = |source| TrainError::Io { action: "read", path: folder.to_owned(), source };
    let mut episodes = Vec::new();
    if !folder.is_dir() {
        return Ok(episodes);
    }
    for entry in std::fs::read_dir(folder).map_err(io)? {
        let path = entry.map_err(io)?.path();
        let is_checkpoint = path.extension().is_some_and(|extension| extension == EXTENSION);
        let stem: Option<u64> =
            path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
        episodes.extend(stem.filter(|_| is_checkpoint));
    }
    episodes.sort_unstable();
    Ok(episodes)
}

/// A checkpoint's tensors and what it says of itself.
fn read(path: &Path) -> Result<(Weights, CheckpointInfo), TrainError> {
    described(Weights::read(path)?, path)
}

/// The same for the bytes of one; `path` is its name in messages.
fn parse(bytes: &[u8], path: &Path) -> Result<(Weights, CheckpointInfo), TrainError> {
    described(Weights::from_bytes(bytes, path)?, path)
}

fn described(weights: Weights, path: &Path) -> Result<(Weights, CheckpointInfo), TrainError> {
    let malformed = |reason: String| TrainError::Malformed { path: path.to_owned(), reason };
    let metadata = weights.metadata().ok_or_else(|| malformed("it is no checkpoint of a run".into()))?;
    let info = serde_json::from_str(metadata).map_err(|error| malformed(error.to_string()))?;
    Ok((weights, info))
}

/// Renames a damaged checkpoint: it must not count among those kept. Says so.
fn put_aside(path: &Path, episode: u64) -> Result<String, TrainError> {
    let aside = path.with_extension(format!("{EXTENSION}.damaged"));
    std::fs::rename(path, &aside).map_err(|source| TrainError::Io {
        action: "rename",
        path: path.to_owned(),
        source,
    })?;
    let name = aside.file_name().unwrap_or_default().display();
    Ok(format!("it is now called {name}, and the run goes on from the checkpoint before, episode {episode}"))
}

/// Whether a file was read but is not what was written.
fn is_damage(error: &TrainError) -> bool {
    match error {
        TrainError::Model(error) => matches!(
            error,
            ModelError::NotSafetensors { .. } | ModelError::Damaged { .. } | ModelError::NotFinite { .. }
        ),
        TrainError::Malformed { .. } => true,
        _ => false,
    }
}
