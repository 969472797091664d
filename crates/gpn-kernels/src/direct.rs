//! Convolution by its definition: register tiles of pixels by channels, all taps of a row in one sweep.
//!
//! Serves images (three channels), stride 2 and kernels other than 3x3.

use crate::ahead::{Ahead, Pace};
use crate::epilogue::{Epilogue, Run};
use crate::geometry::{CHANNEL_BLOCK, ConvShape, Map};
use crate::simd::Vector;
use crate::tile::{Strides, accumulate_rows, add, best_height};
use crate::weights::{channel_start, vector_step};

/// A convolution of padded maps.
#[derive(Clone, Copy)]
pub(crate) struct Direct<'a> {
    pub(crate) input: Map,
    pub(crate) output: Map,
    pub(crate) kernel: usize,
    pub(crate) stride: usize,
    /// Whether there are more weights than the first caches hold.
    pub(crate) is_wide: bool,
    pub(crate) maps: &'a [f32],
    pub(crate) images: usize,
    /// As [`crate::weights`] packs them.
    pub(crate) weights: &'a [f32],
    /// Fetched meanwhile.
    pub(crate) ahead: Ahead<'a>,
}

/// How the values under a row of taps are summed. They come in `taps` runs, `tap` values apart; of each run,
/// `blocks` pieces of `steps` values are summed one after the other: first those of all taps in the first
/// piece, from zero.
#[derive(Clone, Copy)]
struct Order {
    taps: usize,
    tap: usize,
    blocks: usize,
    steps: usize,
}

impl Order {
    /// Sums block of channels by block of channels, as oneDNN and therefore PyTorch does: the outputs are the
    /// same bits.
    fn of(channels: usize, kernel: usize) -> Order {
        if channels <= CHANNEL_BLOCK {
            return Order { taps: 1, tap: 0, blocks: 1, steps: kernel * channels };
        }
        Order { taps: kernel, tap: channels, blocks: channels / CHANNEL_BLOCK, steps: CHANNEL_BLOCK }
    }
}

impl Direct<'_> {
    /// Computes every output.
    #[inline(always)]
    pub(crate) fn run<V: Vector, E: Epilogue>(self, epilogue: &mut E) {
        let Direct { input, output, kernel, stride, maps, images, weights, .. } = self;
        assert!(maps.len() >= images * input.padded_len());
        assert!(weights.len() >= kernel * kernel * input.c * output.c && input.border >= kernel / 2);
        assert!(output.h <= input.h.div_ceil(stride) && output.w <= input.w.div_ceil(stride));
        let sweep = Sweep {
            input: &maps[input.window_start(kernel)..],
            image: input.padded_len(),
            tap_row: input.padded_row(),
            weights,
            rows: kernel,
            row_len: kernel * input.c,
            order: Order::of(input.c, kernel),
            pixel: stride * input.c,
            row: stride * input.padded_row(),
            output,
            images,
            is_wide: self.is_wide,
            pace: self.ahead.over(images * output.h),
        };
        // SAFETY: windows of output pixels lie inside the padded maps, and the lengths were checked.
        unsafe { sweep.run::<V, E>(epilogue) };
    }
}

/// A sweep over padded input maps: some rows of taps for every output pixel.
struct Sweep<'a> {
    /// From the first value of the window of output pixel (0, 0) on.
    input: &'a [f32],
    /// Input values from an image to the next, and from a row of taps to the next.
    image: usize,
    tap_row: usize,
    weights: &'a [f32],
    /// Rows of taps, and input values under each.
    rows: usize,
    row_len: usize,
    order: Order,
    /// Input values from one output pixel to the next, and from one output row to the next.
    pixel: usize,
    row: usize,
    output: Map,
    images: usize,
    is_wide: bool,
    pace: Pace<'a>,
}

