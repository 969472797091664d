//! What may be written onto: never something that we did not make, unless we are told to.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Refuses a file to be written where one is already, unless `replace` allows it.
pub fn may_write(path: &Path, replace: bool) -> Result<()> {
    if path.is_dir() {
        return Err(Error::input(path.display(), "it is a directory; name a file"));
    }
    if replace || is_stream(path) || std::fs::symlink_metadata(path).is_err() {
        return Ok(());
    }
    Err(Error::Exists { path: path.to_owned() })
}

/// Whether the path is something to write into that is not a regular file, such as /dev/stdout or a pipe.
fn is_stream(path: &Path) -> bool {
    path.starts_with("/dev") || path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Whether two paths lead to the same file, by whatever names.
pub fn same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// Makes a folder with those above it.
pub(crate) fn create_folder(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(|source| Error::Io {
        action: "create",
        path: path.to_owned(),
        source,
    })
}

/// Refuses a directory that holds something other than our own earlier output: any of the entries `own` makes it ours.
pub(crate) fn may_fill(folder: &Path, own: &[&str], what: &str) -> Result<()> {
    let refused = |reason: String| Err(Error::Conflict { what: folder.display().to_string(), reason });
    if folder.is_file() {
        return refused("it is a file; name a directory".into());
    }
    if !folder.exists() || own.iter().any(|name| folder.join(name).exists()) {
        return Ok(());
    }
    let entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
        .map_err(|source| Error::Io { action: "read", path: folder.to_owned(), source })?;
    // Hidden files, and what is left of a process that was killed, are in nobody's way.
    let in_the_way = |path: &&PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        !name.starts_with('.') && !name.contains(".partial")
    };
    match entries.iter().filter(in_the_way).min() {
        None => Ok(()),
        Some(foreign) => refused(format!(
            "it holds other files ({}) and is no {what}; name a new directory",
            foreign.file_name().unwrap_or_default().display()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_replaced_only_with_leave() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        may_write(&path, false).unwrap();
        std::fs::write(&path, "mine").unwrap();
        assert!(may_write(&path, false).unwrap_err().to_string().contains("it exists already"));
        may_write(&path, true).unwrap();
        assert!(may_write(folder.path(), true).unwrap_err().to_string().contains("it is a directory"));
        assert!(same_file(&path, &folder.path().join("./a.csv")));
        assert!(!same_file(&path, &folder.path().join("b.csv")));
    }

    #[test]
    fn a_folder_of_something_else_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let own = ["runs", "results"];
        may_fill(&folder.path().join("new"), &own, "experiment").unwrap();
        may_fill(folder.path(), &own, "experiment").unwrap();
        std::fs::write(folder.path().join("photo.jpg"), "").unwrap();
        let message = may_fill(folder.path(), &own, "experiment").unwrap_err().to_string();
        assert!(message.contains("(photo.jpg) and is no experiment"), "{message}");
        std::fs::create_dir(folder.path().join("runs")).unwrap();
        may_fill(folder.path(), &own, "experiment").unwrap();
    }
}
