//! Baseline JPEG, to the very pixels of libjpeg.
//!
//! The standard leaves the rounding of a decoder open. Networks notice: with another decoder than the one they were
//! trained with, single queries change sides. So the files that data sets are made of (sequential Huffman coding,
//! 8 bits, grey or YCbCr, chroma halved or not) are decoded here with the arithmetic of libjpeg's defaults: the exact
//! integer transform ([`idct`]), triangle-filtered chroma and 16-bit colour conversion ([`colour`]).
//!
//! [`decode`] answers `None` for any other file, damaged ones included, and leaves the verdict to a general decoder.

mod colour;
mod header;
mod huffman;
mod idct;
mod scan;

use header::Header;

/// A decoded file.
pub(super) struct Decoded<'a> {
    pub(super) width: usize,
    pub(super) height: usize,
    /// RGB, `[height, width, 3]`.
    pub(super) pixels: Vec<u8>,
    /// The Exif data as it stands in the file.
    pub(super) exif: Option<&'a [u8]>,
}

/// Decodes a file, if it is of the kind treated here, without fault, and `accept(width, height)` allows its size.
pub(super) fn decode(bytes: &[u8], accept: impl FnOnce(usize, usize) -> bool) -> Option<Decoded<'_>> {
    let header = Header::parse(bytes)?;
    let (width, height, exif) = (header.width, header.height, header.exif);
    if !accept(width, height) {
        return None;
    }
    let planes = scan::decode(&header)?;
    let pixels = colour::rgb(&planes, width, height);
    Some(Decoded { width, height, pixels, exif })
}

/// Values of one component, in whole blocks.
struct Plane {
    values: Vec<u8>,
    /// From one row to the next.
    stride: usize,
    /// Columns and rows that belong to the image.
    width: usize,
    height: usize,
    /// How many columns and rows of the image a value stands for: 1 or 2.
    spread: (usize, usize),
}

impl Plane {
    /// A row of the image's columns; beyond the last row stands the last row again.
    fn row(&self, y: usize) -> &[u8] {
        &self.values[y.min(self.height - 1) * self.stride..][..self.width]
    }
}

#[cfg(test)]
mod tests;
