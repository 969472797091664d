//! Writers, one format per file. A file appears whole or not at all.

mod csv;
mod dot;
mod json;

use std::path::Path;

use gpn_files::AtomicFile;

use crate::error::TaxonomyError;

pub use csv::{write_csv, write_csv_to};
pub use dot::{write_dot, write_dot_to};
pub use json::write_json;

/// Writes beside `path` and renames at the end, so that a reader never sees a part of the file.
fn atomically(
    path: &Path,
    content: impl FnOnce(&mut AtomicFile) -> std::io::Result<()>,
) -> Result<(), TaxonomyError> {
    let write = || {
        let mut out = AtomicFile::create(path)?;
        content(&mut out)?;
        out.commit()
    };
    write().map_err(|source| TaxonomyError::Write { path: path.to_path_buf(), source })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("graph.csv");
        std::fs::write(&path, "old").unwrap();
        let failed = atomically(&path, |out| {
            out.write_all(b"half")?;
            Err(std::io::Error::other("disk full"))
        });
        assert!(failed.unwrap_err().to_string().ends_with("graph.csv: cannot write: disk full"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(atomically(&folder.path().join("no/such"), |_| Ok(())).is_err());
    }
}
