//! One function for every reader of foreign bytes. Each must return: an error is fine, a panic is not.
//! What is returned is whether the bytes were accepted: of the seeds of a target at least one is.
//!
//! The fuzzer runs them, and so does an ordinary test over the committed corpora and regressions.

mod checksums;
mod formats;
mod runs;
mod sources;
mod taxonomies;

use std::fs;
use std::path::{Path, PathBuf};

/// Reads `data`, if need be from files that it writes below the folder.
pub(crate) type Target = fn(data: &[u8], folder: &Path) -> bool;

/// All targets by name.
pub(crate) const TARGETS: &[(&str, Target)] = &[
    ("benchmark", runs::benchmark),
    ("checkpoint", runs::checkpoint),
    ("cifar", sources::cifar),
    ("config", runs::config),
    ("edges", taxonomies::edges),
    ("image", formats::image),
    ("jpeg", formats::jpeg),
    ("json", taxonomies::json),
    ("labels", sources::labels),
    ("leaves", sources::leaves),
    ("model", runs::model),
    ("npy", sources::npy),
    ("npz", sources::npz),
    ("obo", taxonomies::obo),
    ("parquet", sources::parquet),
    ("pickle", sources::pickle),
    ("tar", formats::tar),
    ("tasks", sources::tasks),
    ("weights", runs::weights),
    ("wordnet", taxonomies::wordnet),
    ("xml", taxonomies::xml),
    ("zip", formats::zip),
];

/// Writes a file and gives its path.
fn written(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, bytes).expect("room for a file");
    path
}

/// The parts of an input that stands for several files: lines of `%%%%` divide them.
fn parts(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    const MARK: &[u8] = b"\n%%%%\n";
    let mut rest = Some(data);
    std::iter::from_fn(move || {
        let data = rest?;
        let at = data.windows(MARK.len()).position(|window| window == MARK);
        rest = at.map(|at| &data[at + MARK.len()..]);
        Some(&data[..at.unwrap_or(data.len())])
    })
}
