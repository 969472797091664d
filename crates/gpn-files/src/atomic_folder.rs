//! A directory of files, there as a whole or not at all.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::beside::{behind_links, folder_of, name_of, partials_of, sync_folder, with_partial_name};
use crate::error_kind::ErrorKind;
use crate::lock::{FileLock, Holder};

/// Why a directory cannot be begun.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// Another process is writing the same directory.
    #[error("{0} is writing it right now; wait until that ends, or choose another directory")]
    Busy(Holder),
    /// The operating system refused.
    #[error("cannot write the directory: {0}")]
    Io(#[from] io::Error),
}

impl FolderError {
    /// What kind of failure it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Busy(_) => ErrorKind::Conflict,
            Self::Io(error) => ErrorKind::of_io(error),
        }
    }
}

/// A directory being filled beside its place, which it takes in [`commit`](Self::commit). Dropped before, it leaves
/// nothing. One process at a time fills a directory: it holds the lock `.NAME.lock` beside it.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// let target = folder.path().join("pages");
/// let pages = gpn_files::AtomicFolder::create(&target).unwrap();
/// std::fs::write(pages.path().join("1.txt"), "once upon a time")?;
/// assert!(!target.exists());
/// pages.commit()?;
/// assert!(target.join("1.txt").exists());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct AtomicFolder {
    beside: TempDir,
    target: PathBuf,
    // Dropped last: the place is free when all else is done.
    _lock: FileLock,
}

impl AtomicFolder {
    /// Begins to fill; folders above are made where they are missing.
    pub fn create(target: &Path) -> Result<Self, FolderError> {
        let target = behind_links(target);
        let name = name_of(&target)?;
        let parent = folder_of(&target);
        fs::create_dir_all(parent)?;
        let lock = FileLock::attempt_beside(&target)?.map_err(FolderError::Busy)?;
        // Every other writer would hold the lock: what lies here is of killed ones.
        for stale in partials_of(&target)? {
            if stale.is_dir() {
                fs::remove_dir_all(stale)?;
            }
        }
        let beside = with_partial_name(name, 0o777, |builder| builder.tempdir_in(parent))?;
        Ok(Self { beside, target, _lock: lock })
    }

    /// Where to write the files.
    pub fn path(&self) -> &Path {
        self.beside.path()
    }

    /// Forces everything to the disk and puts the directory into its place. One that is there already is replaced: the
    /// caller has made sure that it may be.
    pub fn commit(self) -> io::Result<()> {
        let Self { beside, target, _lock } = self;
        sync_tree(beside.path())?;
        if target.exists() {
            // The old directory is then where the new one was, and goes with it.
            exchange(beside.path(), &target)?;
            sync_folder(folder_of(&target))?;
            return beside.close();
        }
        fs::rename(beside.path(), &target)?;
        // There is nothing left to remove.
        let _ = beside.keep();
        sync_folder(folder_of(&target))
    }
}

fn sync_tree(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_tree(&entry.path())?;
        } else {
            // Some systems force only what may be written.
            File::options().read(true).write(true).open(entry.path())?.sync_all()?;
        }
    }
    sync_folder(folder)
}

/// Lets two directories change places: in one step where the system can, otherwise in two renames.
fn exchange(new: &Path, old: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        if renameat_with(CWD, new, CWD, old, RenameFlags::EXCHANGE).is_ok() {
            return Ok(());
        }
    }
    let mut aside = new.as_os_str().to_owned();
    aside.push(".old");
    let aside = PathBuf::from(aside);
    fs::rename(old, &aside)?;
    if let Err(error) = fs::rename(new, old) {
        // Back to what was there; the first error is the one to report.
        let _ = fs::rename(&aside, old);
        return Err(error);
    }
    fs::rename(&aside, new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_and_nothing_left() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("deep/bench");
        let first = AtomicFolder::create(&target).unwrap();
        assert!(matches!(AtomicFolder::create(&target), Err(FolderError::Busy(_))));
        fs::write(first.path().join("a"), "half").unwrap();
        drop(first);
        assert_eq!(fs::read_dir(folder.path().join("deep")).unwrap().count(), 0);
        drop(AtomicFolder::create(&target).unwrap());
    }

    #[test]
    fn a_directory_is_replaced_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("bench");
        fs::create_dir_all(folder.path().join(".bench.killed.partial/deep")).unwrap();
        for (file, text) in [("a", "one"), ("b", "two")] {
            let next = AtomicFolder::create(&target).unwrap();
            fs::write(next.path().join(file), text).unwrap();
            next.commit().unwrap();
        }
        assert!(!target.join("a").exists());
        assert_eq!(fs::read_to_string(target.join("b")).unwrap(), "two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
