//! JPEG, to the very pixels of libjpeg.
//!
//! The standard leaves the rounding of a decoder open. Networks notice: with another decoder than the one they were
//! trained with, single queries change sides. So the files that people have (Huffman coding, sequential or progressive,
//! 8 bits, grey, YCbCr, RGB, CMYK or YCCK, components at whole fractions of the size) are decoded here with the
//! arithmetic of libjpeg's defaults: the exact integer transform ([`idct`]), triangle-filtered chroma where it is halved
//! and repeated chroma elsewhere, 16-bit colour conversion ([`colour`]). CMYK becomes RGB as in Pillow.
//!
//! A file with one scan goes from its codes to values block by block ([`scan`]); with several, all coefficients are
//! collected first ([`coefficients`]).
//!
//! [`decode`] answers `None` for any other file, damaged ones included, and leaves the verdict to a general decoder.

mod coefficients;
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

/// Decodes a file, if it is of the kind treated here, without fault, and `reduction(width, height)` allows its size: that
/// says by how much both are divided, 1, 2, 4 or 8. Then every pixel is the mean of a square.
pub(super) fn decode(
    bytes: &[u8],
    reduction: impl FnOnce(usize, usize) -> Option<usize>,
) -> Option<Decoded<'_>> {
    let header = Header::parse(bytes)?;
    let (width, height, exif) = (header.width, header.height, header.exif);
    let by = reduction(width, height)?;
    let colour = header.colour;
    let planes =
        if header.is_one_scan() { scan::decode(&header, by)? } else { coefficients::decode(header, by)? };
    let (width, height) = (width.div_ceil(by), height.div_ceil(by));
    let pixels = colour::rgb(&planes, colour, width, height);
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
    /// How many columns and rows of the image a value stands for: 1 to 4.
    spread: (usize, usize),
}

impl Plane {
    /// A plane of so many blocks across and down for an image whose sides are divided by `by`, and by how much its own are.
    fn new(
        header: &Header<'_>,
        mut spread: (usize, usize),
        blocks: (usize, usize),
        mut by: usize,
    ) -> (Self, usize) {
        let (width, height) = (header.width.div_ceil(spread.0 * by), header.height.div_ceil(spread.1 * by));
        // What is halved already is reduced by half as much, and then nothing is lost by widening it again.
        if spread.0 == spread.1 && by.is_multiple_of(spread.0) {
            by /= spread.0;
            spread = (1, 1);
        }
        let side = 8 / by;
        let stride = blocks.0 * side;
        (Self { values: vec![0; stride * blocks.1 * side], stride, width, height, spread }, by)
    }

    /// A row of the image's columns; beyond the last row stands the last row again.
    fn row(&self, y: usize) -> &[u8] {
        &self.values[y.min(self.height - 1) * self.stride..][..self.width]
    }
}

#[cfg(test)]
mod tests;
