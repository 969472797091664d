//! Which classes of the memory are nearest to a prototype.
//!
//! Up to [`EXACT_UP_TO`] classes are all compared. Beyond, the memory is divided into cells around centres (k-means), as
//! many as the root of the number of classes; a search compares only the classes of the cells nearest to the query, with
//! their exact distances. So a search costs some multiple of the root of the number of classes, and may now and then
//! miss a class that lies beyond a border.
//!
//! The same memory gives the same index at any number of threads, and equally near classes come in their order.

use gpn_kernels::linear;
use rayon::prelude::*;

use crate::distance::squared_distance;
use crate::memory::Memory;

/// Most classes that are searched without cells.
pub const EXACT_UP_TO: usize = 50_000;

/// Classes compared by one thread at a time; those of a block stay in cache for all queries.
const SHARE: usize = 4096;
const BLOCK: usize = 64;

/// Classes per cell that the centres are made of, and how often they are made.
const SAMPLE_PER_CELL: usize = 64;
const ROUNDS: usize = 8;
/// A cell with fewer classes of the sample is given up, and the largest one is divided instead.
const LEAST_SAMPLE: u32 = 8;

/// Cells that a search looks at.
const CELLS_SEARCHED: usize = 48;

/// Finds the nearest classes of a memory.
///
/// ```
/// use gpn_model::{Memory, PrototypeIndex};
///
/// let memory = Memory::new(2, vec![0.0, 0.0, 5.0, 5.0, 2.0, 1.0]);
/// let index = PrototypeIndex::new(&memory);
/// assert_eq!(index.nearest(&[2.0, 2.0, 6.0, 6.0], 2), [vec![2, 0], vec![1, 2]]);
/// ```
pub struct PrototypeIndex<'a> {
    prototypes: &'a [f32],
    dim: usize,
    cells: Option<Cells>,
}

impl<'a> PrototypeIndex<'a> {
    /// Prepares the search: at once up to [`EXACT_UP_TO`] classes, O(classes^1.5) beyond.
    pub fn new(memory: &'a Memory) -> Self {
        let large = memory.classes() > EXACT_UP_TO;
        Self { cells: large.then(|| Cells::new(memory.prototypes(), memory.dim)), ..Self::exact(memory) }
    }

    /// A search that compares all classes, whatever their number.
    pub fn exact(memory: &'a Memory) -> Self {
        Self { prototypes: memory.prototypes(), dim: memory.dim, cells: None }
    }

    /// The `count` classes nearest to each of `queries: [some, dim]` by Euclidean distance, nearest first; of equally
    /// near ones the first.
    pub fn nearest(&self, queries: &[f32], count: usize) -> Vec<Vec<u32>> {
        match &self.cells {
            None => nearest_classes(self.prototypes, queries, self.dim, count),
            Some(cells) => queries
                .par_chunks_exact(self.dim)
                .map(|query| cells.nearest(self.prototypes, query, count))
                .collect(),
        }
    }
}

/// The `count` rows of `memory: [classes, dim]` nearest to each row of `queries: [some, dim]`, nearest first; of equally
/// near ones the first. All rows are compared, by as many threads as there are.
pub fn nearest_classes(memory: &[f32], queries: &[f32], dim: usize, count: usize) -> Vec<Vec<u32>> {
    if queries.is_empty() {
        return Vec::new();
    }
    let new = || vec![Nearest::new(count); queries.len() / dim];
    let shares: Vec<Vec<Nearest>> = memory
        .par_chunks(SHARE * dim)
        .enumerate()
        .map(|(part, share)| {
            let mut nearest = new();
            for (block, start) in share.chunks(BLOCK * dim).zip(((part * SHARE) as u32..).step_by(BLOCK)) {
                for (query, nearest) in queries.chunks_exact(dim).zip(&mut nearest) {
                    for (prototype, class) in block.chunks_exact(dim).zip(start..) {
                        nearest.offer(squared_distance(prototype, query), class);
                    }
                }
            }
            nearest
        })
        .collect();
    let mut nearest = new();
    for share in shares {
        for (nearest, found) in nearest.iter_mut().zip(share) {
            for (distance, class) in found.found {
                nearest.offer(distance, class);
            }
        }
    }
    nearest.into_iter().map(Nearest::classes).collect()
}

/// The nearest classes so far, nearest first.
#[derive(Clone)]
struct Nearest {
    count: usize,
    found: Vec<(f32, u32)>,
}

impl Nearest {
    fn new(count: usize) -> Self {
        Self { count, found: Vec::new() }
    }

