//! Every row compared in 32-bit arithmetic.

use rayon::prelude::*;

use super::{Nearest, squared_distance};
use crate::simd::{Kernel, Simd, Vector};

/// Rows compared by one thread at a time; those of a block stay in cache for all queries.
const SHARE: usize = 4096;
const BLOCK: usize = 64;

/// The `count` of `rows: [n, dim]` nearest to each of `queries: [some, dim]`, nearest first; of equally near
/// ones the first. Takes O(n * some * dim), shared by all threads, and no preparation.
pub fn nearest(rows: &[f32], queries: &[f32], dim: usize, count: usize) -> Vec<Vec<u32>> {
    nearest_with(Simd::chosen(), rows, queries, dim, count)
}

pub(super) fn nearest_with(
    simd: Simd,
    rows: &[f32],
    queries: &[f32],
    dim: usize,
    count: usize,
) -> Vec<Vec<u32>> {
    if queries.is_empty() || dim == 0 {
        return Vec::new();
    }
    let new = || vec![Nearest::new(count); queries.len() / dim];
    let merged = |mut a: Vec<Nearest>, b: Vec<Nearest>| {
        a.iter_mut().zip(&b).for_each(|(a, b)| a.merge(b));
        a
    };
    let found = rows
        .par_chunks(SHARE * dim)
        .enumerate()
        .fold(new, |mut found, (share, rows)| {
            simd.run(Share { rows, first: (share * SHARE) as u32, queries, dim, found: &mut found });
            found
        })
        .reduce(new, merged);
    found.into_iter().map(Nearest::into_rows).collect()
}

struct Share<'a> {
    rows: &'a [f32],
    first: u32,
    queries: &'a [f32],
    dim: usize,
    found: &'a mut [Nearest],
}

impl Kernel for Share<'_> {
    type Output = ();
    // The vector type is not asked for: the plain loop is compiled with the vectors of the instruction set.
    #[inline(always)]
    fn run<V: Vector>(self) {
        let dim = self.dim;
        for (block, start) in self.rows.chunks(BLOCK * dim).zip((self.first..).step_by(BLOCK)) {
            for (query, found) in self.queries.chunks_exact(dim).zip(&mut *self.found) {
                for (row, number) in block.chunks_exact(dim).zip(start..) {
                    found.offer(squared_distance(row, query), number);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn infinite_rows_and_queries_are_infinitely_far() {
        let rows = [f32::INFINITY, 2.0, f32::NAN, 1.0, f32::NEG_INFINITY];
        for simd in Simd::available() {
            let found = nearest_with(simd, &rows, &[f32::INFINITY, 0.0], 1, 5);
            assert_eq!(found, [vec![0, 1, 2, 3, 4], vec![3, 1, 0, 2, 4]], "{}", simd.name());
        }
    }
}
