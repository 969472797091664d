//! Many products with one matrix: laid out once, so that a register tile reads it from one end to the other.

use rayon::prelude::*;

use crate::simd::{Kernel, Simd, Vector};
use crate::tile::{Strides, accumulate, store};

/// Columns that lie beside each other; a multiple of every tile's width.
const PANEL: usize = 32;
/// Rows of the first matrix that one task multiplies: they stay in the second cache while all panels pass.
const ROWS: usize = 64;

/// A matrix `[steps, columns]` that others are multiplied with.
///
/// The values of [`Product`](super::Product) with the same matrix, bit for bit, and faster where it has many
/// columns.
#[derive(Clone, Debug, PartialEq)]
pub struct PackedMatrix {
    steps: usize,
    columns: usize,
    /// `[panels, steps, PANEL]`; columns beyond the last are zero.
    panels: Vec<f32>,
}

impl PackedMatrix {
    /// A matrix whose columns are `rows`, each of `steps` values: `[columns, steps]`.
    ///
    /// # Panics
    /// If `rows` is not whole rows.
    pub fn of_columns(rows: &[f32], steps: usize) -> Self {
        if steps == 0 {
            return Self { steps, columns: 0, panels: Vec::new() };
        }
        assert!(rows.len().is_multiple_of(steps), "the matrix has no whole columns");
        let columns = rows.len() / steps;
        let mut panels = vec![0.0; columns.div_ceil(PANEL) * steps * PANEL];
        panels.par_chunks_exact_mut(steps * PANEL).zip(rows.par_chunks(steps * PANEL)).for_each(
            |(panel, rows)| {
                for (column, row) in rows.chunks_exact(steps).enumerate() {
                    for (line, &value) in panel.chunks_exact_mut(PANEL).zip(row) {
                        line[column] = value;
                    }
                }
            },
        );
        Self { steps, columns, panels }
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// A value.
    ///
    /// # Panics
    /// If it is outside of the matrix.
    pub fn at(&self, step: usize, column: usize) -> f32 {
        assert!(step < self.steps && column < self.columns, "outside of the matrix");
        self.panels[(column / PANEL * self.steps + step) * PANEL + column % PANEL]
    }

    /// The product of `a`, rows of `a_row` values of which the first `steps` are used, with this matrix:
    /// `[rows, columns]`.
    ///
    /// # Panics
    /// If `a` is not whole rows of at least as many values as this matrix has rows.
    pub fn multiply(&self, a: &[f32], a_row: usize) -> Vec<f32> {
        let rows = self.rows(a, a_row);
        let mut out = vec![0.0; rows * self.columns];
        if self.columns > 0 {
            out.par_chunks_mut(ROWS * self.columns)
                .zip(a.par_chunks(ROWS * a_row))
                .for_each(|(out, a)| self.block(Simd::chosen(), a, a_row, out));
        }
        out
    }

    /// The same block by block, so that the whole product need not be held: `consume` is given some rows of
    /// `a` and theirs of the product, which it may change, and returns what is made of them. What it returns
    /// is in the order of the rows. For a matrix without columns, `consume` is not called, and nothing is
    /// returned.
    ///
    /// # Panics
    /// As [`multiply`](Self::multiply).
    pub fn multiply_each<T: Send>(
        &self,
        a: &[f32],
        a_row: usize,
        consume: impl Fn(&[f32], &mut [f32]) -> Vec<T> + Sync,
    ) -> Vec<T> {
        self.rows(a, a_row);
        if self.columns == 0 {
            return Vec::new();
        }
        let made: Vec<Vec<T>> = a
            .par_chunks(ROWS * a_row)
            .map_init(Vec::new, |out: &mut Vec<f32>, a| {
                out.resize(a.len() / a_row * self.columns, 0.0);
                self.block(Simd::chosen(), a, a_row, out);
                consume(a, out)
            })
            .collect();
        made.into_iter().flatten().collect()
    }

    fn rows(&self, a: &[f32], a_row: usize) -> usize {
        assert!(a_row >= self.steps && a_row > 0, "rows are shorter than the product needs");
        assert!(a.len().is_multiple_of(a_row), "the first matrix has no whole rows");
        a.len() / a_row
    }

    fn block(&self, simd: Simd, a: &[f32], a_row: usize, out: &mut [f32]) {
        simd.run(Block { matrix: self, a, a_row, out });
    }
}

struct Block<'a> {
    matrix: &'a PackedMatrix,
    a: &'a [f32],
    a_row: usize,
    /// `[rows, columns]`
    out: &'a mut [f32],
}

