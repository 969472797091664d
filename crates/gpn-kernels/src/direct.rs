//! Convolution by its definition: register tiles of pixels by channels, all taps of a row in one sweep.
//!
//! Serves the first layer (three channels), stride 2 and its gradients.

use crate::epilogue::{Epilogue, Run};
use crate::geometry::{ConvShape, Map};
use crate::simd::Vector;
use crate::tile::{Strides, accumulate, accumulate_rows, best_height, load, store};

/// A sweep over one padded input map: for every output pixel of a grid, up to three rows of taps.
struct Sweep {
    /// First value of the window of output pixel (0, 0), for each row of taps.
    input: [*const f32; 3],
    /// Weights of each row of taps: `steps` rows of `channels` values.
    weights: [*const f32; 3],
    /// Number of rows of taps.
    rows: usize,
    /// Consecutive input values under a row of taps.
    steps: usize,
    /// Input values from one output pixel to the next, and from one output row to the next.
    pixel: usize,
    row: usize,
    /// Output pixels of the grid, and their place in the output map.
    h: usize,
    w: usize,
    grid: Grid,
    /// Output channels.
    channels: usize,
}

/// Output pixel (y, x) of the sweep is pixel (y * step + y0, x * step + x0) of the map.
#[derive(Clone, Copy)]
struct Grid {
    step: usize,
    y0: usize,
    x0: usize,
}

