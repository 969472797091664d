//! From PyTorch's weight order (output, input, row, column) to the order the kernels read.
//!
//! Packed weights are `[rows of taps][blocks of outputs][taps of a row x inputs][16 outputs]`: what one register tile
//! reads lies together, however many channels there are. They are packed block by block; a block is an array of rows.
//! Weight gradients have the same order. For a gradient of inputs, inputs and outputs change places.

use crate::geometry::{CHANNEL_BLOCK, ConvShape};

/// From a vector of a tile to the next in blocks of `rows` rows, where a tile has vectors of `lanes` values: the next
/// block, or the next part of the same one.
#[inline(always)]
pub(crate) const fn vector_step(lanes: usize, rows: usize) -> usize {
    if lanes == CHANNEL_BLOCK { rows * CHANNEL_BLOCK } else { lanes }
}

/// Where channel `c` begins in blocks of `rows` rows.
#[inline(always)]
pub(crate) const fn channel_start(c: usize, rows: usize) -> usize {
    c / CHANNEL_BLOCK * rows * CHANNEL_BLOCK + c % CHANNEL_BLOCK
}

/// Block `block` for the forward pass, `[kernel][kernel][input.c][16]`, each output channel multiplied by its `scale`
/// (none: 1).
pub(crate) fn pack_forward(
    shape: &ConvShape,
    weights: &[f32],
    scale: Option<&[f32]>,
    block: usize,
    out: &mut [f32],
) {
    let (taps, ci, inputs) = (shape.taps(), shape.input.c, shape.in_channels);
    out[..taps * ci * CHANNEL_BLOCK].fill(0.0);
    let outputs: Vec<&[f32]> =
        weights.chunks_exact(taps * inputs).skip(block * CHANNEL_BLOCK).take(CHANNEL_BLOCK).collect();
    let factors = scale.map(|scale| &scale[block * CHANNEL_BLOCK..][..CHANNEL_BLOCK]);
    for i in 0..inputs {
        for tap in 0..taps {
            let to = &mut out[(tap * ci + i) * CHANNEL_BLOCK..][..CHANNEL_BLOCK];
            for (to, output) in to.iter_mut().zip(&outputs) {
                *to = output[i * taps + tap];
            }
            if let Some(factors) = factors {
                for (to, factor) in to.iter_mut().zip(factors) {
                    *to *= factor;
                }
            }
        }
    }
}

/// Block `block` of inputs for the gradient of the input of a stride-1 convolution, `[kernel][kernel][output.c][16]`,
/// turned by 180 degrees.
pub(crate) fn pack_backward(shape: &ConvShape, weights: &[f32], block: usize, out: &mut [f32]) {
    let last = shape.taps() - 1;
    pack_transposed(shape, weights, block, |place| last - place, out);
}

/// The same for a 3x3 convolution of stride 2, `[9][output.c][16]`: the taps that meet pixels of even row and even
/// column; even row and odd column; odd and even; odd and odd.
pub(crate) fn pack_strided_backward(shape: &ConvShape, weights: &[f32], block: usize, out: &mut [f32]) {
    // Tap (row, column) = 3 * row + column; odd pixels meet tap 2 of this output pixel and tap 0 of the next.
    const ORDER: [usize; 9] = [4, 5, 3, 7, 1, 8, 6, 2, 0];
    pack_transposed(shape, weights, block, |place| ORDER[place], out);
}

fn pack_transposed(
    shape: &ConvShape,
    weights: &[f32],
    block: usize,
    tap_of: impl Fn(usize) -> usize,
    out: &mut [f32],
) {
    let (taps, co, inputs) = (shape.taps(), shape.output.c, shape.in_channels);
    out[..taps * co * CHANNEL_BLOCK].fill(0.0);
    let first = block * CHANNEL_BLOCK;
    let last = inputs.min(first + CHANNEL_BLOCK);
    for (o, output) in weights.chunks_exact(taps * inputs).enumerate() {
        let output = &output[first * taps..last * taps];
        for place in 0..taps {
            let to = &mut out[(place * co + o) * CHANNEL_BLOCK..][..CHANNEL_BLOCK];
            for (to, input) in to.iter_mut().zip(output.chunks_exact(taps)) {
                *to = input[tap_of(place)];
            }
        }
    }
}
