//! What a command may write onto: never something that it did not make, unless it is told to.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

/// Refuses a file to be written where one is already, unless `force` allows to replace it.
pub(crate) fn may_write(path: &Path, force: bool) -> anyhow::Result<()> {
    ensure!(!path.is_dir(), "{}: it is a directory; name a file", path.display());
    ensure!(
        force || is_stream(path) || std::fs::symlink_metadata(path).is_err(),
        "{}: it exists already; name another file, or pass --force to replace it",
        path.display()
    );
    Ok(())
}

/// Whether something is there to write into that is no file to replace, such as /dev/stdout or a pipe.
fn is_stream(path: &Path) -> bool {
    path.starts_with("/dev") || path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Whether two paths lead to the same file, by whatever names.
pub(crate) fn same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// Refuses a directory that holds something else than a command's own earlier output, by which it is known: any of the entries
/// `own` makes it the command's own.
pub(crate) fn may_fill(folder: &Path, own: &[&str], what: &str) -> anyhow::Result<()> {
    let shown = folder.display();
    ensure!(!folder.is_file(), "{shown}: it is a file; name a directory");
    if !folder.exists() || own.iter().any(|name| folder.join(name).exists()) {
        return Ok(());
    }
    let entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
        .with_context(|| format!("{shown}: cannot read"))?;
    // Hidden files, and what is left of a command that was killed, are in nobody's way.
    let in_the_way = |path: &&PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        !name.starts_with('.') && !name.contains(".partial")
    };
    let foreign = entries.iter().filter(in_the_way).min();
    ensure!(
        foreign.is_none(),
        "{shown}: it holds other files ({}) and is no {what}; name a new directory",
        foreign.and_then(|path| path.file_name()).unwrap_or_default().display()
    );
    Ok(())
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
        assert!(may_write(&path, false).unwrap_err().to_string().contains("pass --force"));
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
