//! A memory divided into cells around centres (k-means), for a search that looks at some of them only.

use gpn_kernels::linear;
use gpn_kernels::search::{Nearest, squared_distance};
use rayon::prelude::*;

/// Rows whose nearest centres are found at a time.
const BLOCK: usize = 64;

/// Classes per cell that the centres are made of, and how often they are made.
const SAMPLE_PER_CELL: usize = 64;
const ROUNDS: usize = 8;
/// A cell with fewer classes of the sample is given up, and the largest one is divided instead.
const LEAST_SAMPLE: u32 = 8;

/// Cells that a search looks at.
const CELLS_SEARCHED: usize = 48;

/// The memory divided into cells.
pub(crate) struct Cells {
    /// `[cells, dim]`.
    centres: Vec<f32>,
    /// The classes, cell by cell.
    classes: Vec<u32>,
    /// Where the classes of each cell begin, and where the last ends.
    starts: Vec<usize>,
}

impl Cells {
    pub(crate) fn new(prototypes: &[f32], dim: usize) -> Self {
        let classes = prototypes.len() / dim;
        let count = classes.isqrt().max(1);
        let rows = |step: usize| prototypes.chunks_exact(dim).step_by(step);
        // Classes stand in the order of their ids, so that evenly spaced ones are a fair sample.
        let mut centres: Vec<f32> = rows(classes / count).take(count).flatten().copied().collect();
        let sample: Vec<f32> = rows(classes.div_ceil(count * SAMPLE_PER_CELL)).flatten().copied().collect();
        for round in 1..=ROUNDS {
            let mut counts = centre(&sample, &nearest_centres(&sample, &centres, dim), &mut centres, dim);
            if round < ROUNDS {
                divide_largest(&sample, &mut counts, &mut centres, dim);
            }
        }
        let cell_of = nearest_centres(prototypes, &centres, dim);
        let mut starts = vec![0; count + 1];
        for &cell in &cell_of {
            starts[cell as usize + 1] += 1;
        }
        for cell in 0..count {
            starts[cell + 1] += starts[cell];
        }
        let mut by_cell: Vec<u32> = (0..classes as u32).collect();
        by_cell.sort_by_key(|&class| cell_of[class as usize]);
        Self { centres, classes: by_cell, starts }
    }

    /// The nearest among the classes of the cells that are searched, for each of `queries: [some, dim]`.
    pub(crate) fn nearest(
        &self,
        prototypes: &[f32],
        queries: &[f32],
        dim: usize,
        count: usize,
    ) -> Vec<Vec<u32>> {
        queries.par_chunks_exact(dim).map(|query| self.nearest_to(prototypes, query, count)).collect()
    }

    fn nearest_to(&self, prototypes: &[f32], query: &[f32], count: usize) -> Vec<u32> {
        let dim = query.len();
        let mut cells: Vec<(f32, usize)> =
            self.centres.chunks_exact(dim).map(|centre| squared_distance(centre, query)).zip(0..).collect();
        cells.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut nearest = Nearest::new(count);
        for (place, (_, cell)) in cells.into_iter().enumerate() {
            if place >= CELLS_SEARCHED && nearest.is_full() {
                break;
            }
            for &class in &self.classes[self.starts[cell]..self.starts[cell + 1]] {
                let prototype = &prototypes[class as usize * dim..][..dim];
                nearest.offer(squared_distance(prototype, query), class);
            }
        }
        nearest.into_rows()
    }
}

/// The centre nearest to each of `rows: [some, dim]`; of equally near ones the first.
fn nearest_centres(rows: &[f32], centres: &[f32], dim: usize) -> Vec<u32> {
    // The least |row - centre|^2 is the greatest row * centre - |centre|^2 / 2.
    let bias: Vec<f32> =
        centres.chunks_exact(dim).map(|c| -0.5 * c.iter().map(|x| x * x).sum::<f32>()).collect();
    rows.par_chunks(BLOCK * dim)
        .flat_map_iter(|block| {
            let mut scores = vec![0.0; block.len() / dim * bias.len()];
            // invariant: all lengths are multiples of `dim` that belong together.
            linear::forward(block, centres, Some(&bias), dim, &mut scores).unwrap();
            let best = |scores: &[f32]| {
                let mut best = 0;
                for (cell, score) in scores.iter().enumerate() {
                    if *score > scores[best] {
                        best = cell;
                    }
                }
                best as u32
            };
            scores.chunks_exact(bias.len()).map(best).collect::<Vec<u32>>()
        })
        .collect()
}

/// Moves each centre to the mean of its rows; a centre without rows stays. Returns the number of rows of
/// each.
fn centre(rows: &[f32], cell_of: &[u32], centres: &mut [f32], dim: usize) -> Vec<u32> {
    let mut sums = vec![0.0_f64; centres.len()];
    let mut counts = vec![0; centres.len() / dim];
    for (row, &cell) in rows.chunks_exact(dim).zip(cell_of) {
        counts[cell as usize] += 1;
        for (sum, &value) in sums[cell as usize * dim..][..dim].iter_mut().zip(row) {
            *sum += f64::from(value);
        }
    }
    let cells = centres.chunks_exact_mut(dim).zip(sums.chunks_exact(dim)).zip(&counts);
    for ((centre, sums), &count) in cells.filter(|&(_, &count)| count > 0) {
        for (value, sum) in centre.iter_mut().zip(sums) {
            *value = (sum / f64::from(count)) as f32;
        }
    }
    counts
}

/// Puts the centre of each poor cell beside that of the largest one, a little to either side of where it was.
/// Without this, a centre in the midst of all classes may keep most of them.
fn divide_largest(rows: &[f32], counts: &mut [u32], centres: &mut [f32], dim: usize) {
    let mut directions = rows.chunks_exact(dim).step_by(SAMPLE_PER_CELL / 2).cycle();
    for poor in 0..counts.len() {
        let largest = (0..counts.len()).rev().max_by_key(|&cell| counts[cell]).unwrap_or(poor);
        if counts[poor] >= LEAST_SAMPLE || counts[largest] < 2 * LEAST_SAMPLE {
            continue;
        }
        for (at, &value) in directions.next().unwrap_or_default().iter().enumerate() {
            let middle = centres[largest * dim + at];
            let aside = 0.1 * (value - middle);
            centres[largest * dim + at] = middle - aside;
            centres[poor * dim + at] = middle + aside;
        }
        counts[poor] = counts[largest] / 2;
        counts[largest] -= counts[poor];
    }
}

#[cfg(test)]
mod tests {
    use gpn_data::rng::{Purpose, Stream};

    use super::*;

    #[test]
    fn no_cell_keeps_most_classes() {
        let (classes, dim) = (20_000, 32);
        let mut stream = Stream::new(7, Purpose::Memory, 0);
        let mut prototypes: Vec<f32> = (0..classes * dim).map(|_| stream.normal_pair().0).collect();
        // The first is a centre to begin with, and nearer to every other class than those are to each other.
        prototypes[..dim].fill(0.0);
        let cells = Cells::new(&prototypes, dim);
        let largest = cells.starts.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
        assert!(largest <= 6 * classes.isqrt(), "{largest}");
    }
}
