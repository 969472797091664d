//! Golden vectors: numbers of the method's PyTorch implementation, in the folder named by `GPN_GOLDEN_DIR`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use npyz::npz::NpzArchive;

/// An array of a golden file; integers are read as floats, which hold them exactly.
pub(crate) struct Array {
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Vec<f32>,
}

/// A golden file.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) arrays: BTreeMap<String, Array>,
}

impl Case {
    pub(crate) fn read(path: &Path) -> Self {
        let mut archive = NpzArchive::open(path).unwrap();
        let names: Vec<String> = archive.array_names().map(str::to_owned).collect();
        let arrays = names.into_iter().map(|name| {
            let array = archive.by_name(&name).unwrap().unwrap();
            let shape = array.shape().iter().map(|&n| n as usize).collect();
            let values = if array.dtype().descr().contains("i8") {
                array.into_vec::<i64>().unwrap().into_iter().map(|v| v as f32).collect()
            } else {
                array.into_vec::<f32>().unwrap()
            };
            (name, Array { shape, values })
        });
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        Self { name, arrays: arrays.collect() }
    }

    pub(crate) fn values(&self, name: &str) -> &[f32] {
        &self.arrays.get(name).unwrap_or_else(|| panic!("{}: no array {name}", self.name)).values
    }

    /// All arrays below a prefix, by what follows it.
    pub(crate) fn below<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a Array)> {
        self.arrays.iter().filter_map(move |(name, array)| Some((name.strip_prefix(prefix)?, array)))
    }
}

/// The folder of golden vectors, where it is there.
pub(crate) fn folder() -> Option<PathBuf> {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/golden");
    let folder = std::env::var_os("GPN_GOLDEN_DIR").map_or(default, PathBuf::from);
    if !folder.is_dir() {
        eprintln!("skipped: no golden vectors in {} (set GPN_GOLDEN_DIR)", folder.display());
        return None;
    }
    Some(folder)
}

/// Paths of all cases whose file name starts with `prefix`; whether they are classifier cases must match.
pub(crate) fn paths(prefix: &str, classifier: bool) -> Vec<PathBuf> {
    let Some(folder) = folder() else { return Vec::new() };
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let is_npz = path.extension().is_some_and(|extension| extension == "npz");
        is_npz && name.starts_with(prefix) && name.ends_with("_classifier") == classifier
    });
    paths.sort();
    if paths.is_empty() {
        eprintln!("skipped: no golden case {prefix}*.npz");
    }
    paths
}

/// Asserts that `got` is `expected` within `tolerance`, absolute.
pub(crate) fn assert_close(what: &str, got: &[f32], expected: &[f32], tolerance: f32) {
    let worst = difference(got, expected);
    assert!(worst <= tolerance, "{what}: differs by {worst:e}, allowed {tolerance:e}");
}

/// Asserts that `got` is `expected` within `tolerance`, relative to the largest expected value.
pub(crate) fn assert_close_relative(what: &str, got: &[f32], expected: &[f32], tolerance: f32) {
    let worst = relative_difference(got, expected);
    assert!(worst <= tolerance, "{what}: differs by {worst:e} of the largest value, allowed {tolerance:e}");
}

/// The largest difference relative to the largest expected value.
pub(crate) fn relative_difference(got: &[f32], expected: &[f32]) -> f32 {
    let scale = expected.iter().fold(1e-12f32, |scale, value| scale.max(value.abs()));
    difference(got, expected) / scale
}

/// The largest difference; infinite where one is not a number or the lengths differ.
fn difference(got: &[f32], expected: &[f32]) -> f32 {
    if got.len() != expected.len() {
        return f32::INFINITY;
    }
    let differences = got.iter().zip(expected).map(|(g, e)| (g - e).abs());
    differences.map(|d| if d.is_nan() { f32::INFINITY } else { d }).fold(0.0, f32::max)
}
