//! `embeddings`: a table of vectors with a class for each row.
//!
//! - `X.npy` of shape `[N, D]` with labels beside it: `X_labels.npy`, `.csv` or `.txt` (where X ends in
//!   `_embeddings` or `_features`, that ending may be replaced), or `labels.npy`, `.csv`, `.txt`;
//! - `.npz` with the arrays `embeddings` (or `features`, `x`) and `labels` (or `classes`, `y`, `ids`);
//! - Parquet with the columns `embedding` (lists of floats) and `class_name`.
//!
//! Labels are integers or text. NaN and infinity are errors that name the row and its class.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::labels::index_labels;
use super::{Leaf, SampleInfo, SampleKind, Source, parquet_table};
use crate::DataError;
use crate::format::archive::{Archive, read_small_file};
use crate::format::element::{Element, Kind};
use crate::format::npy::{Header, Npy};
use crate::progress::Watch;

/// Largest text file of labels that is read.
const MAX_LABEL_BYTES: u64 = 1 << 30;

/// Names under which the rows of an `.npz` file are found.
const ROW_ARRAYS: [&str; 3] = ["embeddings", "features", "x"];

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

pub(super) fn open(path: &Path, watch: &Watch<'_>) -> Result<Embeddings, DataError> {
    let (rows, labels) = match table_form(path)?.as_str() {
        "npy" => {
            let npy = Npy::open(path)?;
            let labels = labels_beside(path, npy.header().shape.first().copied().unwrap_or(0))?;
            (Rows::Npy(npy), labels)
        }
        "npz" => {
            let archive = Archive::open_watched(path, watch)?;
            let rows = array_of(&archive, &ROW_ARRAYS)?;
            (Rows::Npy(rows), array_of(&archive, &["labels", "classes", "y", "ids"])?.labels()?)
        }
        "parquet" => {
            let table = parquet_table::read(path, true, watch)?;
            (Rows::Memory(table.values), table.labels)
        }
        other => return Err(no_table(path, other)),
    };
    let (count, dim) = match &rows {
        Rows::Npy(npy) => table_shape(npy)?,
        Rows::Memory(values) => (labels.len(), values.len() / labels.len().max(1)),
    };
    let unfit = |reason: String| DataError::unfit(path.display().to_string(), reason);
    if count == 0 || dim == 0 {
        return Err(unfit(format!("there are {count} embeddings of {dim} numbers")));
    }
    if labels.len() != count {
        let labels = labels.len();
        return Err(unfit(format!(
            "there are {count} embeddings but {labels} labels; every row needs one label"
        )));
    }
    if let Some(row) = labels.iter().position(|label| label.trim().is_empty()) {
        return Err(unfit(format!("row {row} has an empty label; every row names its class")));
    }
    let (leaves, leaf_of) = index_labels(labels.iter().map(String::as_str));
    let row_name = |(row, leaf)| SampleInfo { leaf, file: format!("row {row}") };
    let samples = leaf_of.into_iter().enumerate().map(row_name).collect();
    Ok(Embeddings { path: path.to_owned(), dim, rows, leaves, samples })
}

/// Rows of embeddings without classes.
#[derive(Clone, Debug, PartialEq)]
pub struct EmbeddingRows {
    /// Length of each.
    pub dim: usize,
    /// All rows, one after the other.
    pub values: Vec<f32>,
}

/// Whether a file name has the extension of a table that [`read_embeddings`] reads.
pub fn is_embeddings_name(name: &str) -> bool {
    ["npy", "npz", "parquet"].contains(&extension_of(Path::new(name)).as_str())
}

/// Reads the rows of `.npy` (`[N, D]`, or `[D]` for a single one), `.npz` (the array `embeddings`, `features` or `x`)
/// or Parquet (the column `embedding`), whatever labels there are.
pub fn read_embeddings(path: &Path) -> Result<EmbeddingRows, DataError> {
    let rows = match table_form(path)?.as_str() {
        "npy" => rows_of(&Npy::open(path)?)?,
        "npz" => rows_of(&array_of(&Archive::open(path)?, &ROW_ARRAYS)?)?,
        "parquet" => {
            let table = parquet_table::read(path, false, &Watch::unwatched())?;
            EmbeddingRows { dim: table.values.len() / table.rows.max(1), values: table.values }
        }
        other => return Err(no_table(path, other)),
    };
    if rows.values.is_empty() {
        return Err(DataError::unfit(path.display().to_string(), "there are no embeddings in it"));
    }
    Ok(rows)
}

