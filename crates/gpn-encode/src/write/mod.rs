//! Tables of embeddings, in the forms that `gpn-data` reads as a source of embeddings.

mod npy;
mod npz;
mod parquet;

use std::path::{Path, PathBuf};

use crate::error::{EncodeError, Result};

/// Embeddings with what is known about each row.
#[derive(Clone, Copy, Debug)]
pub struct EmbeddingTable<'a> {
    /// Length of each embedding.
    pub dim: usize,
    /// All embeddings, one after the other.
    pub values: &'a [f32],
    /// The class of each row.
    pub labels: Option<&'a [String]>,
    /// Where each row comes from: a file, or a text.
    pub files: &'a [String],
}

/// The form of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// `X.npy` with the embeddings, `X_labels.npy` with classes, `X_files.npy` with where they come from.
    Npy,
    /// One file with the arrays `embeddings`, `labels` and `files`.
    Npz,
    /// One file with the columns `embedding`, `class_name` and `file`.
    Parquet,
}

impl TableFormat {
    /// The form that a file's name asks for.
    pub fn of(path: &Path) -> Result<Self> {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        match extension.to_ascii_lowercase().as_str() {
            "npy" => Ok(Self::Npy),
            "npz" => Ok(Self::Npz),
            "parquet" => Ok(Self::Parquet),
            _ => Err(EncodeError::Write {
                path: path.to_owned(),
                reason: "embeddings are written to a file that ends in .npy, .npz or .parquet".into(),
            }),
        }
    }
}

/// The files that [`write()`] makes for a path.
pub fn files_of(path: &Path, labelled: bool) -> Result<Vec<PathBuf>> {
    Ok(match TableFormat::of(path)? {
        TableFormat::Npy if labelled => {
            vec![path.to_owned(), npy::beside(path, "labels"), npy::beside(path, "files")]
        }
        TableFormat::Npy => vec![path.to_owned(), npy::beside(path, "files")],
        TableFormat::Npz | TableFormat::Parquet => vec![path.to_owned()],
    })
}

/// Writes a table in the form that the file's name asks for. Each file appears whole or not at all; of `.npy` the embeddings come last.
pub fn write(path: &Path, table: &EmbeddingTable<'_>) -> Result<()> {
    let format = TableFormat::of(path)?;
    let unfit = |reason: String| Err(EncodeError::Write { path: path.to_owned(), reason });
    let rows = table.files.len();
    if table.dim == 0 || rows == 0 {
        return unfit(format!("there are {rows} embeddings of {} numbers to write", table.dim));
    }
    if table.values.len() != rows * table.dim || table.labels.is_some_and(|labels| labels.len() != rows) {
        return unfit("values, labels and files are not equally many".into());
    }
    match format {
        TableFormat::Npy => npy::write(path, table),
        TableFormat::Npz => npz::write(path, table),
        TableFormat::Parquet => parquet::write(path, table),
    }
}
