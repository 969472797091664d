//! Which classes of the memory are nearest to a prototype.
//!
//! [`PrototypeIndex::new`] is exact, whatever the number of classes: it finds what comparing all of them
//! finds, to the last bit. The first queries are compared with every prototype; an index that is asked more
//! often keeps the prototypes a second time in 8-bit codes, which tell most classes apart at a quarter of the
//! memory read ([`gpn_kernels::search`]).
//!
//! [`PrototypeIndex::approximate`] is faster to search and may miss classes: it compares the classes of some
//! cells only, and tells by [`recall`](PrototypeIndex::recall) which share of the nearest it finds.
//!
//! Answers are the same at any number of threads, and equally near classes come in their order. An exact
//! index gives the same answers with every instruction set. An approximate one gives others with `portable`,
//! which rounds differently when classes are assigned to cells.

use std::borrow::Cow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use gpn_kernels::search::{self, Codes};

use crate::cells::Cells;
use crate::memory::Memory;

/// Fewer classes are compared as they are: that takes a tenth of a millisecond.
const CODED_FROM: usize = 4096;
/// Queries after which codes are made; making them takes about as long as comparing as many with all classes.
const CODED_AFTER: usize = 8;
/// Up to this number of classes, [`PrototypeIndex::approximate`] is exact.
pub const EXACT_UP_TO: usize = 50_000;

/// Prototypes that stand for queries where the recall is measured, and the neighbours looked for.
const SAMPLED: usize = 200;
const NEIGHBOURS: usize = 10;

/// Finds the nearest classes of a memory.
///
/// ```
/// use gpn_model::{Memory, PrototypeIndex};
///
/// let memory = Memory::new(2, vec![0.0, 0.0, 5.0, 5.0, 2.0, 1.0]);
/// let index = PrototypeIndex::new(&memory);
/// assert_eq!(index.nearest(&[2.0, 2.0, 6.0, 6.0], 2), [vec![2, 0], vec![1, 2]]);
/// assert!(index.is_exact());
/// ```
pub struct PrototypeIndex<'a> {
    prototypes: Cow<'a, [f32]>,
    dim: usize,
    /// Queries so far.
    asked: AtomicUsize,
    /// Made when enough was asked; `None` where the prototypes cannot be coded.
    codes: OnceLock<Option<Codes>>,
    approximate: Option<Approximate>,
}

struct Approximate {
    cells: Cells,
    recall: f64,
}

impl<'a> PrototypeIndex<'a> {
    /// A search that finds exactly the nearest. Costs nothing before it is used; O(classes * dim) once, when
    /// it is used often, and then a quarter of the prototypes' memory.
    pub fn new(memory: &'a Memory) -> Self {
        Self::of(memory.prototypes(), memory.dim)
    }

    /// The same for `prototypes: [classes, dim]`, borrowed or given.
    pub fn of(prototypes: impl Into<Cow<'a, [f32]>>, dim: usize) -> Self {
        let prototypes = prototypes.into();
        Self { prototypes, dim, asked: AtomicUsize::new(0), codes: OnceLock::new(), approximate: None }
    }

    /// A search that divides the memory into cells around centres (k-means), as many as the root of the
    /// number of classes, and compares the classes of the cells nearest to a query. It misses classes beyond
    /// a border: few where classes lie in groups, most where they do not, see [`recall`](Self::recall). Exact
    /// up to [`EXACT_UP_TO`] classes. Made in O(classes^1.5).
    pub fn approximate(memory: &'a Memory) -> Self {
        let mut index = Self::new(memory);
        if memory.classes() > EXACT_UP_TO {
            let cells = Cells::new(&index.prototypes, index.dim);
            let recall = measured_recall(memory, &cells);
            index.approximate = Some(Approximate { cells, recall });
        }
        index
    }

    /// The prototypes, `[classes, dim]`.
    pub fn prototypes(&self) -> &[f32] {
        &self.prototypes
    }

    /// Whether the nearest classes are always found.
    pub fn is_exact(&self) -> bool {
        self.approximate.is_none()
    }

    /// The share of the 10 nearest classes that is found: 1 for an exact index. For an approximate one this
    /// was measured when it was made, with 200 prototypes of the memory for queries, each without itself;
    /// queries that are like no prototype may find fewer.
    pub fn recall(&self) -> f64 {
        self.approximate.as_ref().map_or(1.0, |approximate| approximate.recall)
    }

    /// The `count` classes nearest to each of `queries: [some, dim]` by Euclidean distance, nearest first; of
    /// equally near ones the first. Many queries at once take less time than one after the other.
    pub fn nearest(&self, queries: &[f32], count: usize) -> Vec<Vec<u32>> {
        match &self.approximate {
            None => self.exact(queries, count),
            Some(approximate) => approximate.cells.nearest(&self.prototypes, queries, self.dim, count),
        }
    }

    fn exact(&self, queries: &[f32], count: usize) -> Vec<Vec<u32>> {
        let (dim, prototypes) = (self.dim.max(1), self.prototypes());
        let (classes, new) = (prototypes.len() / dim, queries.len() / dim);
        let asked = self.asked.fetch_add(new, Ordering::Relaxed).saturating_add(new);
        let is_worth_it = classes >= CODED_FROM && asked >= CODED_AFTER;
        let codes = is_worth_it.then(|| self.codes.get_or_init(|| Codes::new(prototypes, dim)).as_ref());
        match codes.flatten() {
            Some(codes) => codes.nearest(prototypes, queries, count),
            None => search::nearest(prototypes, queries, dim, count),
        }
    }
}

