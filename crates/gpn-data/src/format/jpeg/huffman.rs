//! Huffman codes, and the bits they are read from.

/// Codes up to this length are looked up at once.
const LOOKUP_BITS: u32 = 9;
const LONGEST: usize = 16;

/// What the symbols of a table mean.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum TableKind {
    /// Number of bits of a difference.
    Dc,
    /// Zeros before a coefficient, and its number of bits.
    Ac,
}

/// A table of Huffman codes.
pub(super) struct Table {
    /// By the next bits: `length << 8 | symbol`, or 0 where the code is longer.
    lookup: [u16; 1 << LOOKUP_BITS],
    /// For each length, the first code beyond those of this length, in the upper bits of 16.
    end: [u32; LONGEST + 1],
    /// For each length, what leads from a code to the place of its symbol.
    place: [u32; LONGEST + 1],
    symbols: [u8; 256],
}

impl Table {
    /// The table with `counts[l - 1]` codes of length `l`, for these symbols in order; `None` if there are no such codes.
    pub(super) fn new(counts: &[u8; LONGEST], symbols: &[u8], kind: TableKind) -> Option<Box<Self>> {
        if symbols.len() > 256 || (kind == TableKind::Dc && symbols.iter().any(|&symbol| symbol > 15)) {
            return None;
        }
        let mut table = Box::new(Self {
            lookup: [0; 1 << LOOKUP_BITS],
            end: [0; LONGEST + 1],
            place: [0; LONGEST + 1],
            symbols: [0; 256],
        });
        table.symbols[..symbols.len()].copy_from_slice(symbols);
        let (mut code, mut first) = (0_u32, 0_usize);
        for (length, &count) in (1_u32..).zip(counts) {
            let of_length = &symbols[first..][..usize::from(count)];
            table.place[length as usize] = (first as u32).wrapping_sub(code);
            if length <= LOOKUP_BITS {
                let spread = 1 << (LOOKUP_BITS - length);
                let start = code as usize * spread;
                let slots = table.lookup.get_mut(start..start + of_length.len() * spread)?;
                for (slots, &symbol) in slots.chunks_exact_mut(spread).zip(of_length) {
                    slots.fill((length as u16) << 8 | u16::from(symbol));
                }
            }
            code += u32::from(count);
            first += of_length.len();
            // No code consists of ones alone.
            if count > 0 && code >= 1 << length {
                return None;
            }
            table.end[length as usize] = code << (LONGEST as u32 - length);
            code <<= 1;
        }
        Some(table)
    }
}

/// Bits of the coded data, first bit first. Beyond the data (the end of the file or a marker) follow zeros, of which it
/// is noted how many were given out.
pub(super) struct Bits<'a> {
    bytes: &'a [u8],
    /// The next byte to take.
    at: usize,
    /// The next bits, from the top.
    window: u64,
    /// How many bits of `window` count. Those below are zeros or the true next bits.
    held: u32,
    /// How many of the bits taken into `window` were made up.
    made_up: u32,
}

