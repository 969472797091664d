//! The arrays of one golden file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gpn_data::format::archive::Archive;
use gpn_data::format::npy::Header;
use serde_json::Value;

use crate::compare::assert_close_relative;

/// An array of a golden file.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Sizes from the slowest to the fastest axis; empty for a single number.
    pub shape: Vec<usize>,
    /// Values in C order. Integers that occur are small enough for `f32` to hold them.
    pub values: Vec<f32>,
}

impl Array {
    /// The values as bytes, of an image for example.
    pub fn bytes(&self) -> Vec<u8> {
        self.whole().into_iter().map(|value| u8::try_from(value).expect("a byte")).collect()
    }

    /// The values as whole numbers.
    pub fn whole(&self) -> Vec<u32> {
        let whole = |&value: &f32| {
            assert!(value >= 0.0 && value.fract() == 0.0, "{value} is not a whole number");
            value as u32
        };
        self.values.iter().map(whole).collect()
    }

    /// `(row, column)` of each entry of a matrix that is not zero, row by row.
    pub fn set_entries(&self) -> Vec<(u32, u32)> {
        let [_, columns] = self.shape[..] else { panic!("{:?} is not a matrix", self.shape) };
        let set = self.values.iter().enumerate().filter(|(_, value)| **value != 0.0);
        set.map(|(place, _)| ((place / columns) as u32, (place % columns) as u32)).collect()
    }

    fn read(bytes: &[u8], name: &str) -> Self {
        let header = Header::parse(bytes, name).unwrap_or_else(|error| panic!("{error}"));
        let (element, length) = (header.element, header.shape.iter().product::<usize>());
        let float = |bytes| match element.integer(bytes) {
            Some(whole) => whole as f32,
            None => element.float(bytes).unwrap_or_else(|| panic!("{name}: not an array of numbers")) as f32,
        };
        let stored: Vec<f32> =
            bytes[header.start..].chunks_exact(element.size).take(length).map(float).collect();
        assert_eq!(stored.len(), length, "{name}: values of an array of shape {:?}", header.shape);
        let values = if header.fortran { in_c_order(&stored, &header.shape) } else { stored };
        Self { shape: header.shape, values }
    }
}

/// An npz file.
#[derive(Clone, Debug)]
pub struct Case {
    /// The file's name without its ending.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// Its arrays by name.
    pub arrays: BTreeMap<String, Array>,
}

impl Case {
    /// Reads a file.
    ///
    /// # Panics
    /// If it is absent or damaged: a golden file that cannot be read is a failed test.
    pub fn read(path: &Path) -> Self {
        let archive = Archive::open(path).unwrap_or_else(|error| panic!("{error}"));
        let read = |index| {
            let name = archive.name(index).strip_suffix(".npy").expect("an array of an npz file").to_owned();
            let bytes = archive.read(index).unwrap_or_else(|error| panic!("{error}"));
            let array = Array::read(&bytes, &archive.label(index));
            (name, array)
        };
        let arrays = (0..archive.len()).map(read).collect();
        Self { name: stem(path), path: path.to_owned(), arrays }
    }

    /// An array; its absence is a failure.
    pub fn array(&self, name: &str) -> &Array {
        self.get(name).unwrap_or_else(|| panic!("{}: no array {name}", self.path.display()))
    }

    /// An array that not every case has.
    pub fn get(&self, name: &str) -> Option<&Array> {
        self.arrays.get(name)
    }

    /// The values of an array; its absence is a failure.
    pub fn values(&self, name: &str) -> &[f32] {
        &self.array(name).values
    }

    /// The single value of an array.
    pub fn number(&self, name: &str) -> f32 {
        let [number] = self.values(name)[..] else { panic!("{}: {name} is not a number", self.name) };
        number
    }

    /// All arrays below a prefix, by what follows it.
    pub fn below<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a Array)> {
        self.arrays.iter().filter_map(move |(name, array)| Some((name.strip_prefix(prefix)?, array)))
    }

    /// Whether values that go into ReLU, max pooling and the like stay so far from its kink that no order of
    /// summation takes them across. The fixtures do; results of any way to compute may be compared there.
    pub fn is_far_from_kinks(&self) -> bool {
        self.get("margin").is_some_and(|margin| margin.values[0] >= 1e-4)
    }

    /// What the file holds of a tensor: all of it, or of a large one every `grad_every`-th value.
    pub fn sampled(&self, name: &str, got: &[f32]) -> Vec<f32> {
        let expected = self.values(name).len();
        if expected == got.len() {
            return got.to_vec();
        }
        let every = self.get("grad_every").map_or(1, |every| every.values[0] as usize);
        let sampled: Vec<f32> = got.iter().step_by(every).copied().collect();
        assert_eq!(sampled.len(), expected, "{}: {name}, of {} values", self.name, got.len());
        sampled
    }

    /// Asserts that a gradient is the one under `name`, relative to its largest value.
    pub fn assert_gradient(&self, what: &str, name: &str, got: &[f32], tolerance: f32) {
        let what = format!("{} {name} ({what})", self.name);
        assert_close_relative(&what, &self.sampled(name, got), self.values(name), tolerance);
    }
}

/// A JSON file.
#[derive(Clone, Debug)]
pub struct JsonCase {
    /// The file's name without its ending.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// What it holds.
    pub document: Value,
}

impl JsonCase {
    /// Reads a file.
    ///
    /// # Panics
    /// If it is absent or damaged.
    pub fn read(path: &Path) -> Self {
        let text = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let document =
            serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self { name: stem(path), path: path.to_owned(), document }
    }

    /// A list of numbers.
    pub fn floats(value: &Value) -> Vec<f32> {
        list(value).iter().map(|number| number.as_f64().expect("a number") as f32).collect()
    }

    /// A list of whole numbers.
    pub fn whole(value: &Value) -> Vec<usize> {
        list(value).iter().map(whole_number).collect()
    }

    /// A list of pairs of whole numbers.
    pub fn pairs(value: &Value) -> Vec<(u32, u32)> {
        let pair = |pair: &Value| (whole_number(&pair[0]) as u32, whole_number(&pair[1]) as u32);
        list(value).iter().map(pair).collect()
    }
}

/// Values whose first index runs fastest, put in C order.
fn in_c_order(stored: &[f32], shape: &[usize]) -> Vec<f32> {
    let place = |mut index: usize| {
        // The last index of C order is the slowest here.
        let digits = shape.iter().rev().map(|&length| {
            let digit = index % length;
            index /= length;
            (digit, length)
        });
        let digits: Vec<(usize, usize)> = digits.collect();
        digits.into_iter().fold(0, |place, (digit, length)| place * length + digit)
    };
    (0..stored.len()).map(|index| stored[place(index)]).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("not a list: {value}"))
}

fn whole_number(value: &Value) -> usize {
    value.as_u64().unwrap_or_else(|| panic!("not a whole number: {value}")) as usize
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_whose_first_index_runs_fastest_is_put_in_c_order() {
        // NumPy: np.asfortranarray([[1, 2, 3], [4, 5, 6]]) is stored as 1 4 2 5 3 6.
        assert_eq!(in_c_order(&[1.0, 4.0, 2.0, 5.0, 3.0, 6.0], &[2, 3]), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    }
}
