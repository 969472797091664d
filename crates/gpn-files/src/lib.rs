//! Files that are complete or not there, even if a writer is killed or two write at the same time.
//!
//! **In** come a path and bytes. **Out** comes a file that no reader ever sees half written: [`write()`] and [`AtomicFile`]
//! write beside the target under a name of their own, force the bytes to the disk, rename, and force the folder to the
//! disk. After a power cut the target is the old file or the new one. [`AtomicFolder`] does the same for a whole
//! directory.
//!
//! A process that reads a file, changes it and writes it back holds a [`FileLock`] meanwhile. A second process waits, or
//! learns who holds the lock.
//!
//! ```
//! use gpn_files::FileLock;
//!
//! # let folder = tempfile::tempdir()?;
//! let path = folder.path().join("count.txt");
//! gpn_files::write(&path, "1")?;
//!
//! // Read, change and write as one step.
//! let lock = FileLock::wait(&path, |holder| eprintln!("waiting for {holder}"))?;
//! let count: u32 = std::fs::read_to_string(&path)?.parse().unwrap();
//! gpn_files::write(&path, (count + 1).to_string())?;
//! drop(lock);
//! assert_eq!(std::fs::read_to_string(&path)?, "2");
//! // Nothing else stays in the folder.
//! assert_eq!(std::fs::read_dir(folder.path())?.count(), 1);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Errors of this crate and of those above it say which [`ErrorKind`] they are.
//!
//! # What is left behind
//! A process that is killed while it writes leaves `.NAME.RANDOM.partial`. No reader takes it for anything, and the next
//! write of the same target removes it. Locks are `.NAME.lock` beside the target: they are advisory, end with their
//! process, and the file is removed with the lock, so that a leftover of a killed process blocks nobody.

mod atomic_file;
mod atomic_folder;
mod beside;
mod error_kind;
mod lock;

pub use atomic_file::{AtomicFile, remove_partials, write};
pub use atomic_folder::{AtomicFolder, FolderError};
pub use beside::sync_folder;
pub use error_kind::ErrorKind;
pub use lock::{FileLock, Holder};
