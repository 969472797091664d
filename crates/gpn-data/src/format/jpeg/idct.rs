//! The inverse cosine transform in integers: coefficients to values, as the most exact of libjpeg's transforms.
//!
//! The factorisation is that of Loeffler, Ligtenberg and Moschytz (1989): 12 multiplications for 8 values. Constants
//! have 13 fractional bits, and the first of the two passes leaves 2 fractional bits for the second to round.

const CONSTANT_BITS: u32 = 13;
const FIRST_PASS_BITS: u32 = 2;

/// 64 coefficients, row by row: `[vertical frequency, horizontal frequency]`.
#[repr(align(32))]
pub(super) struct Block(pub(super) [i32; 64]);

impl Default for Block {
    fn default() -> Self {
        Self([0; 64])
    }
}

/// The transform, in the variant that suits the machine.
#[derive(Clone, Copy)]
pub(super) struct Inverse {
    wide: bool,
    /// Sides of the squares whose mean is one value: 1, 2, 4 or 8.
    by: usize,
}

impl Inverse {
    /// A transform that makes one value of each square of `by` values.
    pub(super) fn detect(by: usize) -> Self {
        Self { wide: super::colour::has_avx2(), by }
    }

    /// Writes the values of a block to `out`, whose rows are `stride` apart: 8x8, or fewer where it reduces.
    #[inline]
    pub(super) fn block(self, block: &Block, out: &mut [u8], stride: usize) {
        if self.by == 1 {
            self.whole(block, out, stride);
        } else {
            let mut values = [0; 64];
            self.whole(block, &mut values, 8);
            means(&values, self.by, out, stride);
        }
    }

    #[inline]
    fn whole(self, block: &Block, out: &mut [u8], stride: usize) {
        #[cfg(target_arch = "x86_64")]
        if self.wide {
            // SAFETY: the machine has AVX2.
            unsafe { transform_avx2(block, out, stride) };
            return;
        }
        transform(block, out, stride);
    }

    /// As [`Inverse::block`] for a block whose first coefficient is the only one.
    #[inline]
    pub(super) fn flat_block(self, first: i32, out: &mut [u8], stride: usize) {
        let value = (((first + 4) >> 3) + 128).clamp(0, 255) as u8;
        let side = 8 / self.by;
        for row in out.chunks_mut(stride).take(side) {
            row[..side].fill(value);
        }
    }
}

