//! Files that are either old or complete, never half written.

use std::path::Path;

use crate::ReportError;

/// Writes a file so that it is the old one or the new one, making its folder if need be.
pub fn write_file(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> Result<(), ReportError> {
    let path = path.as_ref();
    let fail = |source| ReportError::Write { path: path.to_owned(), source };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(fail)?;
    }
    gpn_files::write(path, bytes).map_err(fail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_replaces_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/table.md");
        write_file(&path, "one").unwrap();
        write_file(&path, "two").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_refused_place_is_named() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("taken"), "").unwrap();
        let error = write_file(folder.path().join("taken/table.md"), "x").unwrap_err();
        assert!(error.to_string().contains("taken/table.md"), "{error}");
    }
}
