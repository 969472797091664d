//! Rows of a matrix product, in register tiles that cover all columns of a small batch at once.

use std::ops::Range;

use crate::simd::{Kernel, Vector};
use crate::tile::{Strides, accumulate};

/// Rows of matrices begin this many values apart, or a multiple of it: every vector type divides it.
pub(super) const LINE: usize = 16;

/// What is done to the sums before they are stored.
#[derive(Clone, Copy)]
pub(super) enum Finish<'a> {
    /// Nothing.
    Store,
    /// The row's bias is added.
    Bias(&'a [f32]),
    /// The row's bias is added, and what is negative becomes 0.
    BiasRelu(&'a [f32]),
    /// Sums become 0 where this matrix, which lies in memory like the result, is not positive.
    WherePositive(&'a [f32]),
}

/// Rows `rows` of `out[i][j] = sum over k < steps of a[i * a_row + k * a_step] * b[k * b_row + j]`.
///
/// Each value is one sum from the first step to the last, whatever the tile: the bits are those of
/// [`Product`](crate::linear::Product).
pub(super) struct Strip<'a> {
    pub(super) a: &'a [f32],
    pub(super) a_row: usize,
    pub(super) a_step: usize,
    /// `[steps, b_row]`; `b_row` is a multiple of [`LINE`].
    pub(super) b: &'a [f32],
    pub(super) b_row: usize,
    pub(super) steps: usize,
    /// Which rows of the product are computed.
    pub(super) rows: Range<usize>,
    /// Columns of the result, at most `b_row`.
    pub(super) columns: usize,
    /// The computed rows, `out_row` values apart.
    pub(super) out: &'a mut [f32],
    pub(super) out_row: usize,
    pub(super) finish: Finish<'a>,
}

impl Kernel for Strip<'_> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector>(mut self) {
        self.check();
        let vectors = self.columns.div_ceil(V::LANES);
        let mut at = 0;
        while at < vectors {
            // Tiles with about as many sums as there are registers.
            at += if V::IS_BLOCK {
                match vectors - at {
                    1 => self.columns_at::<V, 12, 1>(at),
                    2 => self.columns_at::<V, 10, 2>(at),
                    3 | 6 => self.columns_at::<V, 8, 3>(at),
                    5 => self.columns_at::<V, 5, 5>(at),
                    _ => self.columns_at::<V, 6, 4>(at),
                }
            } else if vectors - at >= 2 {
                self.columns_at::<V, 6, 2>(at)
            } else {
                self.columns_at::<V, 6, 1>(at)
            };
        }
    }
}

impl Strip<'_> {
    /// The sizes that make the tiles' pointers valid.
    #[inline(always)]
    fn check(&self) {
        let rows = self.rows.len();
        assert!(self.columns <= self.b_row && self.b_row.is_multiple_of(LINE));
        assert!(self.columns <= self.out_row && rows * self.out_row <= self.out.len());
        assert!(self.steps * self.b_row <= self.b.len());
        if let (Some(last_row), Some(last_step)) = (self.rows.end.checked_sub(1), self.steps.checked_sub(1)) {
            assert!(last_row * self.a_row + last_step * self.a_step < self.a.len());
        }
        match self.finish {
            Finish::Store => {}
            Finish::Bias(bias) | Finish::BiasRelu(bias) => assert!(self.rows.end <= bias.len()),
            Finish::WherePositive(gate) => assert!(self.rows.end * self.out_row <= gate.len()),
        }
    }

    /// All rows of `Q` vectors of columns, beginning with vector `at`.
    #[inline(always)]
    fn columns_at<V: Vector, const P: usize, const Q: usize>(&mut self, at: usize) -> usize {
        let rows = self.rows.len();
        let whole = rows / P * P;
        for i in (0..whole).step_by(P) {
            self.tile::<V, P, Q>(i, at * V::LANES);
        }
        for i in whole..rows {
            self.tile::<V, 1, Q>(i, at * V::LANES);
        }
        Q
    }

    #[inline(always)]
    fn tile<V: Vector, const P: usize, const Q: usize>(&mut self, i: usize, j: usize) {
        let row = self.rows.start + i;
        let strides =
            Strides { x_row: self.a_row, x_step: self.a_step, w_step: self.b_row, w_vector: V::LANES };
        // SAFETY: `check` found rows, columns and steps inside the matrices; a row of `b` has whole lines, so that the
        // last vector may pass the last column.
        let mut sums: [[V; Q]; P] = unsafe {
            let (a, b) = (self.a.as_ptr().add(row * self.a_row), self.b.as_ptr().add(j));
            accumulate([[V::zero(); Q]; P], a, b, strides, self.steps)
        };
        match self.finish {
            Finish::Store => {}
            // Loops rather than `map`, whose closures do not become part of the tile.
            Finish::Bias(bias) => {
                for p in 0..P {
                    for q in 0..Q {
                        sums[p][q] = sums[p][q].add(V::splat(bias[row + p]));
                    }
                }
            }
            Finish::BiasRelu(bias) => {
                for p in 0..P {
                    for q in 0..Q {
                        sums[p][q] = sums[p][q].add(V::splat(bias[row + p])).relu();
                    }
                }
            }
            Finish::WherePositive(gate) => {
                for p in 0..P {
                    for q in 0..Q {
                        let at = (row + p) * self.out_row + j + q * V::LANES;
                        assert!(at + V::LANES <= gate.len());
                        // SAFETY: just checked.
                        sums[p][q] = sums[p][q].where_positive(unsafe { V::load(gate.as_ptr().add(at)) });
                    }
                }
            }
        }
        for p in 0..P {
            let out = &mut self.out[(i + p) * self.out_row..][..self.columns];
            for q in 0..Q {
                let begin = j + q * V::LANES;
                if let Some(out) = out.get_mut(begin..begin + V::LANES) {
                    // SAFETY: the slice has `LANES` values.
                    unsafe { sums[p][q].store(out.as_mut_ptr()) };
                } else if let Some(out) = out.get_mut(begin..) {
                    let mut lanes = [0.0; LINE];
                    // SAFETY: no vector has more than `LINE` lanes.
                    unsafe { sums[p][q].store(lanes.as_mut_ptr()) };
                    out.copy_from_slice(&lanes[..out.len()]);
                }
            }
        }
    }
}
