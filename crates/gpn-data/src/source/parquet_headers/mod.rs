//! The headers of a Parquet file, stepped over before the parquet crate reads them.
//!
//! They are Thrift structures, and the parquet crate trusts them. A list of two billion booleans in an unknown field takes
//! no bytes in the file and keeps the crate busy for seconds; a known field is read as the type it should have, even if
//! the header states another. So every field is checked for its type here ([`layout`]), a list may not be longer than the
//! bytes that are left, and types that Parquet does not use (lists of booleans, maps) are refused.

mod layout;

use layout::{FILE_METADATA, Fields, Kind, PAGE_HEADER};

/// Deepest nesting that is followed; Parquet's own is 7.
const MAX_DEPTH: u8 = 32;
/// `PageHeader.compressed_page_size`.
const PAGE_SIZE: i16 = 3;

const DAMAGED: &str = "damaged Parquet file: a header is not readable";

/// Checks the metadata at the end of a file.
pub(super) fn check_metadata(file: &[u8]) -> Result<(), String> {
    // A file that is not Parquet at all is left to the parquet crate, which says so.
    let Some((rest, &[a, b, c, d, b'P', b'A', b'R', b'1'])) = file.split_last_chunk::<8>() else {
        return Ok(());
    };
    let length = u32::from_le_bytes([a, b, c, d]) as usize;
    let start = rest.len().checked_sub(length).ok_or(DAMAGED)?;
    Thrift { bytes: &rest[start..], at: 0 }
        .structure(FILE_METADATA, MAX_DEPTH)
        .map(drop)
        .ok_or_else(|| DAMAGED.into())
}

/// Checks the headers of all pages in a column chunk.
pub(super) fn check_pages(chunk: &[u8]) -> Result<(), String> {
    let mut at = 0;
    while at < chunk.len() {
        let mut header = Thrift { bytes: &chunk[at..], at: 0 };
        let size = header.structure(PAGE_HEADER, MAX_DEPTH).and_then(|found| found.page_size);
        let size = usize::try_from(size.ok_or(DAMAGED)?).map_err(|_| DAMAGED)?;
        at = (at + header.at).checked_add(size).ok_or(DAMAGED)?;
    }
    Ok(())
}

/// What is kept of a structure.
struct Found {
    /// The number in its field [`PAGE_SIZE`].
    page_size: Option<i64>,
}