impl<'a> Bits<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, window: 0, held: 0, made_up: 0 }
    }

    /// Holds 56 bits or more afterwards.
    #[inline]
    fn refill(&mut self) {
        if let Some(next) = self.bytes[self.at..].first_chunk() {
            let next = u64::from_be_bytes(*next);
            let has_marker = (!next).wrapping_sub(0x0101_0101_0101_0101) & next & 0x8080_8080_8080_8080;
            if has_marker == 0 {
                let taken = (63 - self.held) / 8;
                self.window |= next >> self.held;
                self.at += taken as usize;
                self.held += 8 * taken;
                return;
            }
        }
        self.refill_bytewise();
    }

    #[cold]
    fn refill_bytewise(&mut self) {
        while self.held <= 56 {
            let byte = match self.bytes[self.at..] {
                // A byte of ones is followed by a zero, to tell it from a marker.
                [0xff, 0, ..] => {
                    self.at += 2;
                    0xff
                }
                [0xff, ..] | [] => {
                    self.made_up = self.made_up.saturating_add(8);
                    0
                }
                [byte, ..] => {
                    self.at += 1;
                    byte
                }
            };
            self.window |= u64::from(byte) << (56 - self.held);
            self.held += 8;
        }
    }

    #[inline]
    fn skip(&mut self, count: u32) {
        self.window <<= count;
        self.held -= count;
    }

    /// The next symbol. At least 16 bits stay in the window, enough for the value that follows it.
    #[inline]
    pub(super) fn symbol(&mut self, table: &Table) -> Option<u8> {
        if self.held < 32 {
            self.refill();
        }
        let entry = table.lookup[(self.window >> (64 - LOOKUP_BITS)) as usize];
        if entry != 0 {
            self.skip(u32::from(entry >> 8));
            return Some(entry as u8);
        }
        self.long_symbol(table)
    }

    #[cold]
    fn long_symbol(&mut self, table: &Table) -> Option<u8> {
        let next = (self.window >> 48) as u32;
        let length = (LOOKUP_BITS as usize + 1..=LONGEST).find(|&length| next < table.end[length])?;
        let place = table.place[length].wrapping_add(next >> (LONGEST - length));
        self.skip(length as u32);
        table.symbols.get(place as usize).copied()
    }

    /// The value of `size` bits (0 to 15) that follows a symbol: those that begin with a zero are negative.
    #[inline]
    pub(super) fn value(&mut self, size: u32) -> i32 {
        let bits = (self.window >> 1 >> (63 - size)) as i32;
        let negative = !(self.window as i64 >> 63) as i32;
        self.skip(size);
        bits + (negative & (1 - (1 << size)))
    }

    /// The next `count` bits (0 to 16) as a number.
    #[inline]
    pub(super) fn number(&mut self, count: u32) -> u32 {
        if self.held < 32 {
            self.refill();
        }
        let bits = (self.window >> 1 >> (63 - count)) as u32;
        self.skip(count);
        bits
    }

    /// Whether more bits were asked for than there are.
    pub(super) fn ran_out(&self) -> bool {
        self.made_up > self.held
    }

    /// Steps over restart marker number `number`, which must come next.
    pub(super) fn restart(&mut self, number: u8) -> Option<()> {
        // What remains is less than a byte that fills up the last one; all whole bytes were made up.
        if self.ran_out() || self.held - self.made_up >= 8 {
            return None;
        }
        while let [0xff, 0xff, ..] = self.bytes[self.at..] {
            self.at += 1;
        }
        let rest = self.bytes[self.at..].strip_prefix(&[0xff, 0xd0 + number])?;
        *self = Self::new(rest);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Codes 0, 10, 110 and one of 12 bits.
    fn table() -> Box<Table> {
        let mut counts = [0; 16];
        (counts[0], counts[1], counts[2], counts[11]) = (1, 1, 1, 1);
        Table::new(&counts, &[7, 8, 9, 10], TableKind::Ac).unwrap()
    }

    #[test]
    fn codes_of_any_length_are_read() {
        // 0, 10, 110, 1110 0000 0000, then zeros.
        let bytes = [0b0101_1011, 0b1000_0000, 0b0000_0000];
        let mut bits = Bits::new(&bytes);
        let symbols: Vec<u8> = (0..5).map(|_| bits.symbol(&table()).unwrap()).collect();
        assert_eq!(symbols, [7, 8, 9, 10, 7]);
        assert!(!bits.ran_out());
        for _ in 0..64 {
            bits.symbol(&table()).unwrap();
        }
        assert!(bits.ran_out());
    }

    #[test]
    fn codes_that_cannot_be_are_refused() {
        let mut counts = [0; 16];
        counts[0] = 2;
        assert!(Table::new(&counts, &[1, 2], TableKind::Ac).is_none());
        counts = [0; 16];
        counts[15] = 255;
        assert!(Table::new(&counts, &[0; 255], TableKind::Ac).is_some());
        assert!(Table::new(&counts, &[16; 255], TableKind::Dc).is_none());
        assert!(
            Bits::new(&[0xaa; 20]).symbol(&Table::new(&counts, &[0; 255], TableKind::Ac).unwrap()).is_none()
        );
    }

    #[test]
    fn values_are_signed_by_their_first_bit() {
        let mut bits = Bits::new(&[0b0110_1111, 0b1000_0000]);
        bits.refill();
        assert_eq!([bits.value(1), bits.value(2), bits.value(0), bits.value(3)], [-1, 3, 0, -4]);
    }

    #[test]
    fn numbers_have_no_sign() {
        let mut bits = Bits::new(&[0b0110_1111, 0b1000_0000, 0xff, 0, 0x80]);
        assert_eq!([1, 2, 0, 3, 16].map(|count| bits.number(count)), [0, 3, 0, 3, 0b1110_0000_0011_1111]);
    }

    #[test]
    fn stuffed_bytes_and_markers_are_told_apart() {
        let mut bits = Bits::new(&[0xff, 0, 0x80, 0xff, 0xd3, 0xc0]);
        bits.refill();
        assert_eq!(bits.value(9), 511);
        assert!(bits.restart(3).is_some());
        bits.refill();
        assert_eq!(bits.value(2), 3);
        assert!(bits.restart(4).is_none());
    }
}
