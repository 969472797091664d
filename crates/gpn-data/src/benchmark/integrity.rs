//! Whether the files of a benchmark directory are as they were built.
//!
//! `benchmark.toml` has the hash of every other file, and in its last line its own. `blocks.csv` has the hash of each block
//! of the stored samples, so that some of them can be checked without reading gigabytes.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::manifest::{MANIFEST, Manifest, StoreInfo, file_hash};
use super::open::{ASSIGNMENTS, CLASSES, SAMPLES, TAXONOMY, read_rows};
use super::store::{EMBEDDINGS, IMAGES};
use crate::error::DataError;
use crate::format::map::map_file;
use crate::progress::Watch;

/// The hashes of blocks.
pub(super) const BLOCKS: &str = "blocks.csv";
/// Bytes of a block.
const BLOCK: usize = 1 << 20;
/// Blocks that a check by sample looks at.
const SAMPLED: usize = 32;

/// How closely a benchmark is looked at when it is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Check {
    /// Tables whole, stored samples by 32 blocks spread over them (32 MiB), always the same ones.
    #[default]
    Sampled,
    /// Every byte of every file.
    All,
    /// No hash is compared. Files that do not fit together are errors all the same: for directories changed on purpose.
    Nothing,
}

/// A row of `blocks.csv`.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BlockRow {
    file: String,
    start: u64,
    blake3: String,
}

/// The rows of `blocks.csv` for the stored samples in `folder`.
pub(super) fn blocks(folder: &Path, watch: &Watch<'_>) -> Result<Vec<BlockRow>, DataError> {
    let mut rows = Vec::new();
    for name in [IMAGES, EMBEDDINGS] {
        let path = folder.join(name);
        if !path.exists() {
            continue;
        }
        let bytes = map_file(&path)?;
        let hash = |block: &[u8]| {
            watch.check()?;
            Ok(blake3::hash(block).to_hex().to_string())
        };
        let hashes: Vec<String> = bytes.par_chunks(BLOCK).map(hash).collect::<Result<_, DataError>>()?;
        rows.extend(hashes.into_iter().enumerate().map(|(number, blake3)| BlockRow {
            file: name.to_owned(),
            start: (number * BLOCK) as u64,
            blake3,
        }));
    }
    Ok(rows)
}

/// An error that names the files of `folder` that are not as built, if there are any.
pub(super) fn verify(folder: &Path, manifest: &Manifest, check: Check) -> Result<(), DataError> {
    if check == Check::Nothing {
        return Ok(());
    }
    let mut changed = Vec::new();
    let (tables, stored) = files(&manifest.store);
    for &name in tables {
        if !is_as_built(folder, manifest, name)? {
            changed.push(name);
        }
    }
    // A table of blocks that has changed says nothing about blocks.
    if let Some(name) = stored.filter(|_| !changed.contains(&BLOCKS)) {
        let is_same = match check {
            Check::All => is_as_built(folder, manifest, name)?,
            _ => sampled_blocks_are_as_built(folder, name)?,
        };
        if !is_same {
            changed.push(name);
        }
    }
    if changed.is_empty() {
        return Ok(());
    }
    Err(DataError::malformed(
        folder.display().to_string(),
        format!("not as built: {}; build the benchmark anew", changed.join(", ")),
    ))
}

/// The tables of a benchmark, and the file of its samples.
fn files(store: &StoreInfo) -> (&'static [&'static str], Option<&'static str>) {
    const TABLES: [&str; 5] = [TAXONOMY, CLASSES, SAMPLES, ASSIGNMENTS, BLOCKS];
    match store {
        StoreInfo::Images { .. } => (&TABLES, Some(IMAGES)),
        StoreInfo::Embeddings { .. } => (&TABLES, Some(EMBEDDINGS)),
        StoreInfo::ClassesOnly => (&TABLES[..2], None),
    }
}

fn is_as_built(folder: &Path, manifest: &Manifest, name: &str) -> Result<bool, DataError> {
    let stated = manifest.hashes.get(name).ok_or_else(|| {
        DataError::malformed(
            folder.join(MANIFEST).display().to_string(),
            format!("it has no hash of {name}; build the benchmark anew"),
        )
    })?;
    Ok(file_hash(&folder.join(name), &Watch::unwatched())? == *stated)
}

fn sampled_blocks_are_as_built(folder: &Path, name: &str) -> Result<bool, DataError> {
    let path = folder.join(name);
    let failed = |error| DataError::io("read", &path, error);
    let rows: Vec<BlockRow> = read_rows(&folder.join(BLOCKS))?;
    let mut file = File::open(&path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    let count = length.div_ceil(BLOCK as u64);
    let is_whole = rows.len() as u64 == count
        && rows
            .iter()
            .zip(0_u64..)
            .all(|(row, number)| row.file == name && row.start == number * BLOCK as u64);
    if !is_whole {
        return Ok(false);
    }
    let mut block = vec![0; BLOCK];
    for row in sample(rows.len()).map(|number| &rows[number]) {
        let size = (length - row.start).min(BLOCK as u64) as usize;
        file.seek(SeekFrom::Start(row.start)).map_err(failed)?;
        file.read_exact(&mut block[..size]).map_err(failed)?;
        if blake3::hash(&block[..size]).to_hex().as_str() != row.blake3 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The numbers of the blocks to look at: all of few, otherwise the first, the last and others between, evenly spread.
fn sample(count: usize) -> impl Iterator<Item = usize> {
    let looked_at = count.min(SAMPLED);
    (0..looked_at).map(move |place| place * (count - 1) / (looked_at - 1).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_reach_from_the_first_block_to_the_last() {
        for count in [0, 1, 2, 31, 32, 33, 1000] {
            let chosen: Vec<usize> = sample(count).collect();
            assert_eq!(chosen.len(), count.min(SAMPLED));
            assert!(chosen.is_sorted_by(|a, b| a < b), "{chosen:?}");
            assert_eq!(chosen.first().copied(), (count > 0).then_some(0));
            assert_eq!(chosen.last().copied(), count.checked_sub(1));
        }
    }
}
