//! Gradient of the input of a 3x3 convolution of stride 2.
//!
//! An input pixel of even row meets the middle tap row only, one of odd row the other two; likewise columns.
//! A register tile therefore holds four kinds of pixels, made from the same gradients, so that each of those
//! is loaded once for nine products and no product is with a zero.

use crate::ahead::Ahead;
use crate::epilogue::{Epilogue, Run};
use crate::geometry::{CHANNEL_BLOCK, ConvShape, Map, TILE};
use crate::simd::Vector;
use crate::weights::channel_start;

/// From padded maps of output gradients. `weights`: as [`crate::weights::pack_strided_backward`] leaves them.
#[inline(always)]
pub(crate) fn convolve_backward<V: Vector, E: Epilogue>(
    shape: &ConvShape,
    maps: &[f32],
    images: usize,
    weights: &[f32],
    ahead: Ahead<'_>,
    epilogue: &mut E,
) {
    let (grad, out) = (shape.output, shape.input_gradient());
    assert!(shape.stride == 2 && shape.kernel == 3);
    assert!(maps.len() >= images * grad.padded_len() && weights.len() >= 9 * grad.c * out.c);
    let sweep = Sweep { grad, out, maps, images, weights, ahead, is_wide: shape.is_wide() };
    sweep.run::<V, E>(epilogue);
}

struct Sweep<'a> {
    grad: Map,
    out: Map,
    maps: &'a [f32],
    images: usize,
    weights: &'a [f32],
    ahead: Ahead<'a>,
    is_wide: bool,
}

impl Sweep<'_> {
    #[inline(always)]
    fn run<V: Vector, E: Epilogue>(&self, epilogue: &mut E) {
        let pace = self.ahead.over(self.images * self.grad.h);
        let outer = if self.is_wide { V::LANES } else { self.out.c };
        for first in (0..self.out.c).step_by(outer) {
            for image in 0..self.images {
                for y in 0..self.grad.h {
                    if first == 0 {
                        pace.fetch::<V>(image * self.grad.h + y);
                    }
                    for x in (0..self.grad.w).step_by(TILE) {
                        for c in (first..first + outer).step_by(V::LANES) {
                            self.tile::<V, E>((image, y, x, c), epilogue);
                        }
                    }
                    epilogue.settle();
                }
            }
        }
    }

    #[inline(always)]
    fn tile<V: Vector, E: Epilogue>(&self, (image, y, x, c): (usize, usize, usize, usize), epilogue: &mut E) {
        let (grad, out) = (self.grad, self.out);
        let mut kinds = [[V::zero(); TILE]; 4];
        // SAFETY: the tile reads gradients (y .. y + 2, x .. x + 5), inside the padded map, and vector `c` of the
        // weights; both lengths were checked.
        unsafe {
            let from = self.maps.as_ptr().add(image * grad.padded_len() + grad.padded_at(y, x));
            let weights = self.weights.as_ptr().add(channel_start(c, grad.c));
            if V::IS_BLOCK {
                kinds = multiply::<V, TILE, 5>(grad, from, weights, grad.c * out.c);
            } else {
                // Four kinds of four pixels fill the 32 registers of AVX-512. Others have 16, enough for two.
                for first in [0, 2] {
                    let from = from.add(first * grad.c);
                    let half = multiply::<V, 2, 3>(grad, from, weights, grad.c * out.c);
                    for (kind, half) in kinds.iter_mut().zip(half) {
                        kind[first..first + 2].copy_from_slice(&half);
                    }
                }
            }
        }
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

/// `P` pixels of the four kinds: even row and even column, even and odd, odd and even, odd and odd; they read `R = P + 1`
/// gradients of a row. `tap`: values from the weights of a tap to those of the next.
///
/// # Safety
/// `gradients` is readable for two padded rows of `R` pixels, `weights` for nine taps.
#[inline(always)]
unsafe fn multiply<V: Vector, const P: usize, const R: usize>(
    grad: Map,
    gradients: *const f32,
    weights: *const f32,
    tap: usize,
) -> [[V; P]; 4] {
    /// Kind, tap in the order of the weights, and whether it meets the pixel to the right; in this row and
    /// in the one below.
    const TAPS: [&[(usize, usize, usize)]; 2] = [
        &[(0, 0, 0), (1, 1, 0), (1, 2, 1), (2, 3, 0), (3, 5, 0), (3, 6, 1)],
        &[(2, 4, 0), (3, 7, 0), (3, 8, 1)],
    ];
    let mut kinds = [[V::zero(); P]; 4];
    for k in 0..grad.c {
        for (row, taps) in TAPS.into_iter().enumerate() {
            let mut scalars = [V::zero(); R];
            for (p, scalar) in scalars.iter_mut().enumerate() {
                // SAFETY: the caller's promise.
                *scalar = V::splat(unsafe { *gradients.add(row * grad.padded_row() + p * grad.c + k) });
            }
            for &(kind, place, right) in taps {
                // SAFETY: as above.
                let weight = unsafe { V::load(weights.add(place * tap + k * CHANNEL_BLOCK)) };
                for p in 0..P {
                    kinds[kind][p] = scalars[p + right].mul_add(weight, kinds[kind][p]);
                }
            }
        }
    }
    kinds
}
