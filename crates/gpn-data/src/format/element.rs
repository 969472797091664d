//! Element types of NumPy arrays: `<f4`, `|u1`, `<U12`.

use half::f16;

/// What an element is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One byte, zero or not.
    Bool,
    /// Two's complement.
    Int,
    /// Without sign.
    Uint,
    /// IEEE 754 of 2, 4 or 8 bytes.
    Float,
    /// Text of fixed length, four bytes per character.
    Unicode,
    /// Bytes of fixed length.
    Bytes,
    /// References to Python objects; only pickles have them.
    Object,
}

/// The type of an array's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Element {
    /// What an element is.
    pub kind: Kind,
    /// Bytes per element.
    pub size: usize,
    /// Whether the most significant byte comes first.
    pub big_endian: bool,
}

impl Element {
    /// Unsigned bytes.
    pub const U8: Self = Self { kind: Kind::Uint, size: 1, big_endian: false };
    /// Little-endian 32-bit floats.
    pub const F32: Self = Self { kind: Kind::Float, size: 4, big_endian: false };

    /// Reads a type as NumPy writes it, with or without byte order.
    pub fn parse(descr: &str) -> Option<Self> {
        let (order, rest) = match descr.as_bytes().first()? {
            order @ (b'<' | b'>' | b'|' | b'=') => (*order, &descr[1..]),
            _ => (b'=', descr),
        };
        let number: usize = match rest.get(1..)? {
            "" if rest == "O" => 8,
            digits => digits.parse().ok()?,
        };
        let (kind, size) = match (rest.as_bytes()[0], number) {
            (b'b', 1) => (Kind::Bool, 1),
            (b'i', 1 | 2 | 4 | 8) => (Kind::Int, number),
            (b'u', 1 | 2 | 4 | 8) => (Kind::Uint, number),
            (b'f', 2 | 4 | 8) => (Kind::Float, number),
            (b'U', 0..=0xffff) => (Kind::Unicode, number * 4),
            (b'S' | b'a', 0..=0xffff) => (Kind::Bytes, number),
            (b'O', _) => (Kind::Object, 8),
            _ => return None,
        };
        Some(Self { kind, size, big_endian: order == b'>' })
    }

    /// The type as NumPy writes it.
    pub fn descr(self) -> String {
        let order = match (self.size, self.big_endian) {
            (_, true) => '>',
            (1, false) => '|',
            (_, false) => '<',
        };
        let letter = match self.kind {
            Kind::Bool => 'b',
            Kind::Int => 'i',
            Kind::Uint => 'u',
            Kind::Float => 'f',
            Kind::Unicode => return format!("{order}U{}", self.size / 4),
            Kind::Bytes => return format!("|S{}", self.size),
            Kind::Object => return "|O".into(),
        };
        format!("{order}{letter}{}", self.size)
    }

    /// Whether elements are numbers without fraction.
    pub fn is_integer(self) -> bool {
        matches!(self.kind, Kind::Bool | Kind::Int | Kind::Uint)
    }

    /// One element as an integer; `None` for other kinds and for values beyond `i64`.
    pub fn integer(self, bytes: &[u8]) -> Option<i64> {
        let raw = self.word(bytes)?;
        match self.kind {
            Kind::Bool => Some(i64::from(raw != 0)),
            Kind::Uint => i64::try_from(raw).ok(),
            Kind::Int => {
                let unused = 64 - 8 * self.size as u32;
                Some((raw << unused) as i64 >> unused)
            }
            _ => None,
        }
    }

    /// One element as a float; `None` for other kinds.
    pub fn float(self, bytes: &[u8]) -> Option<f64> {
        let raw = self.word(bytes)?;
        match (self.kind, self.size) {
            (Kind::Float, 2) => Some(f16::from_bits(raw as u16).to_f64()),
            (Kind::Float, 4) => Some(f64::from(f32::from_bits(raw as u32))),
            (Kind::Float, 8) => Some(f64::from_bits(raw)),
            _ => None,
        }
    }

    /// One element as text: text and bytes without their padding, integers in decimal.
    pub fn text(self, bytes: &[u8]) -> Option<String> {
        match self.kind {
            Kind::Unicode => {
                let code = |c: &[u8]| {
                    let c = [c[0], c[1], c[2], c[3]];
                    if self.big_endian { u32::from_be_bytes(c) } else { u32::from_le_bytes(c) }
                };
                let text: Option<String> = bytes.chunks_exact(4).map(|c| char::from_u32(code(c))).collect();
                text.map(|text| text.trim_end_matches('\0').to_owned())
            }
            Kind::Bytes => {
                let end = bytes.iter().rposition(|&b| b != 0).map_or(0, |last| last + 1);
                String::from_utf8(bytes[..end].to_vec()).ok()
            }
            _ => self.integer(bytes).map(|number| number.to_string()),
        }
    }

    /// The bits of a number of at most eight bytes.
    fn word(self, bytes: &[u8]) -> Option<u64> {
        if bytes.len() != self.size || self.size > 8 {
            return None;
        }
        let join = |word: u64, byte: &u8| word << 8 | u64::from(*byte);
        Some(if self.big_endian { bytes.iter().fold(0, join) } else { bytes.iter().rev().fold(0, join) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_survive_writing_and_reading() {
        for descr in ["|u1", "<f4", ">f8", "<f2", "<i8", ">u2", "|b1", "<U12", "|S7"] {
            assert_eq!(Element::parse(descr).unwrap().descr(), descr);
        }
        for bad in ["", "<", "x4", "<f3", "<i16", "<U99999999999999999999", "<c8", "é4", "<é"] {
            assert_eq!(Element::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn elements_are_read_in_both_byte_orders() {
        let element = |descr| Element::parse(descr).unwrap();
        assert_eq!(element("<i2").integer(&[0xfe, 0xff]), Some(-2));
        assert_eq!(element(">i2").integer(&[0xff, 0xfe]), Some(-2));
        assert_eq!(element("<u8").integer(&[0xff; 8]), None);
        assert_eq!(element("<f2").float(&[0x00, 0x3c]), Some(1.0));
        assert_eq!(element(">f4").float(&1.5f32.to_be_bytes()), Some(1.5));
        assert_eq!(element("<U2").text(&[0x61, 0, 0, 0, 0, 0, 0, 0]).as_deref(), Some("a"));
        assert_eq!(element("|S4").text(b"ab\0\0").as_deref(), Some("ab"));
    }
}
