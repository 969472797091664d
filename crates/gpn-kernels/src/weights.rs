//! From PyTorch's weight order (output, input, row, column) to the order the kernels read.

use crate::geometry::{ConvShape, padded_channels};

/// `[3][3][input.c][output.c]`, each output channel multiplied by its `scale` (none: 1).
pub(crate) fn pack_forward(shape: &ConvShape, weights: &[f32], scale: Option<&[f32]>, out: &mut [f32]) {
    let (ci, co) = (shape.input.c, shape.output.c);
    out[..9 * ci * co].fill(0.0);
    for (o, of_output) in weights.chunks_exact(9 * shape.in_channels).enumerate() {
        let factor = scale.map_or(1.0, |s| s[o]);
        for (i, taps) in of_output.chunks_exact(9).enumerate() {
            for (tap, w) in taps.iter().enumerate() {
                out[(tap * ci + i) * co + o] = w * factor;
            }
        }
    }
}

/// For the gradient of the input of a stride-1 convolution: `[3][3][output.c][padded input]`, turned by 180
/// degrees.
pub(crate) fn pack_backward(shape: &ConvShape, weights: &[f32], out: &mut [f32]) {
    pack_transposed(shape, weights, [8, 7, 6, 5, 4, 3, 2, 1, 0], out);
}

/// For the gradient of the input of a stride-2 convolution: the taps that meet pixels of even row and even
/// column; even row and odd column; odd and even; odd and odd. Each group holds its rows of
/// `[output.c][padded input]` taps.
pub(crate) fn pack_strided_backward(shape: &ConvShape, weights: &[f32], out: &mut [f32]) {
    // Tap (row, column) = 3 * row + column; odd pixels meet tap 2 of this output pixel and tap 0 of the next.
    pack_transposed(shape, weights, [4, 5, 3, 7, 1, 8, 6, 2, 0], out);
}

fn pack_transposed(shape: &ConvShape, weights: &[f32], order: [usize; 9], out: &mut [f32]) {
    let (ci, co) = (padded_channels(shape.in_channels), shape.output.c);
    out[..9 * ci * co].fill(0.0);
    for (o, of_output) in weights.chunks_exact(9 * shape.in_channels).enumerate() {
        for (i, taps) in of_output.chunks_exact(9).enumerate() {
            for (place, &tap) in order.iter().enumerate() {
                out[(place * co + o) * ci + i] = taps[tap];
            }
        }
    }
}
