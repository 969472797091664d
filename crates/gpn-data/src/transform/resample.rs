//! Antialiased resampling in Pillow's fixed-point arithmetic.
//!
//! A filter ([`Filter`]), widened by the scale when an image shrinks, is applied along the rows and then along
//! the columns. Weights are 22-bit fixed point and each pass rounds to u8, as in Pillow, so that results are
//! equal bit for bit. Pillow 13 takes the columns first where it expects to save time (tall images); results
//! then differ from it, as they differ between its own versions, by at most one grey level.

use super::{ImageView, Region, TransformError, check_output, check_sides};

/// Fraction bits of a weight: a byte times a weight, summed, stays inside 32 bits with a sign and one bit to spare.
const PRECISION_BITS: u32 = 32 - 8 - 2;
const HALF: i32 = 1 << (PRECISION_BITS - 1);

/// How pixels between those of an image are found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Filter {
    /// A triangle over one pixel to each side.
    #[default]
    Bilinear,
    /// Piecewise cubic over two pixels to each side (a = -0.5), with weights below zero.
    Bicubic,
}

impl Filter {
    /// Pixels to each side that count, where the scale is kept.
    fn support(self) -> f64 {
        match self {
            Self::Bilinear => 1.0,
            Self::Bicubic => 2.0,
        }
    }

    /// The weight of a pixel at a distance.
    fn weight(self, distance: f64) -> f64 {
        const A: f64 = -0.5;
        let x = distance.abs();
        match self {
            Self::Bilinear => (1.0 - x).max(0.0),
            Self::Bicubic if x < 1.0 => ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0,
            Self::Bicubic if x < 2.0 => (((x - 5.0) * x + 8.0) * x - 4.0) * A,
            Self::Bicubic => 0.0,
        }
    }
}

/// The part of a resized image that is wanted: resizing to `width` x `height`, then taking `part` of it.
///
/// Only the wanted pixels are computed; they equal those of the whole resized image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Columns of the whole resized image.
    pub width: u32,
    /// Rows of the whole resized image.
    pub height: u32,
    /// The wanted part.
    pub part: Region,
}

impl Window {
    /// All of a resized image.
    pub const fn whole(width: u32, height: u32) -> Self {
        Self { width, height, part: Region::whole(width, height) }
    }
}

/// Weights of one axis: output `i` is a weighted sum of inputs `first[i] .. first[i] + taps`.
///
/// Every output has the same number of taps, shorter ones are padded with zero weights, so that inner loops
/// have a fixed length.
#[derive(Debug, Default)]
struct Axis {
    /// (input length, whole output length, first wanted output, wanted outputs) the tables were made for.
    made_for: (u32, u32, u32, u32),
    taps: usize,
    first: Vec<u32>,
    weights: Vec<i32>,
    /// Real-valued weights of one output, before they are normalised.
    real: Vec<f64>,
}

impl Axis {
    fn prepare(&mut self, filter: Filter, input: u32, output: u32, start: u32, count: u32) {
        if self.made_for == (input, output, start, count) {
            return;
        }
        self.made_for = (input, output, start, count);
        let scale = f64::from(input) / f64::from(output);
        let filter_scale = scale.max(1.0);
        let support = filter.support() * filter_scale;
        let inverse = 1.0 / filter_scale;
        self.taps = (support.ceil() as usize * 2 + 1).min(input as usize);
        self.first.clear();
        self.weights.clear();
        self.weights.resize(count as usize * self.taps, 0);
        for (i, weights) in self.weights.chunks_exact_mut(self.taps).enumerate() {
            let centre = (f64::from(start) + i as f64 + 0.5) * scale;
            // A float to integer cast saturates: a negative start becomes 0.
            let low = (centre - support + 0.5) as u32;
            let high = ((centre + support + 0.5) as u32).min(input);
            self.real.clear();
            self.real.extend((low..high).map(|x| filter.weight((f64::from(x) - centre + 0.5) * inverse)));
            let total: f64 = self.real.iter().sum();
            // Outputs near the far edge start earlier, so that all taps stay inside the input.
            let first = low.min(input - self.taps as u32);
            let shift = (low - first) as usize;
            self.first.push(first);
            for (weight, real) in weights[shift..].iter_mut().zip(&self.real) {
                let fixed = real / total * f64::from(1u32 << PRECISION_BITS);
                *weight = (fixed + if *real < 0.0 { -0.5 } else { 0.5 }) as i32;
            }
        }
    }

