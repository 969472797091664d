//! Convolution by its definition: register tiles of pixels by channels, all taps of a row in one sweep.
//!
//! Serves the first layer (three channels), stride 2 and its gradients.

use crate::ahead::{Ahead, Pace};
use crate::epilogue::{Epilogue, Run};
use crate::geometry::{CHANNEL_BLOCK, ConvShape, Map, TILE};
use crate::simd::Vector;
use crate::tile::{Strides, accumulate, accumulate_rows, add, best_height, load, store};

/// A sweep over one padded input map: three rows of taps for every output pixel.
struct Sweep<'a> {
    /// First value of the window of output pixel (0, 0), for each row of taps.
    input: [*const f32; 3],
    /// Weights of each row of taps: a row of `channels` values for every input value under it.
    weights: [*const f32; 3],
    /// How the values under a row of taps are summed.
    order: Order,
    /// Input values from one output pixel to the next, and from one output row to the next.
    pixel: usize,
    row: usize,
    /// Output pixels.
    h: usize,
    w: usize,
    /// Output channels.
    channels: usize,
    /// Fetched meanwhile, beginning with this step.
    pace: Pace<'a>,
    first_step: usize,
}

/// The values under a row of taps come in `taps` runs, `tap` values apart; of each run, `blocks` pieces of
/// `steps` values are summed one after the other: first those of all taps in the first piece, from zero.
#[derive(Clone, Copy)]
struct Order {
    taps: usize,
    tap: usize,
    blocks: usize,
    steps: usize,
}

impl Order {
    /// Sums block of channels by block of channels, as oneDNN and therefore PyTorch does: the outputs are the same bits.
    fn of(channels: usize) -> Order {
        if channels <= CHANNEL_BLOCK {
            return Order { taps: 1, tap: 0, blocks: 1, steps: 3 * channels };
        }
        Order { taps: 3, tap: channels, blocks: channels / CHANNEL_BLOCK, steps: CHANNEL_BLOCK }
    }
}

impl Sweep<'_> {
    /// # Safety
    /// The pointers reach every value the sweep's sizes name, and every pixel is in the output map.
    #[inline(always)]
    unsafe fn run<V: Vector, E: Epilogue<V>>(&self, image: usize, epilogue: &mut E) {
        // SAFETY: passed on.
        unsafe {
            let height = best_height(V::TILE_PIXELS, self.w);
            if !V::IS_BLOCK {
                if V::IS_HALF_BLOCK && height == 6 {
                    self.run_tiles::<V, E, 6, 2, 0>(image, epilogue);
                } else if V::IS_HALF_BLOCK || height == 4 {
                    self.run_tiles::<V, E, 4, 2, 0>(image, epilogue);
                } else {
                    self.run_tiles::<V, E, 3, 2, 0>(image, epilogue);
                }
            } else if self.channels.is_multiple_of(2 * V::LANES) {
                if height == 8 {
                    self.run_tiles::<V, E, 8, 2, 0>(image, epilogue);
                } else {
                    self.run_tiles::<V, E, 7, 2, 0>(image, epilogue);
                }
            } else {
                // A single vector of channels is left. Pixels 3 apart are those of an image.
                match (best_height([16, 7], self.w), self.pixel) {
                    (16, 3) => self.run_tiles::<V, E, 16, 1, 3>(image, epilogue),
                    (16, 16) => self.run_tiles::<V, E, 16, 1, 16>(image, epilogue),
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
            self.pace.fetch::<V>(self.first_step + y);
            for c in (0..self.channels).step_by(Q * V::LANES) {
                for x in (0..self.w).step_by(P) {
                    let mut acc = [[V::zero(); Q]; P];
                    for block in 0..self.order.blocks {
                        // SAFETY: a tile past the end of the row reads the slack of the padded map.
                        let part = unsafe { self.sum_block::<V, P, Q, ROW>(block, (y, x, c), strides) };
                        acc = if block == 0 { part } else { add(acc, part) };
                    }
                    let run = Run { image, y, x, x_step: 1, pixels: P.min(self.w - x) };
                    for q in 0..Q {
                        let mut values = [V::zero(); P];
                        for p in 0..P {
                            values[p] = acc[p][q];
                        }
                        // SAFETY: `pixels` ends at the edge of the map.
                        unsafe { epilogue.take(run, c + q * V::LANES, &values) };
                    }
                }
            }
            epilogue.settle();
        }
    }
}

impl Sweep<'_> {
    /// The sum of one block for a register tile.
    ///
    /// # Safety
    /// As [`Sweep::run`], for the tile at pixel (y, x) and channel c.
    #[inline(always)]
    unsafe fn sum_block<V: Vector, const P: usize, const Q: usize, const ROW: usize>(
        &self,
        block: usize,
        (y, x, c): (usize, usize, usize),
        strides: Strides,
    ) -> [[V; Q]; P] {
        let Order { taps, tap, steps, .. } = self.order;
        let mut acc = [[V::zero(); Q]; P];
        for r in 0..3 {
            for t in 0..taps {
                let step = t * tap + block * CHANNEL_BLOCK;
                // SAFETY: passed on.
                unsafe {
                    let input = self.input[r].add(y * self.row + x * self.pixel + step);
                    let weights = self.weights[r].add(step * self.channels + c);
                    acc = accumulate_rows::<V, P, Q, ROW>(acc, input, weights, strides, steps);
                }
            }
        }
        acc
    }
}

