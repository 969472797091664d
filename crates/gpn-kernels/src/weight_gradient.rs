//! Gradient of the weights of a convolution by its definition: register tiles of inputs by outputs, summed
//! over pixels.

use crate::ahead::Ahead;
use crate::geometry::{CHANNEL_BLOCK, ConvShape};
use crate::simd::Vector;
use crate::tile::{Strides, accumulate, load, store};
use crate::weights::{channel_start, vector_step};

/// Padded maps of a group of images.
#[derive(Clone, Copy)]
pub(crate) struct GradientOperands<'a> {
    pub(crate) shape: &'a ConvShape,
    pub(crate) inputs: &'a [f32],
    /// Of the outputs.
    pub(crate) gradients: &'a [f32],
    pub(crate) images: usize,
    /// Fetched meanwhile.
    pub(crate) ahead: Ahead<'a>,
}

impl GradientOperands<'_> {
    /// Adds the gradient to `sums`, which are in the order of packed weights.
    #[inline(always)]
    pub(crate) fn add_to<V: Vector>(&self, sums: &mut [f32]) {
        let (input, output) = (self.shape.input, self.shape.output);
        assert!(self.inputs.len() >= self.images * input.padded_len());
        assert!(self.gradients.len() >= self.images * output.padded_len());
        assert!(sums.len() >= self.shape.weight_len());
        let is_double = output.c.is_multiple_of(2 * V::LANES);
        // The tile runs over consecutive input values under a row of taps: a multiple of 16 or 48, or that of
        // an image.
        // SAFETY of the calls: lengths were checked.
        unsafe {
            match (V::IS_BLOCK, self.shape.is_image(), self.shape.kernel) {
                (true, true, 3) => self.sum_pixels::<V, 9, 1>(sums),
                (true, true, 7) => self.sum_pixels::<V, 7, 1>(sums),
                (true, true, _) => self.sum_pixels::<V, 3, 1>(sums),
                (true, false, 1) if is_double => self.sum_pixels::<V, 8, 2>(sums),
                (true, false, 1) => self.sum_pixels::<V, 16, 1>(sums),
                (true, false, _) if is_double => self.sum_pixels::<V, 12, 2>(sums),
                (true, false, _) => self.sum_pixels::<V, 24, 1>(sums),
                (false, false, 3) if V::IS_HALF_BLOCK => self.sum_pixels::<V, 6, 2>(sums),
                (false, false, _) => self.sum_pixels::<V, 4, 2>(sums),
                (false, true, _) => self.sum_pixels::<V, 3, 2>(sums),
            }
        }
    }

    /// # Panics
    /// Unless P divides the input values under a row of taps, and `Q * LANES` divides `output.c`.
    ///
    /// # Safety
    /// Lengths are those of [`GradientOperands::add_to`].
    #[inline(always)]
    unsafe fn sum_pixels<V: Vector, const P: usize, const Q: usize>(&self, sums: &mut [f32]) {
        /// Rows summed before the next taps are taken, so that they stay in the first cache.
        const ROWS: usize = 4;
        let shape = self.shape;
        let (input, output) = (shape.input, shape.output);
        let row_len = shape.kernel * input.c;
        assert!(row_len.is_multiple_of(P) && output.c.is_multiple_of(Q * V::LANES));
        let all_rows = self.images * output.h;
        // Many sums do not stay in the cache: each is taken up once.
        let rows = if shape.is_wide() { all_rows } else { ROWS };
        let strides =
            Strides { x_row: 1, x_step: shape.stride * input.c, w_step: output.c, w_vector: V::LANES };
        let pace = self.ahead.over(all_rows.div_ceil(rows));
        for first in (0..all_rows).step_by(rows) {
            pace.fetch::<V>(first / rows);
            for dy in 0..shape.kernel {
                for k in (0..row_len).step_by(P) {
                    for c in (0..output.c).step_by(Q * V::LANES) {
                        // SAFETY: the window of a pixel is inside the padded input map, the pixel inside the
                        // padded gradient map, the tile inside the sums.
                        unsafe {
                            let at = dy * row_len * output.c + channel_start(c, row_len) + k * CHANNEL_BLOCK;
                            let tile = sums.as_mut_ptr().add(at);
                            let vector = vector_step(V::LANES, row_len);
                            let mut acc: [[V; Q]; P] = load(tile, CHANNEL_BLOCK, vector);
                            for row in first..(first + rows).min(all_rows) {
                                let (image, y) = (row / output.h, row % output.h);
                                let x = input.window_start(shape.kernel)
                                    + image * input.padded_len()
                                    + (y * shape.stride + dy) * input.padded_row()
                                    + k;
                                let g = image * output.padded_len() + output.padded_at(y, 0) + c;
                                acc = accumulate(
                                    acc,
                                    self.inputs.as_ptr().add(x),
                                    self.gradients.as_ptr().add(g),
                                    strides,
                                    output.w,
                                );
                            }
                            store(&acc, tile, (CHANNEL_BLOCK, vector), P);
                        }
                    }
                }
            }
        }
    }
}