impl Kernel for Block<'_> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector>(mut self) {
        let (steps, columns) = (self.matrix.steps, self.matrix.columns);
        let rows = self.a.len() / self.a_row;
        assert!(self.out.len() == rows * columns && self.a_row >= steps, "sizes were checked");
        let wide = 2 * V::LANES;
        for first in (0..columns).step_by(wide) {
            let mut i = 0;
            while i < rows {
                // SAFETY: the rows are inside the matrices, whose sizes are asserted above; a panel has whole
                // tiles.
                i += unsafe {
                    if V::IS_BLOCK && rows - i >= 8 {
                        self.tile::<V, 8>(i, first)
                    } else if rows - i >= 4 {
                        self.tile::<V, 4>(i, first)
                    } else {
                        self.tile::<V, 1>(i, first)
                    }
                };
            }
        }
    }
}

impl Block<'_> {
    /// # Safety
    /// Rows `i .. i + P` are inside the first matrix, and `first` is the first column of a tile.
    #[inline(always)]
    unsafe fn tile<V: Vector, const P: usize>(&mut self, i: usize, first: usize) -> usize {
        let (steps, columns) = (self.matrix.steps, self.matrix.columns);
        let strides = Strides { x_row: self.a_row, x_step: 1, w_step: PANEL, w_vector: V::LANES };
        let wide = 2 * V::LANES;
        // SAFETY: the caller's promise. Columns beyond the last go through a buffer.
        unsafe {
            let a = self.a.as_ptr().add(i * self.a_row);
            let w = self.matrix.panels.as_ptr().add(first / PANEL * steps * PANEL + first % PANEL);
            let acc: [[V; 2]; P] = accumulate([[V::zero(); 2]; P], a, w, strides, steps);
            if first + wide <= columns {
                store(&acc, self.out.as_mut_ptr().add(i * columns + first), (columns, V::LANES), P);
            } else {
                let mut buffer = [0.0_f32; 8 * PANEL];
                store(&acc, buffer.as_mut_ptr(), (PANEL, V::LANES), P);
                for (p, line) in buffer.chunks_exact(PANEL).take(P).enumerate() {
                    let rest = columns - first;
                    self.out[(i + p) * columns + first..][..rest].copy_from_slice(&line[..rest]);
                }
            }
        }
        P
    }
}

#[cfg(test)]
mod tests {
    use super::super::Product;
    use super::*;

    fn values(n: usize, seed: usize) -> Vec<f32> {
        (0..n).map(|i| ((i * 7919 + seed * 104_729) % 2003) as f32 / 1001.5 - 1.0).collect()
    }

    #[test]
    fn values_are_those_of_the_plain_product_with_every_instruction_set() {
        for (rows, row, steps, columns) in
            [(1, 7, 7, 5), (13, 70, 64, 33), (140, 19, 19, 100), (9, 3, 3, 31), (70, 128, 128, 64)]
        {
            let (a, transposed) = (values(rows * row, 1), values(steps * columns, 2));
            let packed = PackedMatrix::of_columns(&transposed, steps);
            let b: Vec<f32> = (0..steps * columns).map(|at| packed.at(at / columns, at % columns)).collect();
            let first: Vec<f32> = (0..columns).map(|column| transposed[column * steps]).collect();
            assert_eq!(b[..columns], first);
            let mut expected = vec![f32::NAN; rows * columns];
            Product { a: &a, a_row: row, a_step: 1, b: &b, steps, columns }.run(&mut expected);
            assert_eq!(packed.multiply(&a, row), expected);
            let doubled = packed.multiply_each(&a, row, |some, out| {
                assert_eq!(some.len() / row, out.len() / columns);
                out.iter().map(|x| 2.0 * x).collect()
            });
            assert_eq!(doubled, expected.iter().map(|x| 2.0 * x).collect::<Vec<f32>>());
            for simd in Simd::available().into_iter().filter(|simd| simd.is_fused()) {
                let mut out = vec![f32::NAN; rows * columns];
                packed.block(simd, &a, row, &mut out);
                assert!(!Simd::chosen().is_fused() || out == expected, "{} {rows} {columns}", simd.name());
            }
        }
    }

    #[test]
    fn an_empty_matrix_has_an_empty_product() {
        let empty = PackedMatrix::of_columns(&[], 3);
        assert!(empty.multiply(&[1.0; 6], 3).is_empty());
        assert!(empty.multiply_each(&[1.0; 6], 3, |_, _| vec![1]).is_empty());
        assert_eq!(PackedMatrix::of_columns(&[], 0).columns(), 0);
    }

    #[test]
    fn wrong_sizes_are_refused() {
        let refused = |run: &(dyn Fn() + std::panic::RefUnwindSafe)| std::panic::catch_unwind(run).is_err();
        let packed = PackedMatrix::of_columns(&[1.0; 6], 3);
        assert!(refused(&|| drop(PackedMatrix::of_columns(&[1.0; 5], 3))));
        assert!(refused(&|| drop(packed.multiply(&[1.0; 4], 2))));
        assert!(refused(&|| drop(packed.multiply(&[1.0; 5], 4))));
        assert!(refused(&|| {
            packed.at(3, 0);
        }));
    }
}
