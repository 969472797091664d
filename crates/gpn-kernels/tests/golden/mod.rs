//! Reads the golden vectors.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// An array of a golden file.
pub(crate) struct Array {
    pub(crate) shape: Vec<usize>,
    pub(crate) data: Vec<f32>,
}

/// The arrays of one file that hold numbers, by name.
pub(crate) struct Golden {
    pub(crate) path: PathBuf,
    arrays: BTreeMap<String, Array>,
}

impl Golden {
    /// Every file of the golden folder whose name has the prefix and the suffix, in order of name; none, with
    /// a message, where the folder is absent.
    pub(crate) fn find(prefix: &str, suffix: &str) -> Vec<Golden> {
        let folder = std::env::var_os("GPN_GOLDEN_DIR").map_or_else(
            || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/golden"),
            PathBuf::from,
        );
        let Ok(entries) = std::fs::read_dir(&folder) else {
            eprintln!("skipped: no golden vectors in {} (set GPN_GOLDEN_DIR)", folder.display());
            return Vec::new();
        };
        let mut paths: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
        paths.sort();
        paths.retain(|p| {
            let name = p.file_name().unwrap().to_string_lossy().into_owned();
            name.starts_with(prefix) && name.ends_with(suffix)
        });
        paths.iter().map(|p| Golden::read(p)).collect()
    }

    pub(crate) fn read(path: &Path) -> Golden {
        let mut archive = npyz::npz::NpzArchive::open(path).unwrap();
        let names: Vec<String> = archive.array_names().map(str::to_owned).collect();
        let mut arrays = BTreeMap::new();
        for name in names {
            let file = archive.by_name(&name).unwrap().unwrap();
            let shape: Vec<usize> = file.shape().iter().map(|&d| d as usize).collect();
            let npyz::DType::Plain(kind) = file.dtype() else { continue };
            let data = match kind.type_char() {
                npyz::TypeChar::Float if kind.num_bytes() == Some(4) => file.into_vec::<f32>().unwrap(),
                npyz::TypeChar::Int if kind.num_bytes() == Some(8) => {
                    file.into_vec::<i64>().unwrap().into_iter().map(|v| v as f32).collect()
                }
                _ => continue,
            };
            arrays.insert(name, Array { shape, data });
        }
        Golden { path: path.to_owned(), arrays }
    }

    pub(crate) fn get(&self, name: &str) -> &Array {
        self.try_get(name).unwrap_or_else(|| panic!("{} has no array {name}", self.path.display()))
    }

    pub(crate) fn try_get(&self, name: &str) -> Option<&Array> {
        self.arrays.get(name)
    }
}

/// Largest difference, relative to the largest expected value (but not to less than `floor`).
pub(crate) fn difference(got: &[f32], expected: &[f32], floor: f32) -> f32 {
    assert_eq!(got.len(), expected.len());
    let size = expected.iter().fold(floor, |m, v| m.max(v.abs()));
    got.iter()
        .zip(expected)
        .map(|(g, e)| if g.is_nan() { f32::INFINITY } else { (g - e).abs() })
        .fold(0.0, f32::max)
        / size
}