/// A reader of Thrift's compact protocol that keeps next to nothing.
struct Thrift<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Thrift<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<i64> {
        self.number().map(|number| (number >> 1) as i64 ^ -((number & 1) as i64))
    }

    fn skip(&mut self, count: u64) -> Option<()> {
        let left = (self.bytes.len() - self.at) as u64;
        self.at += usize::try_from(count).ok().filter(|_| count <= left)?;
        Some(())
    }

    /// Steps over a structure of these fields and others.
    fn structure(&mut self, fields: Fields, depth: u8) -> Option<Found> {
        let (mut field, mut page_size) = (0_i16, None);
        loop {
            let head = self.byte()?;
            let kind = head & 15;
            if kind == 0 {
                return Some(Found { page_size });
            }
            field = match head >> 4 {
                0 => self.signed()? as i16,
                step => field.checked_add(i16::from(step))?,
            };
            let known = fields.iter().find(|(number, _)| *number == field).map(|(_, kind)| kind);
            match (kind, known) {
                // The type of the field holds the value of a boolean.
                (1 | 2, None | Some(Kind::Bool)) => {}
                (4..=6, Some(Kind::Int)) if field == PAGE_SIZE => page_size = Some(self.signed()?),
                (kind, known) => self.value(kind, known, depth)?,
            }
        }
    }

    /// Steps over a value of type `kind`, which must be the `known` one.
    fn value(&mut self, kind: u8, known: Option<&Kind>, depth: u8) -> Option<()> {
        match (kind, known) {
            (3, None | Some(Kind::Byte)) => self.skip(1),
            (4..=6, None | Some(Kind::Int)) => self.number().map(drop),
            (7, None | Some(Kind::Double)) => self.skip(8),
            (8, None | Some(Kind::Text)) => {
                let length = self.number()?;
                self.skip(length)
            }
            (9 | 10, None) => self.list(None, depth.checked_sub(1)?),
            (9, Some(Kind::List(of))) => self.list(Some(of), depth.checked_sub(1)?),
            (12, None) => self.structure(&[], depth.checked_sub(1)?).map(drop),
            (12, Some(Kind::Structure(fields))) => self.structure(fields, depth.checked_sub(1)?).map(drop),
            (13, None) => self.skip(16),
            _ => None,
        }
    }

    fn list(&mut self, of: Option<&Kind>, depth: u8) -> Option<()> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.number()?,
            count => u64::from(count),
        };
        // Every element takes a byte at least.
        if count > (self.bytes.len() - self.at) as u64 {
            return None;
        }
        (0..count).try_for_each(|_| self.value(head & 15, of, depth))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(thrift: &[u8]) -> Vec<u8> {
        [thrift, &(thrift.len() as u32).to_le_bytes(), b"PAR1"].concat()
    }

    #[test]
    fn lists_that_take_no_room_are_refused() {
        // Field 15: a list of 2^31 - 1 booleans, texts, or structures.
        for kind in [1, 2, 8, 12] {
            let list = [0xf9, 0xf0 | kind, 0xff, 0xff, 0xff, 0xff, 0x07, 0];
            assert_eq!(check_metadata(&metadata(&list)), Err(DAMAGED.into()), "{kind}");
            assert_eq!(check_pages(&list), Err(DAMAGED.into()), "{kind}");
        }
        let nested = vec![0x19; 100_000];
        assert_eq!(check_metadata(&metadata(&nested)), Err(DAMAGED.into()));
    }

    #[test]
    fn fields_that_are_not_known_are_stepped_over() {
        let fields = [
            &[0x01, 0x80, 0x01, 0x13, 7][..],            // field 64: true; a byte
            &[0x15, 0x80, 0x01, 0x16, 1, 0x14, 3],       // numbers
            &[0x17, 0, 0, 0, 0, 0, 0, 0, 0, 0x18, 1, 9], // a double, a text
            &[0x19, 0x25, 1, 2, 0x1a, 0x03],             // a list, an empty set
            &[0x1c, 0x15, 4, 0, 0],                      // a structure, the end
        ]
        .concat();
        assert_eq!(check_metadata(&metadata(&fields)), Ok(()));
        for kept in 0..fields.len() {
            assert_eq!(check_metadata(&metadata(&fields[..kept])), Err(DAMAGED.into()), "{kept}");
        }
    }

    #[test]
    fn fields_are_of_their_kind() {
        // The version, number 1, as a number and as a text.
        assert_eq!(check_metadata(&metadata(&[0x15, 4, 0])), Ok(()));
        assert_eq!(check_metadata(&metadata(&[0x18, 1, 4, 0])), Err(DAMAGED.into()));
        // The schema, number 2, as a list of structures and as one of numbers.
        assert_eq!(check_metadata(&metadata(&[0x29, 0x1c, 0, 0])), Ok(()));
        assert_eq!(check_metadata(&metadata(&[0x29, 0x15, 0, 0])), Err(DAMAGED.into()));
    }

    #[test]
    fn pages_follow_each_other() {
        // Fields 1 and 3, the second being the size of the page.
        let page = [0x15, 0, 0x25, 6, 0, 1, 2, 3];
        assert_eq!(check_pages(&[page, page].concat()), Ok(()));
        assert_eq!(check_pages(&[&page[..], &[0xff]].concat()), Err(DAMAGED.into()));
        assert_eq!(check_pages(&[0x15, 0, 0]), Err(DAMAGED.into()), "a page without size");
        assert_eq!(check_pages(&[0x15, 0, 0x25, 1, 0]), Err(DAMAGED.into()), "a page of size -1");
    }
}