    #[inline]
    fn offer(&mut self, distance: f32, class: u32) {
        if self.count == 0 {
            return;
        }
        let is_before = |a: &(f32, u32)| a.0.total_cmp(&distance).then(a.1.cmp(&class)).is_lt();
        if self.found.len() < self.count || self.found.last().is_some_and(|last| !is_before(last)) {
            self.found.truncate(self.count - 1);
            let place = self.found.partition_point(is_before);
            self.found.insert(place, (distance, class));
        }
    }

    fn is_full(&self) -> bool {
        self.found.len() == self.count
    }

    fn classes(self) -> Vec<u32> {
        self.found.into_iter().map(|(_, class)| class).collect()
    }
}

/// The memory divided into cells.
struct Cells {
    /// `[cells, dim]`.
    centres: Vec<f32>,
    /// The classes, cell by cell.
    classes: Vec<u32>,
    /// Where the classes of each cell begin, and where the last ends.
    starts: Vec<usize>,
}

impl Cells {
    fn new(prototypes: &[f32], dim: usize) -> Self {
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

    fn nearest(&self, prototypes: &[f32], query: &[f32], count: usize) -> Vec<u32> {
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
        nearest.classes()
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

/// Moves each centre to the mean of its rows, one without rows stays; the number of rows of each.
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

/// Puts the centre of each poor cell beside that of the largest one, a little to either side of where it was. Without
/// this, a centre in the midst of all classes may keep most of them.
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

    /// Classes in groups: the mean of each group, and a third as much besides.
    fn grouped(classes: usize, dim: usize, index: u64) -> Memory {
        let mut stream = Stream::new(5, Purpose::Memory, index);
        let mut normal = |count: usize| -> Vec<f32> { (0..count).map(|_| stream.normal_pair().0).collect() };
        let means = normal(classes.div_ceil(20) * dim);
        let prototypes = means
            .chunks_exact(dim)
            .flat_map(|mean| {
                let mean = mean.to_vec();
                let own = normal(20 * dim);
                own.into_iter()
                    .enumerate()
                    .map(move |(at, own)| mean[at % dim] + own / 3.0)
                    .collect::<Vec<_>>()
            })
            .take(classes * dim)
            .collect();
        Memory::new(dim, prototypes)
    }

    #[test]
    fn exact_search_is_a_sort_by_distance() {
        for (classes, dim) in [(1, 3), (70, 16), (5000, 19)] {
            let (memory, queries) = (grouped(classes, dim, 0), grouped(4, dim, 1).prototypes().to_vec());
            let found = PrototypeIndex::new(&memory).nearest(&queries, 5);
            for (query, found) in queries.chunks_exact(dim).zip(found) {
                let mut all: Vec<u32> = (0..classes as u32).collect();
                all.sort_by(|&a, &b| {
                    let distance = |class| squared_distance(memory.of(class), query);
                    distance(a).total_cmp(&distance(b))
                });
                all.truncate(5);
                assert_eq!(found, all);
            }
        }
    }

    #[test]
    fn nearest_classes_come_in_order() {
        let memory = [0.0, 5.0, 2.0, 2.5];
        assert_eq!(nearest_classes(&memory, &[2.1, 4.0], 1, 2), [vec![2, 3], vec![1, 3]]);
        assert_eq!(nearest_classes(&memory, &[0.0], 1, 9)[0].len(), 4);
    }

    #[test]
    fn equally_near_classes_come_in_order() {
        let memory = Memory::new(1, [1.0, 3.0].repeat(5000));
        assert_eq!(PrototypeIndex::new(&memory).nearest(&[2.0, 4.0], 3), [vec![0, 1, 2], vec![1, 3, 5]]);
        assert!(PrototypeIndex::new(&memory).nearest(&[2.0], 0)[0].is_empty());
        assert!(PrototypeIndex::new(&Memory::default()).nearest(&[], 2).is_empty());
    }

    #[test]
    fn cells_find_nearly_all_and_are_the_same_at_any_number_of_threads() {
        let memory = grouped(EXACT_UP_TO + 10_000, 24, 0);
        // New members of the groups.
        let mut stream = Stream::new(6, Purpose::Memory, 0);
        let queries: Vec<f32> = (0..200)
            .flat_map(|query| memory.of(query * 257).to_vec())
            .map(|value| value + stream.normal_pair().0 / 3.0)
            .collect();
        let exact = PrototypeIndex::exact(&memory).nearest(&queries, 2);
        let on_threads = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| PrototypeIndex::new(&memory).nearest(&queries, 2))
        };
        let found = on_threads(1);
        assert_eq!(found, on_threads(3));
        let hits: usize =
            exact.iter().zip(&found).map(|(a, b)| a.iter().filter(|class| b.contains(class)).count()).sum();
        assert!(hits >= 380, "{hits} of 400");
    }

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