    /// The inputs that the wanted outputs read, as (first, one past the last).
    fn input_span(&self) -> (u32, u32) {
        // Starts never decrease from one output to the next.
        match (self.first.first(), self.first.last()) {
            (Some(&first), Some(&last)) => (first, last + self.taps as u32),
            _ => (0, 0),
        }
    }
}

/// Resizes images; keeps its scratch memory and the weights of the last size between calls.
#[derive(Debug, Default)]
pub struct Resampler {
    filter: Filter,
    columns: Axis,
    rows: Axis,
    /// One input row and a byte to spare, so that each pixel can be read as four bytes.
    line: Vec<u8>,
    /// Rows after the first pass.
    narrow: Vec<u8>,
    /// Sums of one output row in the second pass.
    sums: Vec<i32>,
}

impl Resampler {
    /// A bilinear resampler with no memory reserved yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A resampler by another filter.
    pub fn with_filter(filter: Filter) -> Self {
        Self { filter, ..Self::default() }
    }

    /// Crops `image` to `region`, resizes that to the window's whole size and writes the window's part of it
    /// to `out` (rows of RGB bytes).
    ///
    /// As in torchvision the crop comes first: pixels outside `region` have no influence.
    pub fn resize(
        &mut self,
        image: ImageView<'_>,
        region: Region,
        window: Window,
        out: &mut [u8],
    ) -> Result<(), TransformError> {
        let part = window.part;
        region.check_inside("a crop", image.width(), image.height())?;
        check_sides("a resized image", window.width, window.height)?;
        part.check_inside("a window", window.width, window.height)?;
        check_output(part.width as usize * part.height as usize * 3, out.len())?;

        if (region.width, region.height) == (window.width, window.height) {
            let (left, row_bytes) = (part.left as usize * 3, part.width as usize * 3);
            for (row, out) in (part.top..).zip(out.chunks_exact_mut(row_bytes)) {
                out.copy_from_slice(&image.row(region, row)[left..left + row_bytes]);
            }
            return Ok(());
        }
        self.columns.prepare(self.filter, region.width, window.width, part.left, part.width);
        self.rows.prepare(self.filter, region.height, window.height, part.top, part.height);
        let Self { columns, rows, line, narrow, sums, .. } = self;
        let stride = columns.first.len() * 3;
        let (top, bottom) = rows.input_span();
        narrow.resize((bottom - top) as usize * stride, 0);
        let row_bytes = region.width as usize * 3;
        line.resize(row_bytes + 1, 0);
        for (row, narrow) in (top..bottom).zip(narrow.chunks_exact_mut(stride)) {
            line[..row_bytes].copy_from_slice(image.row(region, row));
            // Taps known to the compiler make unrolled loops: 3 serve enlarging, 5 shrinking down to a half.
            match columns.taps {
                3 => along_row::<3>(columns, line, narrow),
                5 => along_row::<5>(columns, line, narrow),
                _ => along_row::<0>(columns, line, narrow),
            }
        }

        sums.resize(stride, 0);
        let weights = rows.weights.chunks_exact(rows.taps);
        for ((out, &first), weights) in out.chunks_exact_mut(stride).zip(&rows.first).zip(weights) {
            let inputs = narrow[(first - top) as usize * stride..].chunks_exact(stride);
            sums.fill(HALF);
            for (input, &weight) in inputs.zip(weights) {
                for (sum, &byte) in sums.iter_mut().zip(input) {
                    *sum += i32::from(byte) * weight;
                }
            }
            for (byte, &sum) in out.iter_mut().zip(&*sums) {
                *byte = round(sum);
            }
        }
        Ok(())
    }
}

