//! The index of a `.tar`: names and places, without reading the content.

use std::io::Cursor;
use std::path::Path;

use super::archive::{Place, clean_name};
use crate::DataError;
use crate::progress::Watch;

const BLOCK: usize = 512;

/// Lists the regular files of a tar held in memory.
pub(super) fn index(bytes: &[u8], path: &Path, watch: &Watch<'_>) -> Result<Vec<(String, Place)>, DataError> {
    let malformed = |reason: String| DataError::malformed(path.display().to_string(), reason);
    let broken = |e: std::io::Error| malformed(format!("damaged tar archive: {e}"));
    if bytes.len() < BLOCK {
        return Err(malformed("is neither a directory nor a tar, tar.gz or zip archive".into()));
    }
    let mut archive = tar::Archive::new(Cursor::new(bytes));
    let mut entries = Vec::new();
    let mut end = 0;
    for entry in archive.entries_with_seek().map_err(broken)? {
        watch.check()?;
        let entry = entry.map_err(broken)?;
        let (start, size) = (entry.raw_file_position(), entry.size());
        end = start.saturating_add(size);
        if end > bytes.len() as u64 {
            let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            return Err(malformed(format!(
                "the entry `{name}` ends behind the end of the file, which is cut short; fetch it again"
            )));
        }
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let Some(name) = clean_name(&entry.path_bytes(), path)? else { continue };
        let place = Place { start: start as usize, stored: size as usize, inflated: None, crc: None };
        entries.push((name, place));
    }
    // A download that breaks off between two entries can only be told by the missing end mark.
    let mark = (end as usize).next_multiple_of(BLOCK);
    if bytes.get(mark..mark + BLOCK).is_none_or(|block| block.iter().any(|&byte| byte != 0)) {
        return Err(malformed("the end mark of the tar archive is missing; the file is cut short".into()));
    }
    Ok(entries)
}