impl Sweep {
    /// # Safety
    /// The pointers reach every value the sweep's sizes name, and every grid pixel is in the output map.
    #[inline(always)]
    unsafe fn run<V: Vector, E: Epilogue<V>>(&self, image: usize, epilogue: &mut E) {
        // SAFETY: passed on.
        unsafe {
            if self.channels.is_multiple_of(2 * V::LANES) {
                match best_height(V::TILE_PIXELS, self.w) {
                    8 => self.run_tiles::<V, E, 8, 2, 0>(image, epilogue),
                    7 => self.run_tiles::<V, E, 7, 2, 0>(image, epilogue),
                    6 => self.run_tiles::<V, E, 6, 2, 0>(image, epilogue),
                    4 => self.run_tiles::<V, E, 4, 2, 0>(image, epilogue),
                    _ => self.run_tiles::<V, E, 3, 2, 0>(image, epilogue),
                }
            } else {
                // Only 16 lanes leave a single vector of channels: 16 of them are a block.
                // Pixels 3 apart are those of an image, 32 those of the first stride-2 layer.
                match (best_height([16, 7], self.w), self.pixel) {
                    (16, 3) => self.run_tiles::<V, E, 16, 1, 3>(image, epilogue),
                    (16, 32) => self.run_tiles::<V, E, 16, 1, 32>(image, epilogue),
                    (16, _) => self.run_tiles::<V, E, 8, 1, 0>(image, epilogue),
                    _ => self.run_tiles::<V, E, 7, 1, 0>(image, epilogue),
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn run_tiles<V: Vector, E: Epilogue<V>, const P: usize, const Q: usize, const ROW: usize>(
        &self,
        image: usize,
        epilogue: &mut E,
    ) {
        let strides = Strides { x_row: self.pixel, x_step: 1, w_step: self.channels };
        for y in 0..self.h {
            for c in (0..self.channels).step_by(Q * V::LANES) {
                for x in (0..self.w).step_by(P) {
                    let mut acc = [[V::zero(); Q]; P];
                    for r in 0..self.rows {
                        // SAFETY: a tile past the end of the row reads the slack of the padded map.
                        unsafe {
                            let input = self.input[r].add(y * self.row + x * self.pixel);
                            acc = accumulate_rows::<V, P, Q, ROW>(
                                acc,
                                input,
                                self.weights[r].add(c),
                                strides,
                                self.steps,
                            );
                        }
                    }
                    let run = Run {
                        image,
                        y: y * self.grid.step + self.grid.y0,
                        x: x * self.grid.step + self.grid.x0,
                        x_step: self.grid.step,
                        pixels: P.min(self.w - x),
                    };
                    for q in 0..Q {
                        let mut values = [V::zero(); P];
                        for p in 0..P {
                            values[p] = acc[p][q];
                        }
                        // SAFETY: `pixels` ends at the edge of the grid.
                        unsafe { epilogue.take(run, c + q * V::LANES, &values) };
                    }
                }
            }
            epilogue.settle();
        }
    }
}

/// 3x3 convolution of `images` padded maps. `weights`: `[3][3][input.c][output.c]`.
#[inline(always)]
pub(crate) fn convolve<V: Vector, E: Epilogue<V>>(
    input: Map,
    output: Map,
    stride: usize,
    maps: &[f32],
    images: usize,
    weights: &[f32],
    epilogue: &mut E,
) {
    let tap_row = 3 * input.c * output.c;
    assert!(maps.len() >= images * input.padded_len() && weights.len() >= 3 * tap_row);
    assert!(output.h <= input.h.div_ceil(stride) && output.w <= input.w.div_ceil(stride));
    for image in 0..images {
        // SAFETY: windows of output pixels lie inside the padded map, and the lengths were checked.
        unsafe {
            let base = maps.as_ptr().add(image * input.padded_len());
            let sweep = Sweep {
                input: [0, 1, 2].map(|r| base.add(r * input.padded_row())),
                weights: [0, 1, 2].map(|r| weights.as_ptr().add(r * tap_row)),
                rows: 3,
                steps: 3 * input.c,
                pixel: stride * input.c,
                row: stride * input.padded_row(),
                h: output.h,
                w: output.w,
                grid: Grid { step: 1, y0: 0, x0: 0 },
                channels: output.c,
            };
            sweep.run(image, epilogue);
        }
    }
}

/// Gradient of the input of a stride-2 convolution, from padded maps of output gradients.
///
/// Input pixels of even row meet the middle tap row only, those of odd row the other two; likewise columns.
/// The four kinds of pixels are four small stride-1 convolutions, whose weights follow each other in
/// `weights` in the order of [`crate::weights::pack_strided_backward`].
#[inline(always)]
pub(crate) fn convolve_strided_backward<V: Vector, E: Epilogue<V>>(
    shape: &ConvShape,
    maps: &[f32],
    images: usize,
    weights: &[f32],
    epilogue: &mut E,
) {
    let (grad, out) = (shape.output, shape.input_gradient());
    assert_eq!(shape.stride, 2);
    assert!(maps.len() >= images * grad.padded_len() && weights.len() >= 9 * grad.c * out.c);
    for image in 0..images {
        let mut at = 0;
        for y0 in 0..2 {
            for x0 in 0..2 {
                let tap_row = (1 + x0) * grad.c * out.c;
                // SAFETY: pixel (y, x) of the grid reads gradients (y .. y + 2, x .. x + 2), inside the
                // padded map; the weights of the four kinds add up to nine taps.
                unsafe {
                    let base = maps.as_ptr().add(image * grad.padded_len() + grad.padded_at(0, 0));
                    let first = weights.as_ptr().add(at);
                    let sweep = Sweep {
                        input: [base, base.add(grad.padded_row()), base],
                        weights: [first, first.wrapping_add(tap_row), first],
                        rows: 1 + y0,
                        steps: (1 + x0) * grad.c,
                        pixel: grad.c,
                        row: grad.padded_row(),
                        h: (out.h + 1 - y0) / 2,
                        w: (out.w + 1 - x0) / 2,
                        grid: Grid { step: 2, y0, x0 },
                        channels: out.c,
                    };
                    sweep.run(image, epilogue);
                }
                at += (1 + y0) * tap_row;
            }
        }
    }
}

/// Adds to `gradient` (`[3][3][input.c][output.c]`) the gradient of the weights, from padded maps of inputs
/// and of output gradients.
#[inline(always)]
pub(crate) fn add_weight_gradient<V: Vector>(
    shape: &ConvShape,
    inputs: &[f32],
    gradients: &[f32],
    images: usize,
    gradient: &mut [f32],
) {
    let (input, output) = (shape.input, shape.output);
    assert!(inputs.len() >= images * input.padded_len() && gradients.len() >= images * output.padded_len());
    assert!(gradient.len() >= 9 * input.c * output.c);
    // The tile runs over consecutive input values under a row of taps, a multiple of 48 or (image) 9.
    // SAFETY of the calls: lengths were checked, and P divides 3 * input.c.
    unsafe {
        match (V::LANES, input.c.is_multiple_of(4), output.c.is_multiple_of(2 * V::LANES)) {
            (16, true, true) => sum_pixels::<V, 12, 2>(shape, inputs, gradients, images, gradient),
            (16, true, false) => sum_pixels::<V, 24, 1>(shape, inputs, gradients, images, gradient),
            (16, false, _) if input.c == 3 => {
                sum_pixels::<V, 9, 1>(shape, inputs, gradients, images, gradient);
            }
            (8, true, _) => sum_pixels::<V, 6, 2>(shape, inputs, gradients, images, gradient),
            (_, _, true) => sum_pixels::<V, 3, 2>(shape, inputs, gradients, images, gradient),
            _ => sum_pixels::<V, 3, 1>(shape, inputs, gradients, images, gradient),
        }
    }
}

/// # Safety
/// Lengths are those of [`add_weight_gradient`]; P divides `3 * input.c`, `Q * LANES` divides `output.c`.
#[inline(always)]
unsafe fn sum_pixels<V: Vector, const P: usize, const Q: usize>(
    shape: &ConvShape,
    inputs: &[f32],
    gradients: &[f32],
    images: usize,
    gradient: &mut [f32],
) {
    /// Rows summed before the next taps are taken, so that they stay in the first cache.
    const ROWS: usize = 4;
    let (input, output) = (shape.input, shape.output);
    let taps = 3 * input.c;
    let strides = Strides { x_row: 1, x_step: shape.stride * input.c, w_step: output.c };
    for image in 0..images {
        for first in (0..output.h).step_by(ROWS) {
            for dy in 0..3 {
                for k in (0..taps).step_by(P) {
                    for c in (0..output.c).step_by(Q * V::LANES) {
                        // SAFETY: the window of a pixel is inside the padded input map, the pixel inside the
                        // padded gradient map, the tile inside the weights.
                        unsafe {
                            let sums = gradient.as_mut_ptr().add((dy * taps + k) * output.c + c);
                            let mut acc: [[V; Q]; P] = load(sums, output.c);
                            for y in first..(first + ROWS).min(output.h) {
                                let x = (image * input.padded_len())
                                    + (y * shape.stride + dy) * input.padded_row()
                                    + k;
                                let g = image * output.padded_len() + output.padded_at(y, 0) + c;
                                acc = accumulate(
                                    acc,
                                    inputs.as_ptr().add(x),
                                    gradients.as_ptr().add(g),
                                    strides,
                                    output.w,
                                );
                            }
                            store(&acc, sums, output.c, P);
                        }
                    }
                }
            }
        }
    }
}
