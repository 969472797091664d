//! Writers, one format per file. A file appears whole or not at all.

mod csv;
mod dot;
mod json;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::error::TaxonomyError;

pub use csv::write_csv;
pub use dot::write_dot;
pub use json::write_json;

/// Writes beside `path` and renames at the end, so that a reader never sees a part of the file.
fn atomically(
    path: &Path,
    content: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
) -> Result<(), TaxonomyError> {
    let fail = |source| TaxonomyError::Write { path: path.to_path_buf(), source };
    let Some(name) = path.file_name() else {
        return Err(fail(std::io::Error::new(std::io::ErrorKind::InvalidInput, "not a file name")));
    };
    let mut beside = name.to_owned();
    beside.push(format!(".{}.partial", std::process::id()));
    let beside = path.with_file_name(beside);
    let written = File::create(&beside).and_then(|file| {
        let mut out = BufWriter::new(file);
        content(&mut out)?;
        out.flush()?;
        out.get_ref().sync_all()?;
        std::fs::rename(&beside, path)
    });
    written.map_err(|error| {
        // The first error is the one to report; the part may not even exist.
        let _ = std::fs::remove_file(&beside);
        fail(error)
    })
}

#[cfg(test)]
mod tests {
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
