//! TensorBoard event files: records of length, checksum, data, checksum; the data a protocol-buffer `Event`.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::TrainError;

pub(crate) const NAME: &str = "events.out.tfevents.gpn";

/// Named numbers of one episode.
pub(crate) type Scalars<'a> = &'a [(&'a str, f64)];

/// The event file of a run.
pub(crate) struct Events {
    path: PathBuf,
}

impl Events {
    pub(crate) fn new(folder: &Path) -> Self {
        Self { path: folder.join(NAME) }
    }

    /// Begins the file anew.
    pub(crate) fn restart(&self) -> Result<(), TrainError> {
        let mut event = Vec::new();
        double_field(&mut event, 1, now());
        bytes_field(&mut event, 3, b"brain.Event:2");
        gpn_files::write(&self.path, record(&event)).map_err(|source| self.failed(source))
    }

    /// Appends the numbers of an episode.
    pub(crate) fn add(&self, episode: u64, scalars: Scalars<'_>) -> Result<(), TrainError> {
        let mut summary = Vec::new();
        for (tag, value) in scalars {
            let mut entry = Vec::new();
            bytes_field(&mut entry, 1, tag.as_bytes());
            key(&mut entry, 2, 5);
            entry.extend((*value as f32).to_le_bytes());
            bytes_field(&mut summary, 1, &entry);
        }
        let mut event = Vec::new();
        double_field(&mut event, 1, now());
        key(&mut event, 2, 0);
        varint(&mut event, episode);
        bytes_field(&mut event, 5, &summary);
        let mut file =
            fs::OpenOptions::new().append(true).open(&self.path).map_err(|source| self.failed(source))?;
        file.write_all(&record(&event)).map_err(|source| self.failed(source))
    }

    fn failed(&self, source: std::io::Error) -> TrainError {
        TrainError::Io { action: "write", path: self.path.clone(), source }
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

fn record(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    let mut record = length.to_vec();
    record.extend(masked_checksum(&length).to_le_bytes());
    record.extend(data);
    record.extend(masked_checksum(data).to_le_bytes());
    record
}

fn masked_checksum(data: &[u8]) -> u32 {
    crc32c::crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// The key of a field: its number and how its value is written (0 varint, 1 eight bytes, 2 length and bytes, 5 four bytes).
fn key(out: &mut Vec<u8>, field: u64, wire: u64) {
    varint(out, field << 3 | wire);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn double_field(out: &mut Vec<u8>, field: u64, value: f64) {
    key(out, field, 1);
    out.extend(value.to_le_bytes());
}

fn bytes_field(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    key(out, field, 2);
    varint(out, bytes.len() as u64);
    out.extend(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_what_tensorboard_reads() {
        let folder = tempfile::tempdir().unwrap();
        let events = Events::new(folder.path());
        events.restart().unwrap();
        events.add(300, &[("loss", 0.5)]).unwrap();
        let bytes = fs::read(folder.path().join(NAME)).unwrap();
        let mut rest = &bytes[..];
        let mut read = Vec::new();
        while !rest.is_empty() {
            let length = u64::from_le_bytes(rest[..8].try_into().unwrap()) as usize;
            assert_eq!(rest[8..12], masked_checksum(&rest[..8]).to_le_bytes());
            let data = &rest[12..12 + length];
            assert_eq!(rest[12 + length..16 + length], masked_checksum(data).to_le_bytes());
            read.push(data.to_vec());
            rest = &rest[16 + length..];
        }
        assert_eq!(&read[0][9..], b"\x1a\x0dbrain.Event:2");
        // Field 2: 300 as a varint; field 5: a summary of one value with tag and number.
        assert_eq!(&read[1][9..], b"\x10\xac\x02\x2a\x0d\x0a\x0b\x0a\x04loss\x15\x00\x00\x00\x3f");
    }
}