/// The mean of each square of `by` of 8x8 values.
fn means(values: &[u8; 64], by: usize, out: &mut [u8], stride: usize) {
    let side = 8 / by;
    let count = (by * by) as u32;
    for (row, values) in out.chunks_mut(stride).zip(values.chunks_exact(8 * by)) {
        for (column, mean) in row[..side].iter_mut().enumerate() {
            let square = values.chunks_exact(8).flat_map(|line| &line[column * by..][..by]);
            let sum: u32 = square.map(|&value| u32::from(value)).sum();
            *mean = ((sum + count / 2) / count) as u8;
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn transform_avx2(block: &Block, out: &mut [u8], stride: usize) {
    transform(block, out, stride);
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "takes the vector width of its caller")]
fn transform(block: &Block, out: &mut [u8], stride: usize) {
    let columns = pass::<{ CONSTANT_BITS - FIRST_PASS_BITS }>(&block.0);
    let rows = pass::<{ CONSTANT_BITS + FIRST_PASS_BITS + 3 }>(&transposed(&columns));
    let mut values = [0_u8; 64];
    for (value, &exact) in values.iter_mut().zip(&transposed(&rows)) {
        *value = (exact + 128).clamp(0, 255) as u8;
    }
    for (row, values) in out.chunks_mut(stride).zip(values.as_chunks::<8>().0) {
        row[..8].copy_from_slice(values);
    }
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "takes the vector width of its caller")]
fn transposed(values: &[i32; 64]) -> [i32; 64] {
    let mut turned = [0; 64];
    for row in 0..8 {
        for column in 0..8 {
            turned[column * 8 + row] = values[row * 8 + column];
        }
    }
    turned
}

/// Transforms each of the eight columns, and rounds `SHIFT` bits away. Coefficients of broken files may be of any size,
/// so sums may wrap.
#[inline(always)]
#[expect(clippy::inline_always, reason = "takes the vector width of its caller")]
fn pass<const SHIFT: u32>(values: &[i32; 64]) -> [i32; 64] {
    let mut out = [0; 64];
    for column in 0..8 {
        let x: [i32; 8] = std::array::from_fn(|row| values[row * 8 + column]);
        let times = |value: i32, constant: i32| value.wrapping_mul(constant);
        let plus = |a: i32, b: i32| a.wrapping_add(b);
        let minus = |a: i32, b: i32| a.wrapping_sub(b);

        // Even frequencies.
        let turn = times(plus(x[2], x[6]), 4433);
        let (low, high) = (plus(turn, times(x[2], 6270)), minus(turn, times(x[6], 15137)));
        let (sum, difference) = (plus(x[0], x[4]) << CONSTANT_BITS, minus(x[0], x[4]) << CONSTANT_BITS);
        let even = [plus(sum, low), plus(difference, high), minus(difference, high), minus(sum, low)];

        // Odd frequencies.
        let (a, b) = (plus(x[7], x[3]), plus(x[5], x[1]));
        let common = times(plus(a, b), 9633);
        let (a, b) = (minus(common, times(a, 16069)), minus(common, times(b, 3196)));
        let (c, d) = (times(plus(x[7], x[1]), -7373), times(plus(x[5], x[3]), -20995));
        let odd = [
            plus(times(x[1], 12299), plus(c, b)),
            plus(times(x[3], 25172), plus(d, a)),
            plus(times(x[5], 16819), plus(d, b)),
            plus(times(x[7], 2446), plus(c, a)),
        ];

        let half = 1 << (SHIFT - 1);
        for row in 0..4 {
            out[row * 8 + column] = plus(plus(even[row], odd[row]), half) >> SHIFT;
            out[(7 - row) * 8 + column] = plus(minus(even[row], odd[row]), half) >> SHIFT;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flat_block_is_the_transform_of_its_first_coefficient() {
        for first in [-2000, -1024, -5, -4, -3, 0, 3, 4, 5, 77, 1016, 3000] {
            let mut block = Block::default();
            block.0[0] = first;
            let (mut flat, mut whole) = ([0; 64], [1; 64]);
            Inverse::detect(1).flat_block(first, &mut flat, 8);
            Inverse::detect(1).block(&block, &mut whole, 8);
            assert_eq!(flat, whole);
        }
    }

    #[test]
    fn values_are_within_one_of_the_cosine_sum() {
        let mut state = 1_u32;
        let mut random = |range: i32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as i32 % (2 * range + 1) - range
        };
        for _ in 0..200 {
            let mut block = Block::default();
            for (at, value) in block.0.iter_mut().enumerate() {
                *value = random(200 / (1 + at as i32));
            }
            let [mut wide, mut narrow] = [[0; 64]; 2];
            Inverse::detect(1).block(&block, &mut wide, 8);
            Inverse { wide: false, by: 1 }.block(&block, &mut narrow, 8);
            assert_eq!(wide, narrow);
            for (at, &value) in wide.iter().enumerate() {
                let exact = (cosine_sum(&block, at / 8, at % 8) + 128.0).clamp(0.0, 255.0);
                assert!((f64::from(value) - exact).abs() < 1.0, "{value} for {exact}");
            }
        }
    }

    #[test]
    fn reduced_blocks_are_means_of_squares() {
        let mut block = Block::default();
        for (at, value) in block.0.iter_mut().enumerate() {
            *value = (at as i32 * 37 % 101 - 50) * 4 / (1 + at as i32 / 8);
        }
        let mut whole = [0; 64];
        Inverse::detect(1).block(&block, &mut whole, 8);
        for by in [2, 4, 8] {
            let side = 8 / by;
            let mut reduced = vec![0; 10 * side];
            Inverse::detect(by).block(&block, &mut reduced, 10);
            for (y, x) in (0..side).flat_map(|y| (0..side).map(move |x| (y, x))) {
                let square = (0..by * by).map(|at| whole[(y * by + at / by) * 8 + x * by + at % by]);
                let mean = square.map(f64::from).sum::<f64>() / (by * by) as f64;
                assert!((f64::from(reduced[y * 10 + x]) - mean).abs() <= 0.5, "{by}: {y}, {x}");
            }
            let mut flat = vec![0; 10 * side];
            Inverse::detect(by).flat_block(77, &mut flat, 10);
            assert!(flat.chunks(10).all(|row| row[..side] == vec![138; side]), "{flat:?}");
        }
    }

    fn cosine_sum(block: &Block, y: usize, x: usize) -> f64 {
        let wave = |frequency: usize, place: usize| {
            let scale = if frequency == 0 { std::f64::consts::FRAC_1_SQRT_2 } else { 1.0 };
            scale * ((2 * place + 1) as f64 * frequency as f64 * std::f64::consts::PI / 16.0).cos() / 2.0
        };
        block.0.iter().enumerate().map(|(at, &c)| f64::from(c) * wave(at / 8, y) * wave(at % 8, x)).sum()
    }
}
