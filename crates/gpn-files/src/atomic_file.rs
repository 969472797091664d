//! One file, written whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::NamedTempFile;

use crate::beside::{
    behind_links, folder_of, name_of, partials_in, partials_of, sync_folder, with_partial_name,
};

/// A part that nobody locks is removed when it is this old. A writer locks its part right after it made it, so that age
/// is needed for this moment alone.
const STALE: Duration = Duration::from_mins(10);

/// Writes a file so that it is the old one or the new one, never anything between. See [`AtomicFile`].
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(bytes.as_ref())?;
    file.commit()
}

/// A file being written beside its place, which it takes in [`commit`](Self::commit). Dropped before, it leaves nothing.
///
/// A link stays a link: the file it points to is replaced. A device or a pipe is written to directly, as there is nothing
/// to rename.
///
/// ```
/// use std::io::Write as _;
///
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("table.csv");
/// let mut file = gpn_files::AtomicFile::create(&path)?;
/// writeln!(file, "class,samples")?;
/// assert!(!path.exists());
/// file.commit()?;
/// assert_eq!(std::fs::read_to_string(&path)?, "class,samples\n");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct AtomicFile(Kind);

#[derive(Debug)]
enum Kind {
    Beside { file: BufWriter<NamedTempFile>, target: PathBuf },
    Direct(BufWriter<File>),
}

impl AtomicFile {
    /// Begins to write; the folder must be there.
    pub fn create(path: &Path) -> io::Result<Self> {
        let target = behind_links(path);
        let before = fs::metadata(&target).ok();
        if before.as_ref().is_some_and(fs::Metadata::is_dir) {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
        }
        if is_open_elsewhere(path) || before.as_ref().is_some_and(|before| !before.is_file()) {
            return Ok(Self(Kind::Direct(BufWriter::new(File::options().write(true).open(path)?))));
        }
        remove_stale(&target);
        let folder = folder_of(&target);
        let file = with_partial_name(name_of(&target)?, 0o666, |builder| builder.tempfile_in(folder))?;
        // Says that its writer lives. Where there are no locks, nothing is ever held for stale.
        let _ = file.as_file().try_lock();
        if let Some(before) = before {
            // Whoever might read the old file may read the new one; a file system without permissions has none to lose.
            let _ = file.as_file().set_permissions(before.permissions());
        }
        Ok(Self(Kind::Beside { file: BufWriter::with_capacity(1 << 16, file), target }))
    }

    /// Forces what is written so far to the disk. Called now and then while a long file is written, it spares
    /// [`commit`](Self::commit) a long wait.
    pub fn sync(&mut self) -> io::Result<()> {
        self.flush()?;
        match &self.0 {
            Kind::Beside { file, .. } => file.get_ref().as_file().sync_data(),
            Kind::Direct(_) => Ok(()),
        }
    }

    /// Forces the bytes to the disk and puts the file into its place.
    pub fn commit(self) -> io::Result<()> {
        match self.0 {
            Kind::Beside { file, target } => {
                let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
                file.as_file().sync_all()?;
                file.persist(&target).map_err(|error| error.error)?;
                sync_folder(folder_of(&target))
            }
            Kind::Direct(mut file) => file.flush(),
        }
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Kind::Beside { file, .. } => file.write(bytes),
            Kind::Direct(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Kind::Beside { file, .. } => file.flush(),
            Kind::Direct(file) => file.flush(),
        }
    }
}

impl Seek for AtomicFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match &mut self.0 {
            Kind::Beside { file, .. } => file.seek(to),
            Kind::Direct(file) => file.seek(to),
        }
    }
}

/// Removes what killed writers left in a folder; nothing where there is no such folder. The caller holds a lock under which
/// nobody else begins to write there.
pub fn remove_partials(folder: &Path) -> io::Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    for path in partials_in(folder)? {
        if is_abandoned(&path) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Removes what killed writers of `target` left behind. Whatever fails here is no reason not to write.
fn remove_stale(target: &Path) {
    let now = SystemTime::now();
    for path in partials_of(target).unwrap_or_default() {
        let is_old = path
            .metadata()
            .and_then(|metadata| metadata.modified())
            .is_ok_and(|written| now.duration_since(written).is_ok_and(|age| age > STALE));
        if is_old && is_abandoned(&path) {
            let _ = fs::remove_file(&path);
        }
    }
}

/// Whether a part is one that no living writer holds.
fn is_abandoned(path: &Path) -> bool {
    path.is_file() && File::open(path).is_ok_and(|file| file.try_lock().is_ok())
}

/// Whether a path is a link to what a process has open. `/dev/shm` is a folder like others.
fn is_open_elsewhere(path: &Path) -> bool {
    ["/proc", "/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr"].iter().any(|open| path.starts_with(open))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_given_up_leaves_the_old_one_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        write(&path, "old").unwrap();
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(&vec![b'x'; 1 << 20]).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(names(folder.path()).len(), 2);
        drop(file);
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(names(folder.path()), ["a"]);
    }

    #[test]
    fn writers_of_one_file_do_not_meet() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let mut first = AtomicFile::create(&path).unwrap();
        let mut second = AtomicFile::create(&path).unwrap();
        first.write_all(b"first").unwrap();
        second.write_all(b"second").unwrap();
        second.commit().unwrap();
        first.commit().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "first");
        assert_eq!(names(folder.path()), ["a"]);
    }

    #[test]
    fn parts_of_killed_writers_are_removed_and_those_of_living_ones_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let long_ago = SystemTime::now() - Duration::from_hours(2);
        for name in [".a.killed.partial", ".a.young.partial", ".a.b.other.partial"] {
            let part = File::create(folder.path().join(name)).unwrap();
            if name != ".a.young.partial" {
                part.set_modified(long_ago).unwrap();
            }
        }
        let living = AtomicFile::create(&path).unwrap();
        let Kind::Beside { file, .. } = &living.0 else { panic!("a plain file is written beside") };
        file.get_ref().as_file().set_modified(long_ago).unwrap();
        write(&path, "new").unwrap();
        let left = names(folder.path());
        assert_eq!(left.len(), 4, "{left:?}");
        assert!(!left.contains(&".a.killed.partial".to_owned()), "{left:?}");
        remove_partials(folder.path()).unwrap();
        assert_eq!(names(folder.path()).len(), 2, "the new file and what is still being written");
        living.commit().unwrap();
        remove_partials(&folder.path().join("absent")).unwrap();
    }

    #[test]
    fn files_in_memory_are_files() {
        for path in ["/dev/stdout", "/dev/fd/3", "/proc/self/fd/1"] {
            assert!(is_open_elsewhere(Path::new(path)), "{path}");
        }
        for path in ["/dev/shm/run/model.safetensors", "/dev/null", "dev/stdout"] {
            assert!(!is_open_elsewhere(Path::new(path)), "{path}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_permissions_and_devices_stay_what_they_are() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let folder = tempfile::tempdir().unwrap();
        let [real, link] = ["real", "link"].map(|name| folder.path().join(name));
        write(&real, "old").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("real", &link).unwrap();
        write(&link, "new").unwrap();
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "new");
        assert_eq!(real.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        write(Path::new("/dev/null"), "gone").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        assert_eq!(write(folder.path(), "x").unwrap_err().kind(), io::ErrorKind::IsADirectory);
    }
}
