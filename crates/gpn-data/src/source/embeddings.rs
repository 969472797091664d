//! `embeddings`: a table of vectors with a class for each row.
//!
//! - `X.npy` of shape `[N, D]` with labels beside it: `X_labels.npy`, `.csv` or `.txt` (where X ends in
//!   `_embeddings` or `_features`, that ending may be replaced), or `labels.npy`, `.csv`, `.txt`;
//! - `.npz` with the arrays `embeddings` (or `features`, `x`) and `labels` (or `classes`, `y`);
//! - Parquet with the columns `embedding` (lists of floats) and `class_name`.
//!
//! Labels are integers or text. NaN and infinity are errors that name the row and its class.

use std::path::{Path, PathBuf};

use super::labels::index_labels;
use super::{Leaf, SampleInfo, SampleKind, Source, parquet_table};
use crate::DataError;
use crate::format::archive::{Archive, read_small_file};
use crate::format::element::{Element, Kind};
use crate::format::npy::Npy;

/// Largest text file of labels that is read.
const MAX_LABEL_BYTES: u64 = 1 << 30;

pub(super) struct Embeddings {
    path: PathBuf,
    dim: usize,
    rows: Rows,
    leaves: Vec<Leaf>,
    samples: Vec<SampleInfo>,
}

enum Rows {
    Npy(Npy),
    Memory(Vec<f32>),
}

pub(super) fn open(path: &Path) -> Result<Embeddings, DataError> {
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    let (rows, labels) = match extension.as_str() {
        "npy" => {
            let npy = Npy::open(path)?;
            let labels = labels_beside(path, npy.header().shape.first().copied().unwrap_or(0))?;
            (Rows::Npy(npy), labels)
        }
        "npz" => {
            let archive = Archive::open(path)?;
            let rows = array_of(&archive, &["embeddings", "features", "x"])?;
            (Rows::Npy(rows), array_of(&archive, &["labels", "classes", "y"])?.labels()?)
        }
        "parquet" => {
            let table = parquet_table::read(path)?;
            (Rows::Memory(table.values), table.labels)
        }
        other => {
            let reason = format!("embeddings are read from .npy, .npz or .parquet, not `.{other}`");
            return Err(DataError::malformed(path.display().to_string(), reason));
        }
    };
    let (count, dim) = match &rows {
        Rows::Npy(npy) => table_shape(npy)?,
        Rows::Memory(values) => (labels.len(), values.len() / labels.len().max(1)),
    };
    let malformed = |reason: String| DataError::malformed(path.display().to_string(), reason);
    if count == 0 || dim == 0 {
        return Err(malformed(format!("there are {count} embeddings of {dim} numbers")));
    }
    if labels.len() != count {
        return Err(malformed(format!("there are {count} embeddings but {} labels", labels.len())));
    }
    let (leaves, leaf_of) = index_labels(labels.iter().map(String::as_str));
    let row_name = |(row, leaf)| SampleInfo { leaf, file: format!("row {row}") };
    let samples = leaf_of.into_iter().enumerate().map(row_name).collect();
    Ok(Embeddings { path: path.to_owned(), dim, rows, leaves, samples })
}

/// Rows and columns of a table of floats.
fn table_shape(npy: &Npy) -> Result<(usize, usize), DataError> {
    match (npy.header().shape.as_slice(), npy.header().element.kind) {
        ([count, dim], Kind::Float) => Ok((*count, *dim)),
        (shape, _) => {
            let descr = npy.header().element.descr();
            let reason = format!("embeddings must be floats of shape [N, D], not {descr} of shape {shape:?}");
            Err(DataError::malformed(npy.file(), reason))
        }
    }
}

