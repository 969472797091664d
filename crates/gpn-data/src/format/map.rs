//! Memory-mapped files.

use std::fs::File;
use std::path::Path;

use memmap2::Mmap;

use crate::DataError;

/// Maps a whole file for reading. An empty file gives an empty map.
pub(crate) fn map_file(path: &Path) -> Result<Mmap, DataError> {
    let file = File::open(path).map_err(|e| DataError::io("open", path, e))?;
    let kind = file.metadata().map_err(|e| DataError::io("read", path, e))?;
    if !kind.is_file() {
        return Err(DataError::unfit(path.display().to_string(), "is not a regular file"));
    }
    map_open_file(&file, path)
}

/// Maps an open file; `path` is used in messages only.
pub(crate) fn map_open_file(file: &File, path: &Path) -> Result<Mmap, DataError> {
    // SAFETY: the map is only read. Data sets are not changed while they are read; a file that another
    // process cuts short meanwhile ends this process, as it does for every reader that maps files.
    unsafe { Mmap::map(file) }.map_err(|e| DataError::io("map", path, e))
}
