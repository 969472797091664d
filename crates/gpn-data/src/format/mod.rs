//! File formats, read with every size checked before memory is taken.

pub mod archive;
pub mod element;
pub mod image;
mod jpeg;
pub(crate) mod map;
pub mod natural;
pub mod npy;
pub(crate) mod pickle;
mod tar_index;
mod zip_index;

use std::io::Write as _;
use std::path::Path;

use crate::DataError;

/// Writes a file beside its final place and renames it, so that it is either complete or as before.
pub(crate) fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), DataError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)
        .map_err(|error| DataError::io("write beside", path, error))?;
    file.write_all(bytes)
        .and_then(|()| file.as_file().sync_all())
        .map_err(|error| DataError::io("write", path, error))?;
    file.persist(path).map(drop).map_err(|error| DataError::io("rename", path, error.error))
}