/// 3x3 convolution of `images` padded maps. `weights`: `[3][3][input.c][output.c]`.
#[inline(always)]
pub(crate) fn convolve<V: Vector, E: Epilogue<V>>(
    (input, output): (Map, Map),
    stride: usize,
    maps: &[f32],
    images: usize,
    weights: &[f32],
    ahead: Ahead<'_>,
    epilogue: &mut E,
) {
    let tap_row = 3 * input.c * output.c;
    assert!(maps.len() >= images * input.padded_len() && weights.len() >= 3 * tap_row);
    assert!(output.h <= input.h.div_ceil(stride) && output.w <= input.w.div_ceil(stride));
    let pace = ahead.over(images * output.h);
    for image in 0..images {
        // SAFETY: windows of output pixels lie inside the padded map, and the lengths were checked.
        unsafe {
            let base = maps.as_ptr().add(image * input.padded_len());
            let sweep = Sweep {
                input: [0, 1, 2].map(|r| base.add(r * input.padded_row())),
                weights: [0, 1, 2].map(|r| weights.as_ptr().add(r * tap_row)),
                order: Order::of(input.c),
                pixel: stride * input.c,
                row: stride * input.padded_row(),
                h: output.h,
                w: output.w,
                channels: output.c,
                pace,
                first_step: image * output.h,
            };
            sweep.run(image, epilogue);
        }
    }
}

/// Gradient of the input of a stride-2 convolution, from padded maps of output gradients.
///
/// An input pixel of even row meets the middle tap row only, one of odd row the other two; likewise columns.
/// A register tile therefore holds four kinds of pixels, made from the same gradients, so that each of those
/// is loaded once for nine products. `weights`: as [`crate::weights::pack_strided_backward`] leaves them.
#[inline(always)]
pub(crate) fn convolve_strided_backward<V: Vector, E: Epilogue<V>>(
    shape: &ConvShape,
    maps: &[f32],
    images: usize,
    weights: &[f32],
    ahead: Ahead<'_>,
    epilogue: &mut E,
) {
    let (grad, out) = (shape.output, shape.input_gradient());
    assert_eq!(shape.stride, 2);
    assert!(maps.len() >= images * grad.padded_len() && weights.len() >= 9 * grad.c * out.c);
    let pace = ahead.over(images * grad.h);
    for image in 0..images {
        for y in 0..grad.h {
            pace.fetch::<V>(image * grad.h + y);
            for x in (0..grad.w).step_by(TILE) {
                for c in (0..out.c).step_by(V::LANES) {
                    // SAFETY: the tile reads gradients (y .. y + 2, x .. x + 5), inside the padded map, and
                    // vector `c` of the weights; both lengths were checked.
                    let kinds = unsafe {
                        let from = image * grad.padded_len() + grad.padded_at(y, x);
                        strided_tile::<V>(grad, maps.as_ptr().add(from), weights.as_ptr().add(c), out.c)
                    };
                    for (kind, values) in kinds.iter().enumerate() {
                        let (y, x) = (2 * y + kind / 2, 2 * x + kind % 2);
                        if y < out.h && x < out.w {
                            let pixels = TILE.min((out.w - x).div_ceil(2));
                            // SAFETY: the pixels are inside the map.
                            unsafe { epilogue.take(Run { image, y, x, x_step: 2, pixels }, c, values) };
                        }
                    }
                }
            }
            epilogue.settle();
        }
    }
}

