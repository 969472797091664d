//! From planes to RGB: chroma at every pixel, and the change of colour space.
//!
//! A halved plane is read as samples at the centres of their pixels; a pixel between two gets three quarters of the
//! nearer and one of the farther. The two pixels of a pair round in opposite directions, so that no bias arises.

use super::Plane;

/// One half, with 16 fractional bits.
const HALF: i32 = 1 << 15;

/// Whether the machine has vectors of 256 bits.
pub(super) fn has_avx2() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx2");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// RGB pixels, `[height, width, 3]`, of one plane (grey) or three (YCbCr).
pub(super) fn rgb(planes: &[Plane], width: usize, height: usize) -> Vec<u8> {
    let mut pixels = vec![0; width * height * 3];
    #[cfg(target_arch = "x86_64")]
    if has_avx2() {
        // SAFETY: the machine has AVX2.
        unsafe { fill_avx2(planes, width, &mut pixels) };
        return pixels;
    }
    fill(planes, width, &mut pixels);
    pixels
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn fill_avx2(planes: &[Plane], width: usize, pixels: &mut [u8]) {
    fill(planes, width, pixels);
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "takes the vector width of its caller")]
pub(super) fn fill(planes: &[Plane], width: usize, pixels: &mut [u8]) {
    let rows = pixels.chunks_exact_mut(width * 3).enumerate();
    if let [grey] = planes {
        for (y, out) in rows {
            for (pixel, &value) in out.as_chunks_mut::<3>().0.iter_mut().zip(grey.row(y)) {
                *pixel = [value; 3];
            }
        }
    } else if let [luma, blue, red] = planes {
        let mut buffers = [luma, blue, red].map(Widened::new);
        for (y, out) in rows {
            let [luma, blue, red] = &mut buffers;
            convert(luma.row(y), blue.row(y), red.row(y), out);
        }
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
        Self { plane, sums: vec![0; plane.width], row: vec![0; 2 * plane.width] }
    }

    /// Row `y` of the image.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "takes the vector width of its caller")]
    fn row(&mut self, y: usize) -> &[u8] {
        let plane = self.plane;
        // libjpeg repeats the columns of planes with one or two, and the rows as well where both are halved.
        let narrow = plane.width <= 2;
        match plane.spread {
            (1, 1) => return plane.row(y),
            (1, _) => {
                self.add_rows(y);
                // The upper of two pixels rounds down.
                let rounding = 1 + (y % 2) as u16;
                for (out, &sum) in self.row.iter_mut().zip(&self.sums) {
                    *out = ((sum + rounding) >> 2) as u8;
                }
            }
            (_, down) if narrow => {
                for (pair, &value) in self.row.as_chunks_mut::<2>().0.iter_mut().zip(plane.row(y / down)) {
                    *pair = [value; 2];
                }
            }
            (_, 1) => {
                for (sum, &value) in self.sums.iter_mut().zip(plane.row(y)) {
                    *sum = u16::from(value);
                }
                widen::<2>(&self.sums, &mut self.row, [1, 2]);
            }
            _ => {
                self.add_rows(y);
                widen::<4>(&self.sums, &mut self.row, [8, 7]);
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