/// The share of the nearest classes of some prototypes that the cells find, the prototypes themselves left
/// out.
fn measured_recall(memory: &Memory, cells: &Cells) -> f64 {
    let sampled: Vec<u32> = (0..SAMPLED).map(|place| (place * memory.classes() / SAMPLED) as u32).collect();
    let queries: Vec<f32> = sampled.iter().flat_map(|&class| memory.of(class)).copied().collect();
    // An index of its own, whose codes are dropped with it.
    let exact = PrototypeIndex::new(memory).nearest(&queries, NEIGHBOURS + 1);
    let found = cells.nearest(memory.prototypes(), &queries, memory.dim, NEIGHBOURS + 1);
    let (mut hits, mut wanted) = (0, 0);
    for ((&own, exact), found) in sampled.iter().zip(&exact).zip(&found) {
        for class in exact.iter().filter(|&&class| class != own) {
            wanted += 1;
            hits += usize::from(found.contains(class));
        }
    }
    f64::from(hits as u32) / f64::from(wanted.max(1))
}

#[cfg(test)]
mod tests {
    use gpn_data::rng::{Purpose, Stream};

    use super::*;
    use crate::distance::squared_distance;

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
        let index = PrototypeIndex::of(vec![0.0_f32, 5.0, 2.0, 2.5], 1);
        assert_eq!(index.nearest(&[2.1, 4.0], 2), [vec![2, 3], vec![1, 3]]);
        assert_eq!(index.nearest(&[0.0], 9)[0].len(), 4);
    }

    #[test]
    fn equally_near_classes_come_in_order() {
        let memory = Memory::new(1, [1.0, 3.0].repeat(5000));
        assert_eq!(PrototypeIndex::new(&memory).nearest(&[2.0, 4.0], 3), [vec![0, 1, 2], vec![1, 3, 5]]);
        assert!(PrototypeIndex::new(&memory).nearest(&[2.0], 0)[0].is_empty());
        assert!(PrototypeIndex::new(&Memory::default()).nearest(&[], 2).is_empty());
    }

    /// New members of the groups of a memory.
    fn members(memory: &Memory, count: u32) -> Vec<f32> {
        let mut stream = Stream::new(6, Purpose::Memory, 0);
        (0..count)
            .flat_map(|query| memory.of(query * 257).to_vec())
            .map(|value| value + stream.normal_pair().0 / 3.0)
            .collect()
    }

    fn on_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
    }

    #[test]
    fn codes_change_no_answer() {
        let memory = grouped(CODED_FROM + 1000, 24, 0);
        let queries = members(&memory, 19);
        let scanned = search::nearest(memory.prototypes(), &queries, 24, 7);
        let index = PrototypeIndex::new(&memory);
        let first = index.nearest(&queries[..24], 7);
        assert!(index.codes.get().is_none(), "one query is not worth codes");
        assert_eq!(first, scanned[..1]);
        assert_eq!(index.nearest(&queries, 7), scanned);
        assert!(index.codes.get().is_some_and(Option::is_some), "many are");
        assert_eq!(on_threads(3, || index.nearest(&queries, 7)), scanned);
        assert!(index.is_exact());
    }

    #[test]
    fn a_memory_that_cannot_be_coded_is_compared() {
        let mut prototypes = grouped(CODED_FROM, 3, 0).prototypes().to_vec();
        prototypes[5] = f32::INFINITY;
        let memory = Memory::new(3, prototypes);
        let queries = memory.prototypes()[30..60].to_vec();
        let index = PrototypeIndex::new(&memory);
        assert_eq!(index.nearest(&queries, 2), search::nearest(memory.prototypes(), &queries, 3, 2));
    }

    #[test]
    fn cells_find_nearly_all_of_groups_and_say_so_and_are_the_same_at_any_number_of_threads() {
        let memory = grouped(EXACT_UP_TO + 10_000, 24, 0);
        let queries = members(&memory, 200);
        let exact = PrototypeIndex::new(&memory).nearest(&queries, 2);
        let search = || {
            let index = PrototypeIndex::approximate(&memory);
            assert!(!index.is_exact());
            let found = index.nearest(&queries, 2);
            assert!(index.codes.get().is_none(), "cells need no codes");
            (found, index.recall())
        };
        let (found, recall) = on_threads(1, search);
        assert_eq!(on_threads(3, search), (found.clone(), recall));
        let hits: usize =
            exact.iter().zip(&found).map(|(a, b)| a.iter().filter(|class| b.contains(class)).count()).sum();
        assert!(hits >= 380, "{hits} of 400");
        assert!((0.95..=1.0).contains(&recall), "{recall}");
    }

    #[test]
    fn cells_say_that_they_miss_most_of_noise() {
        let mut stream = Stream::new(8, Purpose::Memory, 0);
        let prototypes: Vec<f32> = (0..(EXACT_UP_TO + 1) * 64).map(|_| stream.normal_pair().0).collect();
        let memory = Memory::new(64, prototypes);
        let recall = PrototypeIndex::approximate(&memory).recall();
        assert!(recall < 0.9, "{recall}");
    }
}
