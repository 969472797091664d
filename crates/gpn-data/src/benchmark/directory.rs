//! Writing a benchmark directory so that it is either complete or not there.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::manifest::{MANIFEST, Manifest, file_hash};
use super::open::csv_fault;
use crate::error::DataError;

/// A directory being filled beside its final place. Dropped before [`Self::finish`], it is removed.
pub(super) struct UnfinishedDirectory {
    path: PathBuf,
    target: PathBuf,
    finished: bool,
}

impl UnfinishedDirectory {
    /// Starts filling; a directory already at `target` is replaced only when `replace` allows it.
    pub(super) fn create(target: &Path, replace: bool) -> Result<Self, DataError> {
        let occupied = target.exists();
        let is_benchmark = target.join(MANIFEST).exists();
        if occupied && !(replace && is_benchmark) {
            let advice = match (replace, is_benchmark) {
                (false, true) => "it holds a benchmark already; pass --force to replace it",
                (_, false) => "it exists and is no benchmark; choose another directory",
                (true, true) => unreachable!("excluded by the condition above"),
            };
            return Err(DataError::Malformed { file: target.display().to_string(), reason: advice.into() });
        }
        let mut name = target
            .file_name()
            .ok_or_else(|| DataError::Malformed {
                file: target.display().to_string(),
                reason: "it does not name a directory to create".into(),
            })?
            .to_owned();
        name.push(".partial");
        let path = target.with_file_name(name);
        if path.exists() {
            fs::remove_dir_all(&path).map_err(|error| DataError::io("remove", &path, error))?;
        }
        fs::create_dir_all(&path).map_err(|error| DataError::io("create", &path, error))?;
        Ok(Self { path, target: target.to_owned(), finished: false })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes rows as CSV with a header.
    pub(super) fn write_csv<T: Serialize>(
        &self,
        name: &str,
        rows: impl IntoIterator<Item = T>,
    ) -> Result<(), DataError> {
        let path = self.path.join(name);
        let file = fs::File::create(&path).map_err(|error| DataError::io("create", &path, error))?;
        let mut writer = csv::Writer::from_writer(BufWriter::new(file));
        for row in rows {
            writer.serialize(row).map_err(|error| csv_fault(&path, &error))?;
        }
        writer.flush().map_err(|error| DataError::io("write", &path, error))
    }

    /// Hashes all files, writes the manifest and moves the directory into place.
    pub(super) fn finish(mut self, mut manifest: Manifest) -> Result<Manifest, DataError> {
        manifest.hashes = hashes(&self.path)?;
        let text = toml::to_string(&manifest).map_err(|error| DataError::Malformed {
            file: self.target.join(MANIFEST).display().to_string(),
            reason: error.to_string(),
        })?;
        let path = self.path.join(MANIFEST);
        let mut file = fs::File::create(&path).map_err(|error| DataError::io("create", &path, error))?;
        file.write_all(text.as_bytes())
            .and_then(|()| file.sync_all())
            .map_err(|error| DataError::io("write", &path, error))?;
        if self.target.exists() {
            fs::remove_dir_all(&self.target)
                .map_err(|error| DataError::io("replace", &self.target, error))?;
        }
        fs::rename(&self.path, &self.target)
            .map_err(|error| DataError::io("move into place", &self.target, error))?;
        self.finished = true;
        Ok(manifest)
    }
}

impl Drop for UnfinishedDirectory {
    fn drop(&mut self) {
        if !self.finished {
            // Nothing can be done about a failure here; the name still says that it is partial.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
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
    fn other_directories_are_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("thesis.tex"), "years of work").unwrap();
        for replace in [false, true] {
            assert!(UnfinishedDirectory::create(folder.path(), replace).is_err());
        }
        assert!(folder.path().join("thesis.tex").exists());
    }
}
