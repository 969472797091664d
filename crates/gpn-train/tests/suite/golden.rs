//! Golden vectors of the method's PyTorch implementation, in the folder named by `GPN_GOLDEN_DIR`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use npyz::npz::NpzArchive;

/// An array as floats, which hold the integers that occur exactly.
pub(crate) struct Array {
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Vec<f32>,
}

/// The arrays of a golden file, by name.
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
            let kind = array.dtype().descr();
            let values = match () {
                () if kind.contains("i8") => floats(array.into_vec::<i64>().unwrap()),
                () if kind.contains("i4") => {
                    array.into_vec::<i32>().unwrap().into_iter().map(|v| v as f32).collect()
                }
                () if kind.contains("u1") => {
                    array.into_vec::<u8>().unwrap().into_iter().map(f32::from).collect()
                }
                () if kind.contains("f8") => {
                    array.into_vec::<f64>().unwrap().into_iter().map(|v| v as f32).collect()
                }
                () => array.into_vec::<f32>().unwrap(),
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

fn floats(values: Vec<i64>) -> Vec<f32> {
    values.into_iter().map(|value| value as f32).collect()
}

/// A folder named by an environment variable, or beside the workspace; `None`, with a message, where it is absent.
pub(crate) fn folder(variable: &str, default: &str) -> Option<PathBuf> {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(default);
    let folder = std::env::var_os(variable).map_or(default, PathBuf::from);
    if !folder.is_dir() {
        eprintln!("skipped: no folder {} (set {variable})", folder.display());
        return None;
    }
    Some(folder)
}

/// The files of the golden folder whose name starts and ends so, sorted.
pub(crate) fn cases(prefix: &str) -> Vec<PathBuf> {
    let Some(folder) = folder("GPN_GOLDEN_DIR", "golden") else { return Vec::new() };
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            name.starts_with(prefix) && path.extension().is_some_and(|extension| extension == "npz")
        })
        .collect();
    paths.sort();
    paths
}

pub(crate) fn assert_close(what: &str, got: &[f32], expected: &[f32], tolerance: f32) {
    assert_eq!(got.len(), expected.len(), "{what}: length");
    for (place, (got, expected)) in got.iter().zip(expected).enumerate() {
        assert!((got - expected).abs() <= tolerance, "{what}[{place}]: {got}, expected {expected}");
    }
}

/// The largest difference, as a share of the largest expected value, is at most `tolerance`.
pub(crate) fn assert_close_relative(what: &str, got: &[f32], expected: &[f32], tolerance: f32) {
    let scale = expected.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
    // Where all gradients vanish, rounding is all there is.
    assert_close(what, got, expected, tolerance * scale.max(1e-6));
}