/// A tile of the four kinds: even row and even column, even and odd, odd and even, odd and odd.
///
/// # Safety
/// `gradients` is readable for two padded rows of five pixels, `weights` for nine taps.
#[inline(always)]
unsafe fn strided_tile<V: Vector>(
    grad: Map,
    gradients: *const f32,
    weights: *const f32,
    channels: usize,
) -> [[V; TILE]; 4] {
    /// Kind, tap in the order of the weights, and whether it meets the pixel to the right; in this row and
    /// in the one below.
    const TAPS: [&[(usize, usize, usize)]; 2] = [
        &[(0, 0, 0), (1, 1, 0), (1, 2, 1), (2, 3, 0), (3, 5, 0), (3, 6, 1)],
        &[(2, 4, 0), (3, 7, 0), (3, 8, 1)],
    ];
    let mut kinds = [[V::zero(); TILE]; 4];
    for k in 0..grad.c {
        for (row, taps) in TAPS.into_iter().enumerate() {
            let mut scalars = [V::zero(); TILE + 1];
            for (p, scalar) in scalars.iter_mut().enumerate() {
                // SAFETY: the caller's promise.
                *scalar = V::splat(unsafe { *gradients.add(row * grad.padded_row() + p * grad.c + k) });
            }
            for &(kind, tap, right) in taps {
                // SAFETY: as above.
                let weight = unsafe { V::load(weights.add((tap * grad.c + k) * channels)) };
                for p in 0..TILE {
                    kinds[kind][p] = scalars[p + right].mul_add(weight, kinds[kind][p]);
                }
            }
        }
    }
    kinds
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
    ahead: Ahead<'_>,
) {
    let (input, output) = (shape.input, shape.output);
    assert!(inputs.len() >= images * input.padded_len() && gradients.len() >= images * output.padded_len());
    assert!(gradient.len() >= 9 * input.c * output.c);
    // The tile runs over consecutive input values under a row of taps, a multiple of 48 or (image) 9.
    // SAFETY of the calls: lengths were checked, and P divides 3 * input.c.
    unsafe {
        let is_image = !input.c.is_multiple_of(4);
        if V::IS_BLOCK {
            if is_image {
                sum_pixels::<V, 9, 1>(shape, inputs, gradients, images, gradient, ahead);
            } else if output.c.is_multiple_of(2 * V::LANES) {
                sum_pixels::<V, 12, 2>(shape, inputs, gradients, images, gradient, ahead);
            } else {
                sum_pixels::<V, 24, 1>(shape, inputs, gradients, images, gradient, ahead);
            }
        } else if V::IS_HALF_BLOCK && !is_image {
            sum_pixels::<V, 6, 2>(shape, inputs, gradients, images, gradient, ahead);
        } else {
            sum_pixels::<V, 3, 2>(shape, inputs, gradients, images, gradient, ahead);
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
    ahead: Ahead<'_>,
) {
    /// Rows summed before the next taps are taken, so that they stay in the first cache.
    const ROWS: usize = 4;
    let (input, output) = (shape.input, shape.output);
    let taps = 3 * input.c;
    let chunks = output.h.div_ceil(ROWS);
    let strides = Strides { x_row: 1, x_step: shape.stride * input.c, w_step: output.c };
    let pace = ahead.over(images * chunks);
    for image in 0..images {
        for first in (0..output.h).step_by(ROWS) {
            pace.fetch::<V>(image * chunks + first / ROWS);
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
