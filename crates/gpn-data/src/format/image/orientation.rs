//! The orientation that Exif data tell, and the turning of pixels.

/// How a picture must be turned to be upright; the numbers 1 to 8 of the Exif standard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Orientation(u8);

impl Orientation {
    /// Finds the orientation in Exif data, with or without their introduction `Exif\0\0`. Data that make no sense
    /// tell none: a picture is not broken because its orientation cannot be read.
    pub(super) fn of_exif(exif: &[u8]) -> Option<Self> {
        let tiff = exif.strip_prefix(b"Exif\0\0").unwrap_or(exif);
        let big_endian = match tiff.get(..4)? {
            b"II\x2a\0" => false,
            b"MM\0\x2a" => true,
            _ => return None,
        };
        let u16_at = |at: usize| -> Option<u16> {
            let bytes = [*tiff.get(at)?, *tiff.get(at + 1)?];
            Some(if big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
        };
        let u32_at = |at: usize| -> Option<u32> {
            let [first, second] = [u16_at(at)?, u16_at(at + 2)?].map(u32::from);
            Some(if big_endian { first << 16 | second } else { second << 16 | first })
        };
        let directory = u32_at(4)? as usize;
        for entry in 0..usize::from(u16_at(directory)?) {
            let at = directory + 2 + 12 * entry;
            if u16_at(at)? == 0x112 && u16_at(at + 2)? == 3 && u32_at(at + 4)? == 1 {
                let number = u16_at(at + 8)?;
                return (1..=8).contains(&number).then_some(Self(number as u8));
            }
        }
        None
    }

    /// Turns pixels `[height, width, 3]`; gives the new width and height with them.
    pub(super) fn apply(self, width: u32, height: u32, pixels: Vec<u8>) -> (u32, u32, Vec<u8>) {
        let (w, h) = (width as usize, height as usize);
        let (new_width, new_height) = if self.0 >= 5 { (height, width) } else { (width, height) };
        let (source, _) = pixels.as_chunks::<3>();
        // Where the pixel at column x and row y of the upright picture stands in the file.
        let place = |x: usize, y: usize| match self.0 {
            2 => (w - 1 - x, y),
            3 => (w - 1 - x, h - 1 - y),
            4 => (x, h - 1 - y),
            5 => (y, x),
            6 => (y, h - 1 - x),
            7 => (w - 1 - y, h - 1 - x),
            _ => (w - 1 - y, x),
        };
        if self.0 == 1 {
            return (width, height, pixels);
        }
        let mut turned = Vec::with_capacity(pixels.len());
        for y in 0..new_height as usize {
            for x in 0..new_width as usize {
                let (column, row) = place(x, y);
                turned.extend_from_slice(&source[row * w + column]);
            }
        }
        (new_width, new_height, turned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Exif data of one entry.
    fn exif(number: u16) -> Vec<u8> {
        let mut bytes = b"MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01".to_vec();
        bytes.extend(number.to_be_bytes());
        bytes.extend([0, 0]);
        bytes
    }

    #[test]
    fn the_orientation_is_found_or_ignored() {
        assert_eq!(Orientation::of_exif(&exif(6)), Some(Orientation(6)));
        assert_eq!(Orientation::of_exif(&[b"Exif\0\0", &exif(8)[..]].concat()), Some(Orientation(8)));
        assert_eq!(Orientation::of_exif(&exif(0)), None);
        assert_eq!(Orientation::of_exif(&exif(9)), None);
        for kept in 0..exif(6).len() - 2 {
            assert_eq!(Orientation::of_exif(&exif(6)[..kept]), None);
        }
    }

    #[test]
    fn turning_twice_or_back_gives_the_picture_again() {
        let pixels: Vec<u8> = (0..2 * 3 * 3).collect();
        for (there, back) in [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 8), (7, 7), (8, 6)] {
            let (width, height, turned) = Orientation(there).apply(2, 3, pixels.clone());
            assert_eq!(there == 1, turned == pixels);
            assert_eq!(Orientation(back).apply(width, height, turned), (2, 3, pixels.clone()));
        }
    }
}
