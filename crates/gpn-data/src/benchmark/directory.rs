//! Writing a benchmark directory so that it is either complete or not there.

use std::collections::BTreeMap;
use std::fs;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use gpn_files::{AtomicFolder, FolderError};
use serde::Serialize;

use super::integrity::{BLOCKS, blocks};
use super::manifest::{MANIFEST, Manifest, file_hash};
use super::open::csv_fault;
use crate::error::DataError;

/// A directory being filled beside its final place. Dropped before [`Self::finish`], it is removed.
pub(super) struct UnfinishedDirectory {
    folder: AtomicFolder,
    target: PathBuf,
}

impl UnfinishedDirectory {
    /// Starts filling; a directory already at `target` is replaced only when `replace` allows it. One process at a time
    /// fills a directory.
    pub(super) fn create(target: &Path, replace: bool) -> Result<Self, DataError> {
        check_target(target, replace)?;
        let refused = |reason: String| DataError::malformed(target.display().to_string(), reason);
        let folder = AtomicFolder::create(target).map_err(|error| match error {
            FolderError::Busy(holder) => refused(format!(
                "{holder} is building it right now; wait until that ends, or choose another directory"
            )),
            FolderError::Io(error) if error.kind() == std::io::ErrorKind::InvalidInput => {
                refused("it does not name a directory to create".into())
            }
            FolderError::Io(error) => DataError::io("create", target, error),
        })?;
        // Another build may have ended between the first look and the lock.
        check_target(target, replace)?;
        Ok(Self { folder, target: target.to_owned() })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes rows as CSV with a header.
    pub(super) fn write_csv<T: Serialize>(
        &self,
        name: &str,
        rows: impl IntoIterator<Item = T>,
    ) -> Result<(), DataError> {
        let path = self.path().join(name);
        let file = fs::File::create(&path).map_err(|error| DataError::io("create", &path, error))?;
        let mut writer = csv::Writer::from_writer(BufWriter::new(file));
        for row in rows {
            writer.serialize(row).map_err(|error| csv_fault(&path, &error))?;
        }
        writer.flush().map_err(|error| DataError::io("write", &path, error))
    }

    /// Hashes all files, writes the manifest and moves the directory into place.
    pub(super) fn finish(self, mut manifest: Manifest) -> Result<Manifest, DataError> {
        let blocks = blocks(self.path())?;
        if !blocks.is_empty() {
            self.write_csv(BLOCKS, blocks)?;
        }
        manifest.hashes = hashes(self.path())?;
        let text = manifest.to_text().map_err(|error| {
            DataError::malformed(self.target.join(MANIFEST).display().to_string(), error.to_string())
        })?;
        let path = self.path().join(MANIFEST);
        fs::write(&path, text).map_err(|error| DataError::io("write", &path, error))?;
        let Self { folder, target } = self;
        folder.commit().map_err(|error| DataError::io("move into place", &target, error))?;
        Ok(manifest)
    }
}

/// Refuses a place that is taken.
fn check_target(target: &Path, replace: bool) -> Result<(), DataError> {
    let advice = match (target.exists(), target.join(MANIFEST).exists()) {
        (false, _) => return Ok(()),
        (true, true) if replace => return Ok(()),
        (true, true) => "it holds a benchmark already; pass --force to replace it",
        (true, false) => "it exists and is no benchmark; choose another directory",
    };
    Err(DataError::malformed(target.display().to_string(), advice))
}

/// The BLAKE3 hash of each file of the directory, by name.
fn hashes(folder: &Path) -> Result<BTreeMap<String, String>, DataError> {
    let mut hashes = BTreeMap::new();
    for entry in fs::read_dir(folder).map_err(|error| DataError::io("read", folder, error))? {
        let path = entry.map_err(|error| DataError::io("read", folder, error))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        hashes.insert(name, file_hash(&path)?);
    }
    Ok(hashes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abandoned_directory_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("bench");
        let unfinished = UnfinishedDirectory::create(&target, false).unwrap();
        unfinished.write_csv("rows.csv", [("a", 1)]).unwrap();
        drop(unfinished);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn one_process_at_a_time_builds_a_directory() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("bench");
        let first = UnfinishedDirectory::create(&target, true).unwrap();
        let message = UnfinishedDirectory::create(&target, true).err().unwrap().to_string();
        assert!(message.contains("is building it right now"), "{message}");
        drop(first);
        assert!(UnfinishedDirectory::create(&target, true).is_ok());
    }

    #[test]
    fn other_directories_are_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("thesis.tex"), "years of work").unwrap();
        for replace in [false, true] {
            assert!(UnfinishedDirectory::create(folder.path(), replace).is_err());
        }
        assert!(folder.path().join("thesis.tex").exists());
    }
}
