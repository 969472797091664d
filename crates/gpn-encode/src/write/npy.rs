//! `.npy`: one array a file.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use gpn_data::format::element::{Element, Kind};
use gpn_data::format::npy::Header;
use gpn_files::AtomicFile;

use super::EmbeddingTable;
use crate::error::{EncodeError, Result};

/// The file beside an `.npy` file that says something about its rows: `X_labels.npy` beside `X.npy`.
pub(super) fn beside(path: &Path, what: &str) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{stem}_{what}.npy"))
}

pub(super) fn write(path: &Path, table: &EmbeddingTable<'_>) -> Result<()> {
    if let Some(labels) = table.labels {
        write_file(&beside(path, "labels"), |out| write_texts(out, labels))?;
    }
    write_file(&beside(path, "files"), |out| write_texts(out, table.files))?;
    write_file(path, |out| write_floats(out, table))
}

fn write_file(path: &Path, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let write = || -> io::Result<()> {
        let mut file = AtomicFile::create(path)?;
        content(&mut file)?;
        file.commit()
    };
    write().map_err(|error| EncodeError::io("write", path, error))
}

fn header(element: Element, shape: Vec<usize>) -> Vec<u8> {
    Header { element, fortran: false, shape, start: 0 }.to_bytes()
}

/// Bytes of the embeddings as an array.
pub(super) fn floats_len(table: &EmbeddingTable<'_>) -> u64 {
    header(Element::F32, vec![table.files.len(), table.dim]).len() as u64 + table.values.len() as u64 * 4
}

/// Writes the embeddings as an array `[N, D]` of 32-bit floats.
pub(super) fn write_floats(out: &mut dyn Write, table: &EmbeddingTable<'_>) -> io::Result<()> {
    out.write_all(&header(Element::F32, vec![table.files.len(), table.dim]))?;
    let mut bytes = Vec::new();
    for row in table.values.chunks(table.dim) {
        bytes.clear();
        bytes.extend(row.iter().flat_map(|value| value.to_le_bytes()));
        out.write_all(&bytes)?;
    }
    Ok(())
}

fn text_element(texts: &[String]) -> Element {
    let longest = texts.iter().map(|text| text.chars().count()).max().unwrap_or(0).max(1);
    Element { kind: Kind::Unicode, size: longest * 4, big_endian: false }
}

/// Bytes of texts as an array.
pub(super) fn texts_len(texts: &[String]) -> u64 {
    let element = text_element(texts);
    header(element, vec![texts.len()]).len() as u64 + texts.len() as u64 * element.size as u64
}

/// Writes texts as an array `[N]` of fixed length.
pub(super) fn write_texts(out: &mut dyn Write, texts: &[String]) -> io::Result<()> {
    let element = text_element(texts);
    out.write_all(&header(element, vec![texts.len()]))?;
    let mut bytes = Vec::new();
    for text in texts {
        bytes.clear();
        bytes.extend(text.chars().flat_map(|letter| (letter as u32).to_le_bytes()));
        bytes.resize(element.size, 0);
        out.write_all(&bytes)?;
    }
    Ok(())
}