impl Sweep<'_> {
    /// # Safety
    /// The slices hold every value the sweep's sizes name.
    #[inline(always)]
    unsafe fn run<V: Vector, E: Epilogue>(&self, epilogue: &mut E) {
        // SAFETY: passed on.
        unsafe {
            let height = best_height(V::TILE_PIXELS, self.output.w);
            if !V::IS_BLOCK {
                if V::IS_HALF_BLOCK && height == 6 {
                    self.run_tiles::<V, E, 6, 2, 0>(epilogue);
                } else if V::IS_HALF_BLOCK || height == 4 {
                    self.run_tiles::<V, E, 4, 2, 0>(epilogue);
                } else {
                    self.run_tiles::<V, E, 3, 2, 0>(epilogue);
                }
            } else if self.output.c.is_multiple_of(2 * V::LANES) {
                if height == 8 {
                    self.run_tiles::<V, E, 8, 2, 0>(epilogue);
                } else {
                    self.run_tiles::<V, E, 7, 2, 0>(epilogue);
                }
            } else {
                // A single vector of channels is left. Pixels 3 apart are those of an image.
                match (best_height([16, 7], self.output.w), self.pixel) {
                    (16, 3) => self.run_tiles::<V, E, 16, 1, 3>(epilogue),
                    (16, 16) => self.run_tiles::<V, E, 16, 1, 16>(epilogue),
                    (16, _) => self.run_tiles::<V, E, 8, 1, 0>(epilogue),
                    _ => self.run_tiles::<V, E, 7, 1, 0>(epilogue),
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn run_tiles<V: Vector, E: Epilogue, const P: usize, const Q: usize, const ROW: usize>(
        &self,
        epilogue: &mut E,
    ) {
        // Few weights stay in the cache while a row of pixels is swept. Of many, only a block does, which
        // then sweeps all pixels.
        let outer = if self.is_wide { Q * V::LANES } else { self.output.c };
        for first in (0..self.output.c).step_by(outer) {
            for image in 0..self.images {
                for y in 0..self.output.h {
                    if first == 0 {
                        self.pace.fetch::<V>(image * self.output.h + y);
                    }
                    for c in (first..first + outer).step_by(Q * V::LANES) {
                        for x in (0..self.output.w).step_by(P) {
                            // SAFETY: a tile past the end of the row reads the slack of the padded map.
                            unsafe { self.run_tile::<V, E, P, Q, ROW>((image, y, x, c), epilogue) };
                        }
                    }
                    epilogue.settle();
                }
            }
        }
    }

    /// The tile of channel `c` at pixel (y, x).
    #[inline(always)]
    unsafe fn run_tile<V: Vector, E: Epilogue, const P: usize, const Q: usize, const ROW: usize>(
        &self,
        (image, y, x, c): (usize, usize, usize, usize),
        epilogue: &mut E,
    ) {
        let mut acc = [[V::zero(); Q]; P];
        for block in 0..self.order.blocks {
            // SAFETY: passed on.
            let part = unsafe { self.sum_block::<V, P, Q, ROW>(block, (image, y, x, c)) };
            acc = if block == 0 { part } else { add(acc, part) };
        }
        let run = Run { image, y, x, x_step: 1, pixels: P.min(self.output.w - x) };
        let mut values = [[V::zero(); P]; Q];
        for q in 0..Q {
            for p in 0..P {
                values[q][p] = acc[p][q];
            }
        }
        // SAFETY: `pixels` ends at the edge of the map.
        unsafe { epilogue.take(run, c, &values) };
    }

    /// The sum of one block for a register tile.
    ///
    /// # Safety
    /// As [`Sweep::run`], for the tile of channel c at pixel (y, x).
    #[inline(always)]
    unsafe fn sum_block<V: Vector, const P: usize, const Q: usize, const ROW: usize>(
        &self,
        block: usize,
        (image, y, x, c): (usize, usize, usize, usize),
    ) -> [[V; Q]; P] {
        let Order { taps, tap, steps, .. } = self.order;
        let w_vector = vector_step(V::LANES, self.row_len);
        let strides = Strides { x_row: self.pixel, x_step: 1, w_step: CHANNEL_BLOCK, w_vector };
        let mut acc = [[V::zero(); Q]; P];
        for r in 0..self.rows {
            for t in 0..taps {
                let step = t * tap + block * CHANNEL_BLOCK;
                // SAFETY: passed on.
                unsafe {
                    let input = image * self.image + y * self.row + x * self.pixel + r * self.tap_row + step;
                    let weights = r * self.row_len * self.output.c
                        + channel_start(c, self.row_len)
                        + step * CHANNEL_BLOCK;
                    let (input, weights) =
                        (self.input.as_ptr().add(input), self.weights.as_ptr().add(weights));
                    acc = accumulate_rows::<V, P, Q, ROW>(acc, input, weights, strides, steps);
                }
            }
        }
        acc
    }
}

/// Gradient of the images under a convolution of any kernel and stride, by its definition, pixel by pixel.
/// Slow: it is for looking into a network, training does not need it. `weights`: PyTorch's; `maps`: padded
/// output gradients; `out`: `[images, channels, h, w]`.
#[inline(always)]
pub(crate) fn image_gradient<V: Vector>(
    shape: &ConvShape,
    weights: &[f32],
    maps: &[f32],
    images: usize,
    out: &mut [f32],
) {
    let ConvShape { input, output, kernel, stride, in_channels, out_channels, .. } = *shape;
    let pad = kernel / 2;
    // The output pixel along an axis that meets this input pixel with tap `tap`.
    let meets = |at: usize, tap: usize, end: usize| {
        let from = (at + pad).checked_sub(tap)?;
        (from.is_multiple_of(stride) && from / stride < end).then_some(from / stride)
    };
    for (pixel, value) in out.iter_mut().enumerate().take(images * in_channels * input.h * input.w) {
        let (x, y) = (pixel % input.w, pixel / input.w % input.h);
        let (channel, image) =
            (pixel / (input.w * input.h) % in_channels, pixel / (input.w * input.h * in_channels));
        *value = 0.0;
        for (row, row_tap) in (0..kernel).filter_map(|tap| Some((meets(y, tap, output.h)?, tap))) {
            for (column, tap) in (0..kernel).filter_map(|tap| Some((meets(x, tap, output.w)?, tap))) {
                let gradients = &maps[image * output.padded_len() + output.padded_at(row, column)..];
                let taps = weights[(channel * kernel + row_tap) * kernel + tap..]
                    .iter()
                    .step_by(in_channels * kernel * kernel);
                for (gradient, weight) in gradients[..out_channels].iter().zip(taps) {
                    *value = V::mul_add_one(*gradient, *weight, *value);
                }
            }
        }
    }
}
