//! Writing a benchmark directory so that it is either complete or not there.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use super::integrity::{BLOCKS, blocks};
use super::manifest::{MANIFEST, Manifest, file_hash};
use super::plan::{Plan, write_rows};
use crate::error::DataError;
use crate::progress::{Watch, WatchedWriter};
use gpn_files::{AtomicFolder, FolderError};

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
        let folder = AtomicFolder::create(target).map_err(|error| match error {
            FolderError::Busy(holder) => DataError::Busy { path: target.to_owned(), holder },
            FolderError::Io(error) if error.kind() == std::io::ErrorKind::InvalidInput => {
                DataError::unfit(target.display().to_string(), "it does not name a directory to create")
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

    /// Writes one of the tables.
    fn write_table(
        &self,
        name: &str,
        watch: &Watch<'_>,
        content: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
    ) -> Result<(), DataError> {
        let path = self.path().join(name);
        let file = fs::File::create(&path).map_err(|error| DataError::io("create", &path, error))?;
        let mut file = BufWriter::new(WatchedWriter { inner: file, watch });
        content(&mut file).and_then(|()| file.flush()).map_err(|error| {
            if watch.is_stopped() { DataError::Interrupted } else { DataError::io("write", &path, error) }
        })
    }

    /// Writes the tables, hashes all files, writes the manifest and moves the directory into place. The array of samples
    /// is there already.
    pub(super) fn finish(self, plan: &Plan, watch: &Watch<'_>) -> Result<Manifest, DataError> {
        for name in plan.tables() {
            self.write_table(name, watch, |out| plan.write_table(name, out))?;
        }
        let blocks = blocks(self.path(), watch)?;
        if !blocks.is_empty() {
            self.write_table(BLOCKS, watch, |out| write_rows(out, blocks))?;
        }
        let mut manifest = plan.manifest.clone();
        manifest.hashes = hashes(self.path(), watch)?;
        let text = manifest.to_text().map_err(|error| {
            DataError::malformed(self.target.join(MANIFEST).display().to_string(), error.to_string())
        })?;
        let path = self.path().join(MANIFEST);
        fs::write(&path, text).map_err(|error| DataError::io("write", &path, error))?;
        watch.check()?;
        let Self { folder, target } = self;
        folder.commit().map_err(|error| DataError::io("move into place", &target, error))?;
        Ok(manifest)
    }
}

/// Refuses a place that is taken.
fn check_target(target: &Path, replace: bool) -> Result<(), DataError> {
    let path = target.to_owned();
    match (target.exists(), target.join(MANIFEST).exists()) {
        (false, _) => Ok(()),
        (true, true) if replace => Ok(()),
        (true, true) => Err(DataError::BenchmarkExists { path }),
        (true, false) => Err(DataError::TargetTaken { path }),
    }
}

/// The BLAKE3 hash of each file of the directory, by name.
fn hashes(folder: &Path, watch: &Watch<'_>) -> Result<BTreeMap<String, String>, DataError> {
    let mut hashes = BTreeMap::new();
    for entry in fs::read_dir(folder).map_err(|error| DataError::io("read", folder, error))? {
        let path = entry.map_err(|error| DataError::io("read", folder, error))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        hashes.insert(name, file_hash(&path, watch)?);
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
        unfinished.write_table("rows.csv", &Watch::unwatched(), |out| write_rows(out, [("a", 1)])).unwrap();
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
