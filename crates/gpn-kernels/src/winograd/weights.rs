//! Winograd's transform of weights, and back of their gradients.

use super::line::{weight_transform, weight_transform_transposed};
use super::{PLACES, load_column};
use crate::geometry::{CHANNEL_BLOCK, ConvShape};
use crate::simd::Vector;

/// `G w G'`: weights `[9][pairs]` become 36 rows of `pairs` values; `pairs` is a multiple of 16.
#[inline(always)]
pub(crate) fn transform_weights<V: Vector>(weights: &[f32], pairs: usize, out: &mut [&mut [f32]]) {
    assert!(weights.len() >= 9 * pairs && pairs.is_multiple_of(V::LANES));
    assert!(out.len() == PLACES && out.iter().all(|row| row.len() >= pairs));
    for i in (0..pairs).step_by(V::LANES) {
        let mut half = [[V::zero(); 3]; 6];
        for column in 0..3 {
            // SAFETY: `weights` holds nine planes of `pairs` values.
            let line = unsafe { load_column(weights.as_ptr().add(column * pairs + i), 3 * pairs) };
            let line = weight_transform::<V>(line);
            for row in 0..6 {
                half[row][column] = line[row];
            }
        }
        for (row, &line) in half.iter().enumerate() {
            for (column, value) in weight_transform(line).into_iter().enumerate() {
                // SAFETY: every row of `out` holds `pairs` values.
                unsafe { value.store(out[row * 6 + column].as_mut_ptr().add(i)) };
            }
        }
    }
}

/// `G' u G`: the gradient of transformed weights `[36][blocks][input.c][16]` becomes that of the weights,
/// `[3][blocks][3][input.c][16]`.
#[inline(always)]
pub(crate) fn transform_weight_gradient<V: Vector>(shape: &ConvShape, gradient: &[f32], out: &mut [f32]) {
    let pairs = shape.input.c * shape.output.c;
    let block_len = shape.input.c * CHANNEL_BLOCK;
    assert!(gradient.len() >= PLACES * pairs && out.len() >= 9 * pairs);
    for (block, i) in (0..pairs).step_by(V::LANES).map(|i| (i / block_len, i % block_len)) {
        let mut half = [[V::zero(); 6]; 3];
        for column in 0..6 {
            // SAFETY: `gradient` holds 36 planes of `pairs` values.
            let line = unsafe {
                let from = column * pairs + block * block_len + i;
                load_column(gradient.as_ptr().add(from), 6 * pairs)
            };
            let line = weight_transform_transposed::<V>(line);
            for row in 0..3 {
                half[row][column] = line[row];
            }
        }
        for (row, &line) in half.iter().enumerate() {
            for (column, value) in weight_transform_transposed(line).into_iter().enumerate() {
                let to = row * 3 * pairs + (block * 3 + column) * block_len + i;
                // SAFETY: `out` holds nine planes of `pairs` values.
                unsafe { value.store(out.as_mut_ptr().add(to)) };
            }
        }
    }
}
