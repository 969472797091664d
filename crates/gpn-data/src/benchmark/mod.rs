//! The benchmark: a taxonomy and samples, divided into training, Close and Far classes.
//!
//! [`build()`] makes a directory from a source, [`Benchmark::open`] reads it; [`Benchmark::from_source`] makes the same
//! benchmark without a directory. The files of a directory are plain CSV, TOML and
//! NumPy arrays; `benchmark.toml` says what they were made from and carries their hashes.

mod assign;
mod build;
mod directory;
mod given;
mod ingredients;
mod integrity;
mod manifest;
mod open;
mod pack;
mod plan;
mod python_random;
mod split;
mod statistics;
mod store;

pub use assign::{AssignConfig, Part};
pub use build::{BuildConfig, BuildReport, build};
pub use ingredients::{Preset, TaxonomyCut};
pub use integrity::Check;
pub use manifest::{Counts, Manifest, StoreInfo};
pub use open::{Benchmark, Class, DataSet, SampleRow};
pub use python_random::PythonRandom;
pub use split::{Generator, Split, SplitConfig};
pub use statistics::{DataSetStatistics, Statistics};
pub use store::Store;