/// One row of the first pass with `TAPS` taps, 0 for any number. A fourth lane, thrown away, makes a pixel
/// fill a register.
fn along_row<const TAPS: usize>(axis: &Axis, line: &[u8], out: &mut [u8]) {
    let taps = if TAPS == 0 { axis.taps } else { TAPS };
    let weights = axis.weights.chunks_exact(taps);
    for ((pixel, &first), weights) in out.as_chunks_mut::<3>().0.iter_mut().zip(&axis.first).zip(weights) {
        let start = first as usize * 3;
        let inputs = &line[start..=start + taps * 3];
        let mut sums = [HALF; 4];
        for (bytes, &weight) in inputs.windows(4).step_by(3).zip(weights) {
            for lane in 0..4 {
                sums[lane] += i32::from(bytes[lane]) * weight;
            }
        }
        *pixel = [round(sums[0]), round(sums[1]), round(sums[2])];
    }
}

/// A fixed-point sum as a byte.
fn round(sum: i32) -> u8 {
    (sum >> PRECISION_BITS).clamp(0, 255) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(width: u32, height: u32) -> Vec<u8> {
        (0..width * height * 3).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
    }

    #[test]
    fn the_same_size_copies() -> Result<(), TransformError> {
        let pixels = picture(7, 9);
        let mut out = vec![0u8; pixels.len()];
        let image = ImageView::new(7, 9, &pixels)?;
        Resampler::new().resize(image, Region::whole(7, 9), Window::whole(7, 9), &mut out)?;
        assert_eq!(out, pixels);
        Ok(())
    }

    #[test]
    fn a_window_equals_that_part_of_the_whole() -> Result<(), TransformError> {
        let pixels = picture(29, 31);
        let image = ImageView::new(29, 31, &pixels)?;
        let region = Region { left: 2, top: 3, width: 25, height: 20 };
        for (width, height) in [(12, 11), (60, 50)] {
            let mut resampler = Resampler::new();
            let mut whole = vec![0u8; (width * height * 3) as usize];
            resampler.resize(image, region, Window::whole(width, height), &mut whole)?;
            let part = Region { left: 4, top: 3, width: 5, height: 6 };
            let mut out = vec![0u8; 5 * 6 * 3];
            resampler.resize(image, region, Window { width, height, part }, &mut out)?;
            let whole = ImageView::new(width, height, &whole)?;
            let expected: Vec<u8> = (0..6).flat_map(|row| whole.row(part, row).to_vec()).collect();
            assert_eq!(out, expected, "{width}x{height}");
        }
        Ok(())
    }

    #[test]
    fn rectangles_outside_and_wrong_buffers_are_refused() -> Result<(), TransformError> {
        let pixels = picture(4, 4);
        let image = ImageView::new(4, 4, &pixels)?;
        let mut out = vec![0u8; 12];
        let mut resize = |region, window| Resampler::new().resize(image, region, window, &mut out);
        let outside = Region { left: 3, top: 0, width: 2, height: 1 };
        assert!(matches!(resize(outside, Window::whole(2, 2)), Err(TransformError::Outside { .. })));
        let empty = Region { left: 0, top: 0, width: 0, height: 1 };
        assert!(matches!(resize(empty, Window::whole(2, 2)), Err(TransformError::Side { .. })));
        let whole = Region::whole(4, 4);
        assert!(matches!(resize(whole, Window::whole(3, 3)), Err(TransformError::OutputLength { .. })));
        assert!(matches!(resize(whole, Window::whole(u32::MAX, 1)), Err(TransformError::Side { .. })));
        assert!(matches!(ImageView::new(4, 5, &pixels), Err(TransformError::PixelCount { .. })));
        Ok(())
    }
}