fn array_of(archive: &Archive, names: &[&str]) -> Result<Npy, DataError> {
    let found = names.iter().find_map(|name| archive.position(&format!("{name}.npy")));
    let Some(index) = found else {
        let reason =
            format!("has no array `{}`; it has {}", names.join("` or `"), archive.names().join(", "));
        return Err(DataError::malformed(archive.path().display().to_string(), reason));
    };
    Npy::from_held(archive.hold(index)?, archive.label(index))
}

/// Finds and reads the labels of an `.npy` file.
fn labels_beside(path: &Path, count: usize) -> Result<Vec<String>, DataError> {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let bare = stem.strip_suffix("_embeddings").or(stem.strip_suffix("_features")).unwrap_or(stem);
    let stems = [format!("{stem}_labels"), format!("{bare}_labels"), "labels".to_owned()];
    for stem in &stems {
        for extension in ["npy", "csv", "txt"] {
            let file = path.with_file_name(format!("{stem}.{extension}"));
            match extension {
                _ if !file.is_file() => {}
                "npy" => return Npy::open(&file)?.labels(),
                _ => return label_lines(&file, count),
            }
        }
    }
    let reason = format!("no labels beside it; expected {stem}_labels.npy, .csv or .txt, or labels.csv");
    Err(DataError::malformed(path.display().to_string(), reason))
}

/// One label per line; a first line beyond the count is a heading.
fn label_lines(file: &Path, count: usize) -> Result<Vec<String>, DataError> {
    let malformed = |reason: String| DataError::malformed(file.display().to_string(), reason);
    let bytes = read_small_file(file, MAX_LABEL_BYTES)?;
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let text = std::str::from_utf8(bytes).map_err(|e| malformed(format!("is not UTF-8: {e}")))?;
    let mut labels: Vec<String> = if file.extension().is_some_and(|extension| extension == "csv") {
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(bytes);
        let mut column = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|e| malformed(e.to_string()))?;
            if record.len() != 1 {
                return Err(malformed(format!(
                    "has {} columns; one label per line is expected",
                    record.len()
                )));
            }
            column.push(record[0].trim().to_owned());
        }
        column
    } else {
        text.lines().map(|line| line.trim().to_owned()).collect()
    };
    if labels.len() == count + 1 {
        labels.remove(0);
    }
    Ok(labels)
}

impl Embeddings {
    fn not_finite(&self, row: usize, column: usize, value: f32) -> DataError {
        let class = self.leaves[self.samples[row].leaf as usize].id.clone();
        DataError::NotFinite { file: self.path.display().to_string(), row, column, class, value }
    }
}

impl Source for Embeddings {
    fn describe(&self) -> String {
        format!("embeddings:{}", self.path.display())
    }

    fn kind(&self) -> SampleKind {
        SampleKind::Embeddings { dim: self.dim }
    }

    fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }

    fn samples(&self) -> &[SampleInfo] {
        &self.samples
    }

    fn embedding(&self, index: usize, out: &mut [f32]) -> Result<(), DataError> {
        if index >= self.samples.len() || out.len() != self.dim {
            return Err(self.no_sample(index, &format!("embeddings of {} numbers", out.len())));
        }
        match &self.rows {
            Rows::Memory(values) => out.copy_from_slice(&values[index * self.dim..][..self.dim]),
            Rows::Npy(npy) => copy_row(npy.header().element, npy.row(index), out),
        }
        match out.iter().position(|value| !value.is_finite()) {
            Some(column) => Err(self.not_finite(index, column, out[column])),
            None => Ok(()),
        }
    }
}

/// Converts a row of floats.
fn copy_row(element: Element, row: &[u8], out: &mut [f32]) {
    if element == Element::F32 {
        for (out, bytes) in out.iter_mut().zip(row.as_chunks::<4>().0) {
            *out = f32::from_le_bytes(*bytes);
        }
    } else {
        for (out, bytes) in out.iter_mut().zip(row.chunks_exact(element.size)) {
            // invariant: `table_shape` has checked that the elements are floats
            *out = element.float(bytes).unwrap_or(f64::NAN) as f32;
        }
    }
}
