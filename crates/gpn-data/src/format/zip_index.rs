//! The index of a `.zip` (or `.npz`): its central directory, and inflating of one entry.
//!
//! Stored and deflated entries are read, zip64 included; encryption and rarer methods are refused by name.

use std::io::{self, Read};
use std::path::Path;

use flate2::read::DeflateDecoder;

use super::archive::{GROWTH_ALLOWANCE, MAX_ENTRY_BYTES, MAX_GROWTH, Place, clean_name};
use crate::DataError;

const END: &[u8] = b"PK\x05\x06";
const END64_LOCATOR: &[u8] = b"PK\x06\x07";
const END64: &[u8] = b"PK\x06\x06";
const CENTRAL: &[u8] = b"PK\x01\x02";
const LOCAL: &[u8] = b"PK\x03\x04";
const CENTRAL_SIZE: usize = 46;

/// Lists the files of a zip held in memory.
pub(super) fn index(bytes: &[u8], path: &Path) -> Result<Vec<(String, Place)>, DataError> {
    Reader { bytes, path }.index()
}

/// Inflates one entry; it must give exactly the `size` its header tells.
pub(super) fn inflate(stored: &[u8], size: u64, label: &str) -> Result<Vec<u8>, DataError> {
    let limit = (stored.len() as u64 * MAX_GROWTH).saturating_add(GROWTH_ALLOWANCE).min(MAX_ENTRY_BYTES);
    if size > limit {
        let what = "the inflated entry".to_owned();
        return Err(DataError::TooLarge { file: label.to_owned(), what, size, limit });
    }
    let mut out = Vec::new();
    out.try_reserve_exact(size as usize)
        .map_err(|_| DataError::io("inflate", Path::new(label), io::ErrorKind::OutOfMemory.into()))?;
    // One byte beyond the promised size is enough to notice an entry that holds more.
    DeflateDecoder::new(stored)
        .take(size + 1)
        .read_to_end(&mut out)
        .map_err(|e| DataError::malformed(label, format!("damaged deflate data: {e}")))?;
    if out.len() as u64 != size {
        let more = if out.len() as u64 > size { "more" } else { "less" };
        return Err(DataError::malformed(
            label,
            format!("inflates to {more} than the {size} bytes of its header"),
        ));
    }
    Ok(out)
}

struct Reader<'a> {
    bytes: &'a [u8],
    path: &'a Path,
}

impl Reader<'_> {
    fn malformed(&self, reason: impl Into<String>) -> DataError {
        DataError::malformed(self.path.display().to_string(), reason)
    }

    fn slice(&self, start: u64, len: u64) -> Result<&[u8], DataError> {
        let end = start.checked_add(len).filter(|&end| end <= self.bytes.len() as u64);
        match end {
            Some(end) => Ok(&self.bytes[start as usize..end as usize]),
            None => Err(self
                .malformed(format!("damaged zip archive: nothing at byte {start}; the file is cut short"))),
        }
    }

    fn signed(&self, start: u64, len: u64, signature: &[u8]) -> Result<&[u8], DataError> {
        let record = self.slice(start, len)?;
        if record.starts_with(signature) {
            Ok(record)
        } else {
            Err(self
                .malformed(format!("damaged zip archive: no record of the expected kind at byte {start}")))
        }
    }

    fn index(&self) -> Result<Vec<(String, Place)>, DataError> {
        let (count, mut at) = self.directory()?;
        // Each record takes at least 46 bytes: a larger count is a lie and must not size an allocation.
        if count > self.bytes.len() as u64 / CENTRAL_SIZE as u64 {
            return Err(
                self.malformed(format!("damaged zip archive: {count} entries cannot fit into the file"))
            );
        }
        let mut entries = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let record = self.signed(at, CENTRAL_SIZE as u64, CENTRAL)?;
            let [name_len, extra_len, comment_len] =
                [28, 30, 32].map(|offset| u64::from(u16_at(record, offset)));
            let (flags, method, crc) = (u16_at(record, 8), u16_at(record, 10), u32_at(record, 16));
            let mut inflated = u64::from(u32_at(record, 24));
            let mut stored = u64::from(u32_at(record, 20));
            let mut local = u64::from(u32_at(record, 42));
            let name = self.slice(at + CENTRAL_SIZE as u64, name_len)?;
            let extra = self.slice(at + CENTRAL_SIZE as u64 + name_len, extra_len)?;
            zip64_sizes(extra, [&mut inflated, &mut stored, &mut local]);
            at += CENTRAL_SIZE as u64 + name_len + extra_len + comment_len;

            let Some(name) = clean_name(name, self.path)? else { continue };
            if flags & 1 != 0 {
                return Err(
                    self.malformed(format!("the entry `{name}` is encrypted; unpack the archive first"))
                );
            }
            let header = self.signed(local, 30, LOCAL)?;
            let start = local + 30 + u64::from(u16_at(header, 26)) + u64::from(u16_at(header, 28));
            self.slice(start, stored)?;
            let inflated = match method {
                0 if inflated == stored => None,
                8 => Some(inflated),
                0 => {
                    return Err(
                        self.malformed(format!("damaged zip archive: the sizes of `{name}` contradict"))
                    );
                }
                other => {
                    let reason =
                        format!("the entry `{name}` uses compression method {other}; only deflate is read");
                    return Err(self.malformed(reason));
                }
            };
            let crc = Some(crc);
            entries.push((name, Place { start: start as usize, stored: stored as usize, inflated, crc }));
        }
        Ok(entries)
    }

    /// Number of entries, and where the central directory begins.
    fn directory(&self) -> Result<(u64, u64), DataError> {
        // The end record is followed by a comment of at most 65535 bytes only.
        let from = self.bytes.len().saturating_sub(22 + 0xffff);
        let found = self.bytes[from..].windows(22).rposition(|window| window.starts_with(END));
        let Some(at) = found.map(|offset| from + offset) else {
            return Err(
                self.malformed("damaged zip archive: its directory is missing; the file is cut short")
            );
        };
        let end = &self.bytes[at..];
        let (count, start) = (u64::from(u16_at(end, 10)), u64::from(u32_at(end, 16)));
        if count != 0xffff && start != 0xffff_ffff {
            return Ok((count, start));
        }
        let Some(locator) = at.checked_sub(20).filter(|&l| self.bytes[l..].starts_with(END64_LOCATOR)) else {
            return Ok((count, start));
        };
        let record = self.signed(u64_at(&self.bytes[locator..], 8), 56, END64)?;
        Ok((u64_at(record, 32), u64_at(record, 48)))
    }
}

/// Replaces the sizes that do not fit 32 bits by those of the zip64 field, which lists just these in order.
fn zip64_sizes(mut extra: &[u8], sizes: [&mut u64; 3]) {
    while extra.len() >= 4 {
        let (id, len) = (u16_at(extra, 0), usize::from(u16_at(extra, 2)));
        let Some(mut field) = extra.get(4..4 + len) else { return };
        if id == 1 {
            for size in sizes {
                if *size == 0xffff_ffff && field.len() >= 8 {
                    *size = u64_at(field, 0);
                    field = &field[8..];
                }
            }
            return;
        }
        extra = &extra[4 + len..];
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}
