//! Matrix product in register tiles.

use rayon::prelude::*;

use crate::simd::{Kernel, Simd, Vector};
use crate::tile::{Strides, accumulate, store};

/// A product of two matrices: `c[i][j] = sum over k < steps of a[i * a_row + k * a_step] * b[k * columns + j]`.
#[derive(Clone, Copy)]
pub struct Product<'a> {
    /// Values of the first matrix.
    pub a: &'a [f32],
    /// From a row of `a` to the next.
    pub a_row: usize,
    /// From a summed value in a row of `a` to the next.
    pub a_step: usize,
    /// The second matrix, `[steps, columns]`.
    pub b: &'a [f32],
    /// Terms of each sum.
    pub steps: usize,
    /// Columns of `b` and of the result.
    pub columns: usize,
}

/// Rows of the result that one task computes.
const ROWS_PER_TASK: usize = 32;

impl Product<'_> {
    /// Writes every row of `c`. Each value is summed by one thread, so threads do not change it.
    ///
    /// # Panics
    /// If `a` or `b` is shorter than the product needs, or `c` is not whole rows.
    pub fn run(&self, c: &mut [f32]) {
        if c.is_empty() {
            return;
        }
        assert!(
            self.columns > 0 && c.len().is_multiple_of(self.columns),
            "the result is no matrix of whole rows"
        );
        let rows = c.len() / self.columns;
        if let Some(last) = self.steps.checked_sub(1) {
            // Sizes that overflow are sizes that no slice has.
            let end_of_b = self.steps.checked_mul(self.columns);
            let (row, step) = ((rows - 1).checked_mul(self.a_row), last.checked_mul(self.a_step));
            let last_of_a = row.zip(step).and_then(|(row, step)| row.checked_add(step));
            assert!(end_of_b.is_some_and(|end| end <= self.b.len()), "b is shorter than the product needs");
            assert!(last_of_a.is_some_and(|last| last < self.a.len()), "a is shorter than the product needs");
        }
        self.run_with(Simd::chosen(), c);
    }

    fn run_with(&self, simd: Simd, c: &mut [f32]) {
        if c.len() <= ROWS_PER_TASK * self.columns {
            return simd.run(Rows { product: self, first: 0, out: c });
        }
        c.par_chunks_mut(ROWS_PER_TASK * self.columns).enumerate().for_each(|(task, out)| {
            simd.run(Rows { product: self, first: task * ROWS_PER_TASK, out });
        });
    }
}

struct Rows<'a> {
    product: &'a Product<'a>,
    first: usize,
    out: &'a mut [f32],
}

impl Kernel for Rows<'_> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector>(mut self) {
        let rows = self.out.len() / self.product.columns;
        let wide = 2 * V::LANES;
        let columns = self.product.columns / wide * wide;
        for j in (0..columns).step_by(wide) {
            let mut i = 0;
            while i < rows {
                // SAFETY: the tile is inside the product, whose lengths `Product::run` checked.
                i += unsafe {
                    if V::IS_BLOCK && rows - i >= 8 {
                        self.tile::<V, 8>(i, j)
                    } else if rows - i >= 4 {
                        self.tile::<V, 4>(i, j)
                    } else {
                        self.tile::<V, 1>(i, j)
                    }
                };
            }
        }
        if columns < self.product.columns {
            self.last_columns::<V>(columns, rows);
        }
    }
}

impl Rows<'_> {
    /// # Safety
    /// Rows `i .. i + P` and columns `j .. j + 2 * LANES` are inside the result.
    #[inline(always)]
    unsafe fn tile<V: Vector, const P: usize>(&mut self, i: usize, j: usize) -> usize {
        let p = self.product;
        let strides = Strides { x_row: p.a_row, x_step: p.a_step, w_step: p.columns, w_vector: V::LANES };
        // SAFETY: the caller's promise and the lengths checked in `Product::run`.
        unsafe {
            let a = p.a.as_ptr().add((self.first + i) * p.a_row);
            let acc: [[V; 2]; P] = accumulate([[V::zero(); 2]; P], a, p.b.as_ptr().add(j), strides, p.steps);
            store(&acc, self.out.as_mut_ptr().add(i * p.columns + j), (p.columns, V::LANES), P);
        }
        P
    }

    /// The columns that fill no tile, rounded like those that do: which these are depends on the instruction set.
    #[inline(always)]
    fn last_columns<V: Vector>(&mut self, begin: usize, rows: usize) {
        let p = self.product;
        if begin == p.columns {
            return;
        }
        for i in 0..rows {
            let out = &mut self.out[i * p.columns + begin..(i + 1) * p.columns];
            out.fill(0.0);
            for k in 0..p.steps {
                let a = p.a[(self.first + i) * p.a_row + k * p.a_step];
                for (sum, b) in out.iter_mut().zip(&p.b[k * p.columns + begin..]) {
                    *sum = V::mul_add_one(a, *b, *sum);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_overflow_are_refused() {
        let [a, b] = [[1.0; 4]; 2];
        let refused = |product: Product<'_>, c: usize| {
            std::panic::catch_unwind(|| product.run(&mut vec![0.0; c])).is_err()
        };
        let fine = Product { a: &a, a_row: 2, a_step: 1, b: &b, steps: 2, columns: 2 };
        assert!(!refused(fine, 4));
        assert!(refused(fine, 3), "not whole rows");
        assert!(refused(Product { a_row: 3, ..fine }, 4));
        assert!(refused(Product { a_row: usize::MAX, ..fine }, 4));
        assert!(refused(Product { a_step: usize::MAX / 2 + 2, a_row: 1, ..fine }, 4));
        assert!(refused(Product { steps: usize::MAX / 2 + 2, ..fine }, 4));
    }

    #[test]
    fn instruction_sets_compute_the_same_bits() {
        let values = |n: usize, seed: usize| -> Vec<f32> {
            (0..n).map(|i| ((i * 7919 + seed * 104_729) % 2003) as f32 / 1001.5 - 1.0).collect()
        };
        for (rows, steps, columns) in [(1, 7, 5), (13, 64, 33), (40, 19, 100), (9, 3, 31), (8, 128, 16)] {
            let (a, b) = (values(rows * steps, 1), values(steps * columns, 2));
            let product = Product { a: &a, a_row: steps, a_step: 1, b: &b, steps, columns };
            let run = |simd: Simd| {
                let mut c = vec![f32::NAN; rows * columns];
                product.run_with(simd, &mut c);
                c
            };
            let mut results =
                Simd::available().into_iter().filter(|simd| simd.is_fused()).map(|simd| (simd, run(simd)));
            let Some((_, first)) = results.next() else { return };
            for (simd, result) in results {
                assert!(result == first, "{} {rows} {steps} {columns}", simd.name());
            }
        }
    }
}
