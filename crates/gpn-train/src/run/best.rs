//! The best model on the validation tasks so far: a model file of its own beside the checkpoints.
//!
//! A checkpoint goes with the newest best model that is not newer than it. Best models are named by their episode and removed
//! only when no checkpoint needs them any more, so that a run that goes on from any of its checkpoints ends with the
//! best model of its own course.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::checkpoint;
use crate::error::TrainError;

const PREFIX: &str = "best-";
const EXTENSION: &str = "safetensors";

/// The best result on the validation tasks so far.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// Episodes done when it was reached.
    pub episode: u64,
    /// Accuracy in percent, with the weight of the prototype before propagation that suits it best.
    pub accuracy: f64,
}

/// The file of the model that was the best after so many episodes.
pub(crate) fn path(folder: &Path, episode: u64) -> PathBuf {
    folder.join(format!("{PREFIX}{episode:010}.{EXTENSION}"))
}

/// The newest best model in a directory of checkpoints, with its episode.
pub(crate) fn newest(folder: &Path) -> Result<Option<(u64, PathBuf)>, TrainError> {
    Ok(episodes(folder)?.last().map(|&episode| (episode, path(folder, episode))))
}

/// Removes best models that no checkpoint needs.
pub(crate) fn remove_superseded(folder: &Path) -> Result<(), TrainError> {
    let found = episodes(folder)?;
    let needed: BTreeSet<u64> = checkpoint::episodes(folder)?
        .into_iter()
        .filter_map(|checkpoint| found.range(..=checkpoint).next_back().copied())
        .collect();
    remove(folder, found.difference(&needed))
}

/// Removes best models of episodes that are yet to be trained: they were lost with the process that trained them, and
/// come again.
pub(crate) fn remove_after(folder: &Path, episode: u64) -> Result<(), TrainError> {
    remove(folder, episodes(folder)?.range(episode + 1..))
}

fn remove<'a>(folder: &Path, episodes: impl IntoIterator<Item = &'a u64>) -> Result<(), TrainError> {
    for &episode in episodes {
        let path = path(folder, episode);
        std::fs::remove_file(&path).map_err(|source| TrainError::Io { action: "remove", path, source })?;
    }
    Ok(())
}

/// The episodes of all best models.
fn episodes(folder: &Path) -> Result<BTreeSet<u64>, TrainError> {
    let io = |source| TrainError::Io { action: "read", path: folder.to_owned(), source };
    let mut episodes = BTreeSet::new();
    if !folder.is_dir() {
        return Ok(episodes);
    }
    for entry in std::fs::read_dir(folder).map_err(io)? {
        let name = entry.map_err(io)?.file_name();
        let episode: Option<u64> = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.strip_suffix(EXTENSION)?.strip_suffix('.'))
            .and_then(|episode| episode.parse().ok());
        episodes.extend(episode);
    }
    Ok(episodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_checkpoint_keeps_its_best_model() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path();
        for name in ["0000000010", "0000000020", "best-0000000003", "best-0000000008", "best-0000000015"] {
            std::fs::write(folder.join(format!("{name}.safetensors")), "").unwrap();
        }
        std::fs::write(folder.join("best-notes.txt"), "").unwrap();
        remove_superseded(folder).unwrap();
        assert_eq!(episodes(folder).unwrap(), BTreeSet::from([8, 15]));
        assert_eq!(newest(folder).unwrap().unwrap().0, 15);
        // The newest checkpoint is lost: the run goes on from the one before, with what was best then.
        std::fs::remove_file(folder.join("0000000020.safetensors")).unwrap();
        remove_after(folder, 10).unwrap();
        assert_eq!(newest(folder).unwrap().unwrap(), (8, path(folder, 8)));
        assert!(folder.join("best-notes.txt").exists());
    }
}
