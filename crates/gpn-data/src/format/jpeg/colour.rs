//! From planes to RGB: chroma at every pixel, and the change of colour space.
//!
//! A halved plane is read as samples at the centres of their pixels; a pixel between two gets three quarters of the
//! nearer and one of the farther. The two pixels of a pair round in opposite directions, so that no bias arises.

use super::Plane;
use super::header::Colour;

/// One half, with 16 fractional bits.
const HALF: i32 = 1 << 15;

/// Whether the machine has vectors of 256 bits.
pub(super) fn has_avx2() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx2");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// RGB pixels, `[height, width, 3]`, of planes of a colour space.
pub(super) fn rgb(planes: &[Plane], colour: Colour, width: usize, height: usize) -> Vec<u8> {
    let mut pixels = vec![0; width * height * 3];
    #[cfg(target_arch = "x86_64")]
    if has_avx2() {
        // SAFETY: the machine has AVX2.
        unsafe { fill_avx2(planes, colour, width, &mut pixels) };
        return pixels;
    }
    fill(planes, colour, width, &mut pixels);
    pixels
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn fill_avx2(planes: &[Plane], colour: Colour, width: usize, pixels: &mut [u8]) {
    fill(planes, colour, width, pixels);
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "takes the vector width of its caller")]
pub(super) fn fill(planes: &[Plane], colour: Colour, width: usize, pixels: &mut [u8]) {
    let rows = pixels.chunks_exact_mut(width * 3).enumerate();
    let mut buffers: Vec<Widened> = planes.iter().map(Widened::new).collect();
    for (y, out) in rows {
        match &mut buffers[..] {
            [grey] => {
                for (pixel, &value) in out.as_chunks_mut::<3>().0.iter_mut().zip(grey.row(y)) {
                    *pixel = [value; 3];
                }
            }
            [first, second, third, black @ ..] => {
                let [first, second, third] = [first, second, third].map(|buffer| buffer.row(y));
                match colour {
                    Colour::YCbCr | Colour::Ycck => convert(first, second, third, out),
                    _ => interleave(first, second, third, out),
                }
                if let [black] = black {
                    // Inks that are stored themselves are inverted; those that YCCK gives are not.
                    let invert = if colour == Colour::Cmyk { 0xff } else { 0 };
                    darken(black.row(y), invert, out);
                }
            }
            _ => {}
        }
    }
}

/// Three planes of one pixel each.
fn interleave(first: &[u8], second: &[u8], third: &[u8], out: &mut [u8]) {
    for (((pixel, &a), &b), &c) in out.as_chunks_mut::<3>().0.iter_mut().zip(first).zip(second).zip(third) {
        *pixel = [a, b, c];
    }
}

/// From inks to light, with Pillow's rounding. `black` is stored inverted: 255 is none.
fn darken(black: &[u8], invert: u8, out: &mut [u8]) {
    for (pixel, &light) in out.as_chunks_mut::<3>().0.iter_mut().zip(black) {
        *pixel = pixel.map(|ink| {
            let taken = u32::from(ink ^ invert) * u32::from(light) + 128;
            light - (((taken >> 8) + taken) >> 8) as u8
        });
    }
}

/// Rows of a plane at the width of the image.
struct Widened<'a> {
    plane: &'a Plane,
    /// Three parts of the nearer row and one of the farther.
    sums: Vec<u16>,
    row: Vec<u8>,
}

impl<'a> Widened<'a> {
    fn new(plane: &'a Plane) -> Self {
        Self { plane, sums: vec![0; plane.width], row: vec![0; plane.spread.0 * plane.width] }
    }

    /// Row `y` of the image.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "takes the vector width of its caller")]
    fn row(&mut self, y: usize) -> &[u8] {
        let plane = self.plane;
        // libjpeg filters what is halved, but for planes of one or two columns; all else it repeats.
        let narrow = plane.width <= 2;
        match plane.spread {
            (1, 1) => return plane.row(y),
            (1, 2) => {
                self.add_rows(y);
                // The upper of two pixels rounds down.
                let rounding = 1 + (y % 2) as u16;
                for (out, &sum) in self.row.iter_mut().zip(&self.sums) {
                    *out = ((sum + rounding) >> 2) as u8;
                }
            }
            (2, 1) if !narrow => {
                for (sum, &value) in self.sums.iter_mut().zip(plane.row(y)) {
                    *sum = u16::from(value);
                }
                widen::<2>(&self.sums, &mut self.row, [1, 2]);
            }
            (2, 2) if !narrow => {
                self.add_rows(y);
                widen::<4>(&self.sums, &mut self.row, [8, 7]);
            }
            (across, down) => {
                for (values, &value) in self.row.chunks_exact_mut(across).zip(plane.row(y / down)) {
                    values.fill(value);
                }
            }
        }
        &self.row
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "takes the vector width of its caller")]
    fn add_rows(&mut self, y: usize) {
        let near = y / 2;
        let far = if y % 2 == 1 { near + 1 } else { near.saturating_sub(1) };
        let (near, far) = (self.plane.row(near), self.plane.row(far));
        for ((sum, &near), &far) in self.sums.iter_mut().zip(near).zip(far) {
            *sum = 3 * u16::from(near) + u16::from(far);
        }
    }
}

/// Two pixels for each value: three parts of it and one of the neighbour on either side, `SHIFT` bits rounded away.
#[inline(always)]
#[expect(clippy::inline_always, reason = "takes the vector width of its caller")]
fn widen<const SHIFT: u32>(values: &[u16], out: &mut [u8], rounding: [u16; 2]) {
    let (pairs, _) = out.as_chunks_mut::<2>();
    let (Some(&first), Some(&last)) = (values.first(), values.last()) else { return };
    let edge = |value: u16, rounding: u16| ((4 * value + rounding) >> SHIFT) as u8;
    let inner = |near: u16, far: u16, rounding: u16| ((3 * near + far + rounding) >> SHIFT) as u8;
    let end = pairs.len() - 1;
    pairs[0] = [edge(first, rounding[0]), inner(first, values[1], rounding[1])];
    let neighbours = values.iter().zip(&values[1..]).zip(&values[2..]);
    for (pair, ((&left, &value), &right)) in pairs[1..].iter_mut().zip(neighbours) {
        *pair = [inner(value, left, rounding[0]), inner(value, right, rounding[1])];
    }
    pairs[end] = [inner(last, values[end - 1], rounding[0]), edge(last, rounding[1])];
}

/// YCbCr to RGB with 16 fractional bits.
#[inline(always)]
#[expect(clippy::inline_always, reason = "takes the vector width of its caller")]
fn convert(luma: &[u8], blue: &[u8], red: &[u8], out: &mut [u8]) {
    let limit = |value: i32| value.clamp(0, 255) as u8;
    let (pixels, _) = out.as_chunks_mut::<3>();
    for (((pixel, &y), &blue), &red) in pixels.iter_mut().zip(luma).zip(blue).zip(red) {
        let (y, blue, red) = (i32::from(y), i32::from(blue) - 128, i32::from(red) - 128);
        *pixel = [
            limit(y + ((91881 * red + HALF) >> 16)),
            limit(y + ((-22554 * blue - 46802 * red + HALF) >> 16)),
            limit(y + ((116_130 * blue + HALF) >> 16)),
        ];
    }
}
