//! Checkpoints: all that a run needs to go on as if it had never stopped.

use std::path::{Path, PathBuf};

use gpn_model::{NamedTensor, Weights, save_weights};
use serde::{Deserialize, Serialize};

use crate::error::TrainError;
use crate::means::Means;
use crate::memory::Memory;
use crate::network::Network;
use crate::optimisers::Optimisers;
use crate::validation::ValidationResult;

pub(crate) const MEMORY: &str = "memory";
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
    /// Highest accuracy after propagation on the validation tasks so far, in percent.
    pub best: Option<f64>,
    /// Loss and accuracy since the last report.
    pub means: Means,
}

/// The directory of a run's checkpoints.
pub struct Checkpoints {
    folder: PathBuf,
    keep: usize,
}

impl Checkpoints {
    /// The checkpoints in `folder`, of which the newest `keep` are kept.
    pub fn new(folder: PathBuf, keep: usize) -> Self {
        Self { folder, keep: keep.max(1) }
    }

    /// The directory.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes a checkpoint beside and renames it; then removes those too old.
    pub fn save(
        &self,
        position: &Position,
        network: &Network,
        optimisers: &Optimisers,
        memory: &Memory,
    ) -> Result<(), TrainError> {
        let io = |action, source| TrainError::Io { action, path: self.folder.clone(), source };
        std::fs::create_dir_all(&self.folder).map_err(|source| io("create", source))?;
        let moments = optimisers.state();
        let shape = [memory.classes(), memory.dim];
        let parameters = network.state();
        let tensors = parameters.iter().chain(moments.iter()).chain([memory_tensor(memory, &shape)]);
        // invariant: a position is plain numbers, which always serialise.
        let metadata = serde_json::to_string(position).unwrap();
        save_weights(&self.path(position.episode), tensors, Some(&metadata))?;
        for old in self.episodes()?.iter().rev().skip(self.keep) {
            std::fs::remove_file(self.path(*old))
                .map_err(|source| io("remove old checkpoints in", source))?;
        }
        Ok(())
    }

    /// Loads the newest checkpoint, if there is one.
    pub fn load_newest(
        &self,
        network: &mut Network,
        optimisers: &mut Optimisers,
        memory: &mut Memory,
    ) -> Result<Option<Position>, TrainError> {
        let Some(&episode) = self.episodes()?.last() else { return Ok(None) };
        let path = self.path(episode);
        let weights = Weights::read(&path)?;
        network.load(&weights)?;
        optimisers.load(&weights)?;
        *memory = read_memory(&weights, &path)?;
        let malformed = |reason: String| TrainError::Malformed { path: path.clone(), reason };
        let metadata = weights.metadata().ok_or_else(|| malformed("it is no checkpoint of a run".into()))?;
        serde_json::from_str(metadata).map(Some).map_err(|error| malformed(error.to_string()))
    }

    fn path(&self, episode: u64) -> PathBuf {
        self.folder.join(format!("{episode:010}.{EXTENSION}"))
    }

    /// The episodes of all checkpoints, ascending.
    fn episodes(&self) -> Result<Vec<u64>, TrainError> {
        let io = |source| TrainError::Io { action: "read", path: self.folder.clone(), source };
        let mut episodes = Vec::new();
        if !self.folder.is_dir() {
            return Ok(episodes);
        }
        for entry in std::fs::read_dir(&self.folder).map_err(io)? {
            let path = entry.map_err(io)?.path();
            let is_checkpoint = path.extension().is_some_and(|extension| extension == EXTENSION);
            let stem: Option<u64> =
                path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
            episodes.extend(stem.filter(|_| is_checkpoint));
        }
        episodes.sort_unstable();
        Ok(episodes)
    }
}

/// The memory as a tensor of a file.
pub(crate) fn memory_tensor<'a>(memory: &'a Memory, shape: &'a [usize; 2]) -> NamedTensor<'a> {
    NamedTensor { name: MEMORY, shape, values: &memory.prototypes }
}

/// The memory of a file.
pub(crate) fn read_memory(weights: &Weights, path: &Path) -> Result<Memory, TrainError> {
    let tensor = weights.iter().find(|tensor| tensor.name == MEMORY).filter(|tensor| tensor.shape.len() == 2);
    let tensor = tensor.ok_or_else(|| TrainError::Malformed {
        path: path.to_owned(),
        reason: "it holds no memory of prototypes; it is not from `gpn train`".into(),
    })?;
    Ok(Memory { dim: tensor.shape[1], prototypes: tensor.values.to_vec() })
}
