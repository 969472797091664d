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
        let tile = vectors_per_tile::<V>() * V::LANES;
        let outer = if self.is_wide { tile } else { self.out.c };
        for first in (0..self.out.c).step_by(outer) {
            for image in 0..self.images {
                for y in 0..self.grad.h {
                    if first == 0 {
                        pace.fetch::<V>(image * self.grad.h + y);
                    }
                    for x in (0..self.grad.w).step_by(TILE) {
                        for c in (first..first + outer).step_by(tile) {
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
        let grad = self.grad;
        let mut vectors = [[[V::zero(); TILE]; 4]; 2];
        // SAFETY: the tile reads gradients (y .. y + 2, x .. x + 5), inside the padded map, and the vectors from `c` on of
        // the weights; both lengths were checked.
        unsafe {
            let from = self.maps.as_ptr().add(image * grad.padded_len() + grad.padded_at(y, x));
            let weights = self.weights.as_ptr().add(channel_start(c, grad.c));
            let tap = grad.c * self.out.c;
            if V::IS_BLOCK {
                // Four kinds of four pixels fill the 32 registers of AVX-512.
                [vectors[0]] = multiply::<V, 1, 0, 4, TILE, 5>(grad, from, weights, tap);
            } else {
                // Others have 16. The last kind is a chain of four products, and needs two vectors to be worth its wait.
                let last = multiply::<V, 2, 3, 1, TILE, 5>(grad, from, weights, tap);
                for (kinds, [last]) in vectors.iter_mut().zip(last) {
                    kinds[3] = last;
                }
                for first in [0, 2] {
                    let half = multiply::<V, 2, 0, 3, 2, 3>(grad, from.add(first * grad.c), weights, tap);
                    for (kinds, half) in vectors.iter_mut().zip(half) {
                        for (kind, half) in kinds.iter_mut().zip(half) {
                            kind[first..first + 2].copy_from_slice(&half);
                        }
                    }
                }
            }
        }
        for kind in 0..4 {
            let (y, x) = (2 * y + kind / 2, 2 * x + kind % 2);
            if y < self.out.h && x < self.out.w {
                let pixels = TILE.min((self.out.w - x).div_ceil(2));
                let run = Run { image, y, x, x_step: 2, pixels };
                let [first, second] = [vectors[0][kind], vectors[1][kind]];
                // SAFETY: the pixels are inside the map.
                unsafe {
                    if V::IS_BLOCK {
                        epilogue.take(run, c, &[first]);
                    } else {
                        epilogue.take(run, c, &[first, second]);
                    }
                }
            }
        }
    }
}

/// Vectors of channels that a register tile holds: a block, or two parts of one.
#[inline(always)]
const fn vectors_per_tile<V: Vector>() -> usize {
    if V::IS_BLOCK { 1 } else { 2 }
}

/// `Q` vectors and `P` pixels of `K` kinds from `FIRST` on, out of even row and even column, even and odd, odd and even,
/// odd and odd; they read `R = P + 1` gradients of a row. `tap`: values from the weights of a tap to those of the next.
///
/// # Safety
/// `gradients` is readable for two padded rows of `R` pixels, `weights` for nine taps of `Q` vectors of a block.
#[inline(always)]
unsafe fn multiply<
    V: Vector,
    const Q: usize,
    const FIRST: usize,
    const K: usize,
    const P: usize,
    const R: usize,
>(
    grad: Map,
    gradients: *const f32,
    weights: *const f32,
    tap: usize,
) -> [[[V; P]; K]; Q] {
    /// Kind, tap in the order of the weights, and whether it meets the pixel to the right; in this row and
    /// in the one below.
    const TAPS: [&[(usize, usize, usize)]; 2] = [
        &[(0, 0, 0), (1, 1, 0), (1, 2, 1), (2, 3, 0), (3, 5, 0), (3, 6, 1)],
        &[(2, 4, 0), (3, 7, 0), (3, 8, 1)],
    ];
    let mut sums = [[[V::zero(); P]; K]; Q];
    for k in 0..grad.c {
        for (row, taps) in TAPS.into_iter().enumerate() {
            let mut scalars = [V::zero(); R];
            for (p, scalar) in scalars.iter_mut().enumerate() {
                // SAFETY: the caller's promise.
                *scalar = V::splat(unsafe { *gradients.add(row * grad.padded_row() + p * grad.c + k) });
            }
            for &(kind, place, right) in taps {
                if kind < FIRST || kind >= FIRST + K {
                    continue;
                }
                for (q, sums) in sums.iter_mut().enumerate() {
                    let sums = &mut sums[kind - FIRST];
                    let at = place * tap + k * CHANNEL_BLOCK + q * V::LANES;
                    // SAFETY: as above.
                    let weight = unsafe { V::load(weights.add(at)) };
                    for p in 0..P {
                        sums[p] = scalars[p + right].mul_add(weight, sums[p]);
                    }
                }
            }
        }
    }
    sums
}
