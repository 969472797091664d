//! Locks over reading, changing and writing back.

use std::fmt;
use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::beside::{behind_links, folder_of, hidden, name_of};

/// How long a lock is waited for in silence.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);
/// What is read of a lock file at most.
const LONGEST: u64 = 1024;

/// Who holds a lock, as far as its file tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Number of the process.
    pub process: Option<u32>,
    /// Name of the machine.
    pub host: Option<String>,
    /// The lock file.
    pub file: PathBuf,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.process, &self.host) {
            (Some(process), Some(host)) => write!(f, "process {process} on {host}"),
            (Some(process), None) => write!(f, "process {process}"),
            _ => f.write_str("another process"),
        }
    }
}

/// A lock that this process holds until it is dropped, or until the process ends in whatever way.
///
/// Locks are advisory: they bind those who ask for them. A file system without locks gives every lock at once, as before
/// there were any.
#[derive(Debug)]
pub struct FileLock {
    file: File,
    path: PathBuf,
}

impl FileLock {
    /// Locks `target`, by `.NAME.lock` beside it, and waits as long as another holds it. `on_wait` is told who, once,
    /// when that takes more than a moment.
    pub fn wait(target: &Path, on_wait: impl FnOnce(&Holder)) -> io::Result<Self> {
        let path = beside(target)?;
        let started = Instant::now();
        let mut on_wait = Some(on_wait);
        loop {
            match Self::attempt(&path)? {
                Ok(lock) => return Ok(lock),
                Err(holder) if started.elapsed() > PATIENCE => {
                    if let Some(tell) = on_wait.take() {
                        tell(&holder);
                    }
                }
                Err(_) => {}
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Locks `target`, by `.NAME.lock` beside it, or tells who holds it.
    pub fn attempt_beside(target: &Path) -> io::Result<Result<Self, Holder>> {
        Self::attempt(&beside(target)?)
    }

    /// Locks by a lock file of this name, or tells who holds it.
    pub fn attempt(path: &Path) -> io::Result<Result<Self, Holder>> {
        loop {
            let file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => return Ok(Err(holder(file, path))),
                Err(TryLockError::Error(error)) if error.kind() != io::ErrorKind::Unsupported => {
                    return Err(error);
                }
                Ok(()) | Err(TryLockError::Error(_)) => {}
            }
            // Whoever held it may have removed the file between opening and locking: such a lock binds nobody.
            if is_still_at(&file, path) {
                let lock = Self { file, path: path.to_owned() };
                // On a full disk the lock file stays empty, and the lock still holds.
                let _ = lock.sign();
                return Ok(Ok(lock));
            }
        }
    }

    /// Writes who holds the lock, for those who wait.
    fn sign(&self) -> io::Result<()> {
        let mut file = &self.file;
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{} {}", std::process::id(), host_name().unwrap_or_default())
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Removed while the lock is held. Whoever waits for this very file sees afterwards that it is gone, and asks
        // anew. Where that cannot be told, the file stays.
        #[cfg(unix)]
        if is_still_at(&self.file, &self.path) {
            let _ = std::fs::remove_file(&self.path);
        }
        let _ = self.file.unlock();
    }
}

/// The lock file of a target.
fn beside(target: &Path) -> io::Result<PathBuf> {
    let target = behind_links(target);
    Ok(folder_of(&target).join(hidden(name_of(&target)?, ".lock")))
}

/// Whether a path still leads to an open file.
fn is_still_at(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
        let there = path.symlink_metadata().map(identity).ok();
        there.is_some() && there == file.metadata().map(identity).ok()
    }
    #[cfg(not(unix))]
    {
        let _ = (file, path);
        true
    }
}

/// Who signed a lock file.
fn holder(file: File, path: &Path) -> Holder {
    let mut text = String::new();
    // What cannot be read names nobody.
    let _ = file.take(LONGEST).read_to_string(&mut text);
    let mut words = text.split_whitespace();
    Holder {
        process: words.next().and_then(|word| word.parse().ok()),
        host: words.next().map(str::to_owned),
        file: path.to_owned(),
    }
}

/// The name of this machine, where the system tells it.
fn host_name() -> Option<String> {
    let text = ["/proc/sys/kernel/hostname", "/etc/hostname"]
        .iter()
        .find_map(|file| std::fs::read_to_string(file).ok())
        .or_else(|| std::env::var("COMPUTERNAME").or_else(|_| std::env::var("HOSTNAME")).ok())?;
    let name: String = text.trim().chars().filter(char::is_ascii_graphic).collect();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_second_one_is_told_who_holds_it() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("model");
        let lock = FileLock::wait(&target, |_| ()).unwrap();
        let holder = FileLock::attempt_beside(&target).unwrap().unwrap_err();
        assert_eq!(holder.process, Some(std::process::id()));
        assert!(holder.to_string().starts_with("process "), "{holder}");
        assert_eq!(holder.file, folder.path().join(".model.lock"));
        drop(lock);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        drop(FileLock::attempt_beside(&target).unwrap().unwrap());
    }

    #[test]
    fn a_lock_file_that_nobody_holds_blocks_nobody() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(".model.lock"), "1 elsewhere\n").unwrap();
        assert!(FileLock::attempt_beside(&folder.path().join("model")).unwrap().is_ok());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn many_count_together_and_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("count");
        crate::write(&target, "0").unwrap();
        let inside = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..25 {
                        let _lock = FileLock::wait(&target, |_| ()).unwrap();
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two hold the lock");
                        let count: u32 = std::fs::read_to_string(&target).unwrap().parse().unwrap();
                        crate::write(&target, (count + 1).to_string()).unwrap();
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "100");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_and_its_file_have_one_lock() {
        let folder = tempfile::tempdir().unwrap();
        let [real, link] = ["real", "link"].map(|name| folder.path().join(name));
        std::fs::write(&real, "").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let _lock = FileLock::wait(&real, |_| ()).unwrap();
        assert!(FileLock::attempt_beside(&link).unwrap().is_err());
    }
}
