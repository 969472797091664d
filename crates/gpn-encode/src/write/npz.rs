//! `.npz`: arrays in a zip archive, stored as they are.

use std::io::{self, Seek as _, SeekFrom, Write};
use std::path::Path;

use gpn_files::AtomicFile;

use super::{EmbeddingTable, npy};
use crate::error::{EncodeError, Result};

/// Plain zip archives have 32-bit sizes.
const MAX_ARRAY: u64 = u32::MAX as u64;
/// 1 January 1980, the first day that a zip archive can tell: the same embeddings give the same bytes.
const DATE: u16 = (1 << 5) | 1;

type WriteArray<'a> = Box<dyn Fn(&mut dyn Write) -> io::Result<()> + 'a>;

pub(super) fn write(path: &Path, table: &EmbeddingTable<'_>) -> Result<()> {
    let mut arrays: Vec<(&str, u64, WriteArray<'_>)> =
        vec![("embeddings.npy", npy::floats_len(table), Box::new(|out| npy::write_floats(out, table)))];
    if let Some(labels) = table.labels {
        arrays.push(("labels.npy", npy::texts_len(labels), Box::new(|out| npy::write_texts(out, labels))));
    }
    arrays.push((
        "files.npy",
        npy::texts_len(table.files),
        Box::new(|out| npy::write_texts(out, table.files)),
    ));
    if arrays.iter().map(|(_, length, _)| length).sum::<u64>() > MAX_ARRAY {
        let reason = "an .npz archive of more than 4 GB is not written; choose .npy or .parquet".into();
        return Err(EncodeError::Write { path: path.to_owned(), reason });
    }
    let write = || -> io::Result<()> {
        let mut file = AtomicFile::create(path)?;
        let mut directory = Vec::new();
        for (name, length, write) in &arrays {
            let start = file.stream_position()?;
            file.write_all(&local_header(name, 0, *length as u32))?;
            let mut out = Summed { out: &mut file, sum: crc32fast::Hasher::new() };
            write(&mut out)?;
            let sum = out.sum.finalize();
            let end = file.stream_position()?;
            file.seek(SeekFrom::Start(start))?;
            file.write_all(&local_header(name, sum, *length as u32))?;
            file.seek(SeekFrom::Start(end))?;
            directory.extend(central_header(name, sum, *length as u32, start as u32));
        }
        let start = file.stream_position()?;
        file.write_all(&directory)?;
        file.write_all(&end_record(arrays.len() as u16, directory.len() as u32, start as u32))?;
        file.commit()
    };
    write().map_err(|error| EncodeError::io("write", path, error))
}

/// A writer that sums up what goes through it.
struct Summed<'a, W> {
    out: &'a mut W,
    sum: crc32fast::Hasher,
}

impl<W: Write> Write for Summed<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.sum.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The fields that an entry has both before its data and in the directory.
fn entry_fields(name: &str, sum: u32, length: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Version 2.0, no flags, stored, no time.
    for field in [20, 0, 0, 0, DATE] {
        bytes.extend(u16::to_le_bytes(field));
    }
    for field in [sum, length, length] {
        bytes.extend(field.to_le_bytes());
    }
    bytes.extend((name.len() as u16).to_le_bytes());
    bytes.extend(0u16.to_le_bytes());
    bytes
}

fn local_header(name: &str, sum: u32, length: u32) -> Vec<u8> {
    [b"PK\x03\x04", entry_fields(name, sum, length).as_slice(), name.as_bytes()].concat()
}

fn central_header(name: &str, sum: u32, length: u32, start: u32) -> Vec<u8> {
    let made_by = 20u16.to_le_bytes();
    // No comment, first disk, no attributes.
    let rest = [0u8; 10];
    let fields = entry_fields(name, sum, length);
    [b"PK\x01\x02", &made_by[..], &fields, &rest, &start.to_le_bytes(), name.as_bytes()].concat()
}

fn end_record(entries: u16, directory: u32, start: u32) -> Vec<u8> {
    let entries = entries.to_le_bytes();
    [b"PK\x05\x06", &[0; 4][..], &entries, &entries, &directory.to_le_bytes(), &start.to_le_bytes(), &[0; 2]]
        .concat()
}