fn rows_of(npy: &Npy) -> Result<EmbeddingRows, DataError> {
    let Header { element, shape, .. } = npy.header();
    let dim = match (shape.as_slice(), element.kind) {
        ([dim], Kind::Float) => *dim,
        _ => table_shape(npy)?.1,
    };
    let mut values = vec![0.0; npy.bytes().len() / element.size.max(1)];
    copy_row(*element, npy.bytes(), &mut values);
    Ok(EmbeddingRows { dim, values })
}

pub(super) fn extension_of(path: &Path) -> String {
    path.extension().and_then(|extension| extension.to_str()).unwrap_or_default().to_ascii_lowercase()
}

/// `npy`, `npz` or `parquet` where the content says so, else what the name ends with.
fn table_form(path: &Path) -> Result<String, DataError> {
    let mut head = Vec::new();
    let file = File::open(path).map_err(|e| DataError::io("open", path, e))?;
    if path.is_dir() {
        let reason = "is a folder; name the table of embeddings in it";
        return Err(DataError::unfit(path.display().to_string(), reason));
    }
    file.take(6).read_to_end(&mut head).map_err(|e| DataError::io("read", path, e))?;
    Ok(match &head[..] {
        b"\x93NUMPY" => "npy".into(),
        [b'P', b'K', 3, 4, ..] => "npz".into(),
        [b'P', b'A', b'R', b'1', ..] => "parquet".into(),
        _ => extension_of(path),
    })
}

fn no_table(path: &Path, extension: &str) -> DataError {
    let reason = format!("embeddings are read from .npy, .npz or .parquet, not `.{extension}`");
    DataError::unfit(path.display().to_string(), reason)
}

/// Rows and columns of a table of floats.
fn table_shape(npy: &Npy) -> Result<(usize, usize), DataError> {
    match (npy.header().shape.as_slice(), npy.header().element.kind) {
        ([count, dim], Kind::Float) => Ok((*count, *dim)),
        (shape, _) => {
            let descr = npy.header().element.descr();
            let reason = format!(
                "embeddings must be floats of shape [N, D], one row for each sample, not {descr} of shape {shape:?}; \
                 convert them with x.reshape(len(x), -1).astype(\"float32\")"
            );
            Err(DataError::unfit(npy.file(), reason))
        }
    }
}

fn array_of(archive: &Archive, names: &[&str]) -> Result<Npy, DataError> {
    let found = names.iter().find_map(|name| archive.position(&format!("{name}.npy")));
    let Some(index) = found else {
        let reason =
            format!("has no array `{}`; it has {}", names.join("` or `"), archive.names().join(", "));
        return Err(DataError::unfit(archive.path().display().to_string(), reason));
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
    let reason = format!(
        "no labels beside it; expected {stem}_labels.npy, .csv or .txt, or labels.npy, .csv or .txt, with one label for each row"
    );
    Err(DataError::unfit(path.display().to_string(), reason))
}

/// One label per line; a first line beyond the count is a heading.
fn label_lines(file: &Path, count: usize) -> Result<Vec<String>, DataError> {
    let unfit = |reason: String| DataError::unfit(file.display().to_string(), reason);
    let bytes = read_small_file(file, MAX_LABEL_BYTES)?;
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let text = std::str::from_utf8(bytes).map_err(|e| unfit(format!("is not UTF-8: {e}")))?;
    let mut labels: Vec<String> = if file.extension().is_some_and(|extension| extension == "csv") {
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(bytes);
        let mut column = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|e| unfit(e.to_string()))?;
            if record.len() != 1 {
                return Err(unfit(format!("has {} columns; one label per line is expected", record.len())));
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
