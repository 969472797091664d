//! Files that are either old or complete, never half written.

use crate::ReportError;
use std::io::Write as _;
use std::path::Path;

/// Writes a file beside its place and renames it, making its folder if need be.
pub fn write_file(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> Result<(), ReportError> {
    let path = path.as_ref();
    let fail = |source| ReportError::Write { path: path.to_owned(), source };
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    std::fs::create_dir_all(folder).map_err(fail)?;
    let mut file = tempfile::Builder::new().prefix(".writing-").tempfile_in(folder).map_err(fail)?;
    file.write_all(bytes.as_ref()).map_err(fail)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // Temporary files are private; a report is for whoever may read its folder.
        file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644)).map_err(fail)?;
    }
    file.persist(path).map_err(|e| fail(e.error))?;
    Ok(())
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
