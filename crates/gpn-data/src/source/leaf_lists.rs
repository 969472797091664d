//! `leaves`: lists of leaf classes without samples, for work on the class graph alone.
//!
//! A CSV file whose first column holds class ids (a second one, the super-category, is not needed), or a
//! directory with `leaves_train.csv`, `leaves_val.csv`, `leaves_test.csv` (or `train.csv`, ... as
//! tieredImageNet's authors call them).

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::labels::index_labels;
use super::{Leaf, SampleInfo, SampleKind, Source};
use crate::DataError;
use crate::format::archive::read_small_file;

/// Largest list that is read.
const MAX_LIST_BYTES: u64 = 256 << 20;

pub(super) struct LeafLists {
    path: PathBuf,
    leaves: Vec<Leaf>,
}

pub(super) fn open(path: &Path) -> Result<LeafLists, DataError> {
    let files = if path.is_dir() { lists_in(path)? } else { vec![path.to_owned()] };
    let mut ids = Vec::new();
    let mut seen = HashSet::new();
    for file in files {
        for id in read_list(&file)? {
            if !seen.insert(id.clone()) {
                let reason = format!("the class {id} is listed twice");
                return Err(DataError::unfit(file.display().to_string(), reason));
            }
            ids.push(id);
        }
    }
    let (leaves, _) = index_labels(ids.iter().map(String::as_str));
    Ok(LeafLists { path: path.to_owned(), leaves })
}

/// Whether a directory holds leaf lists and no images of tieredImageNet.
pub(super) fn alone_in(folder: &Path) -> bool {
    let holds = |file: String| folder.join(file).is_file();
    let images = ["train", "val", "test"]
        .iter()
        .any(|part| holds(format!("{part}_images_png.pkl")) || holds(format!("{part}_images.npz")));
    !images && lists_in(folder).is_ok()
}

fn lists_in(folder: &Path) -> Result<Vec<PathBuf>, DataError> {
    for prefix in ["leaves_", ""] {
        let files = ["train", "val", "test"].map(|part| folder.join(format!("{prefix}{part}.csv")));
        let present: Vec<PathBuf> = files.into_iter().filter(|file| file.is_file()).collect();
        if !present.is_empty() {
            return Ok(present);
        }
    }
    let reason = "none of leaves_train.csv, leaves_val.csv, leaves_test.csv is here";
    Err(DataError::unfit(folder.display().to_string(), reason))
}

fn read_list(file: &Path) -> Result<Vec<String>, DataError> {
    let unfit = |reason: String| DataError::unfit(file.display().to_string(), reason);
    let bytes = read_small_file(file, MAX_LIST_BYTES)?;
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bytes);
    let mut ids = Vec::new();
    for (index, record) in reader.records().enumerate() {
        let record = record.map_err(|e| unfit(e.to_string()))?;
        let id = record.get(0).unwrap_or_default().trim();
        let heading = index == 0 && ["wnid", "id", "class", "leaf", "name"].contains(&id);
        if id.is_empty() {
            return Err(unfit(format!("line {}: the class id is missing", index + 1)));
        }
        if !heading {
            ids.push(id.to_owned());
        }
    }
    if ids.is_empty() {
        return Err(unfit("the list is empty".into()));
    }
    Ok(ids)
}

impl Source for LeafLists {
    fn describe(&self) -> String {
        format!("leaves:{}", self.path.display())
    }

    fn kind(&self) -> SampleKind {
        SampleKind::Images
    }

    fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }

    fn samples(&self) -> &[SampleInfo] {
        &[]
    }
}
