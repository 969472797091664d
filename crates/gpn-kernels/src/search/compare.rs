//! Blocks of codes compared with many queries, and what is near in 32-bit arithmetic.

use std::sync::atomic::{AtomicU32, Ordering};

use super::codes::{HEAD, Query, stride};
use super::{Nearest, squared_distance};
use crate::simd::codes::{CodeKernel, ROWS, Reach, Sums};

/// Blocks that stay in the first cache for all queries.
const CACHED: usize = 8;

/// Queries whose sums are taken together.
pub(super) struct Tile {
    first: usize,
    width: usize,
    /// Pairs of codes, of one query after the other.
    codes: Vec<i32>,
}

/// Cuts queries into tiles of `widest`, and the rest into those of four and one.
pub(super) fn tiles(queries: &[Query<'_>], widest: usize) -> Vec<Tile> {
    let mut tiles = Vec::new();
    let mut first = 0;
    while first < queries.len() {
        let left = queries.len() - first;
        // invariant: a tile of one always fits.
        let width = [8, 4, 1].into_iter().find(|&width| width <= widest && width <= left).unwrap();
        let queries = &queries[first..first + width];
        let codes =
            (0..queries[0].codes.len()).flat_map(|pair| queries.iter().map(move |query| query.codes[pair]));
        tiles.push(Tile { first, width, codes: codes.collect() });
        first += width;
    }
    tiles
}

/// The width of the widest tile.
pub(super) struct Widest;

impl CodeKernel for Widest {
    type Output = usize;
    #[inline(always)]
    fn run<S: Sums>(self) -> usize {
        S::QUERIES
    }
}

/// What has been found for a query by one thread.
pub(super) struct Progress {
    pub(super) found: Nearest,
    reach: Reach,
    /// The squared distance that the reach belongs to.
    limit: f32,
}

impl Progress {
    pub(super) fn new(query: &Query<'_>, count: usize) -> Self {
        Self { found: Nearest::new(count), reach: query.reach, limit: f32::INFINITY }
    }

    #[inline(always)]
    fn lower(&mut self, limit: f32, query: &Query<'_>) {
        if limit < self.limit {
            self.limit = limit;
            self.reach.radius = query.radius(limit);
        }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Queries<'a> {
    pub(super) all: &'a [Query<'a>],
    pub(super) tiles: &'a [Tile],
    /// For each query the squared distance within which some thread has found enough rows, as bits: distances are not negative,
    /// so that their bits are ordered as they are.
    pub(super) limits: &'a [AtomicU32],
}

/// Compares some blocks with all queries.
pub(super) struct Share<'a> {
    pub(super) rows: &'a [f32],
    pub(super) dim: usize,
    pub(super) blocks: &'a [f32],
    /// The first row of the first block.
    pub(super) first: usize,
    pub(super) queries: Queries<'a>,
    pub(super) progress: &'a mut [Progress],
}

impl CodeKernel for Share<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Sums>(mut self) {
        let stride = stride(self.dim);
        let blocks = self.blocks.len() / stride;
        for start in (0..blocks).step_by(CACHED) {
            let end = (start + CACHED).min(blocks);
            for tile in self.queries.tiles {
                for query in tile.first..tile.first + tile.width {
                    let limit = f32::from_bits(self.queries.limits[query].load(Ordering::Relaxed));
                    self.progress[query].lower(limit, &self.queries.all[query]);
                }
                let mut block = start;
                while block < end {
                    // SAFETY: the blocks are there, and the tile has as many queries.
                    block += unsafe {
                        if S::QUERIES >= 8 && tile.width == 8 && end - block >= 2 {
                            self.compare::<S, 2, 8>(block, tile)
                        } else if S::QUERIES >= 8 && tile.width == 8 {
                            self.compare::<S, 1, 8>(block, tile)
                        } else if S::QUERIES >= 4 && tile.width == 4 {
                            self.compare::<S, 1, 4>(block, tile)
                        } else if S::QUERIES >= 4 && end - block >= 4 {
                            self.compare::<S, 4, 1>(block, tile)
                        } else {
                            self.compare::<S, 1, 1>(block, tile)
                        }
                    };
                }
            }
        }
    }
}

impl Share<'_> {
    /// Compares `BLOCKS` blocks with the `QUERIES` queries of a tile; returns `BLOCKS`.
    ///
    /// # Safety
    /// There are as many blocks from `block` on, and as many queries.
    #[inline(always)]
    unsafe fn compare<S: Sums, const BLOCKS: usize, const QUERIES: usize>(
        &mut self,
        block: usize,
        tile: &Tile,
    ) -> usize {
        let stride = stride(self.dim);
        let mut sums = [[S::zero(); QUERIES]; BLOCKS];
        // SAFETY: the caller's promise; a block has codes and a tile has values for `pairs` pairs.
        unsafe {
            let heads: [*const f32; BLOCKS] =
                std::array::from_fn(|at| self.blocks.as_ptr().add((block + at) * stride));
            let queries = tile.codes.as_ptr();
            for pair in 0..self.dim.div_ceil(2) {
                for (head, sums) in heads.iter().zip(&mut sums) {
                    let codes = head.add(HEAD).cast::<i8>().add(pair * 2 * ROWS);
                    if QUERIES == 1 {
                        // One query is done before the memory is: the next blocks are fetched meanwhile.
                        S::prefetch(codes.wrapping_add(BLOCKS * stride * size_of::<f32>()));
                    }
                    let codes = S::load(codes);
                    for (query, sum) in sums.iter_mut().enumerate() {
                        *sum = sum.add_products(codes, *queries.add(pair * QUERIES + query));
                    }
                }
            }
            for (at, sums) in sums.iter().enumerate() {
                for (query, sum) in sums.iter().enumerate() {
                    let query = tile.first + query;
                    let near = sum.within(heads[at], &self.progress[query].reach);
                    if near != 0 {
                        self.rerank(query, near, self.first + (block + at) * ROWS);
                    }
                }
            }
        }
        BLOCKS
    }

    /// Compares rows of a block, a bit for each, in 32-bit arithmetic.
    #[cold]
    #[inline(never)]
    fn rerank(&mut self, number: usize, mut near: u16, first: usize) {
        let (query, progress) = (&self.queries.all[number], &mut self.progress[number]);
        while near != 0 {
            let row = first + near.trailing_zeros() as usize;
            near &= near - 1;
            progress
                .found
                .offer(squared_distance(&self.rows[row * self.dim..][..self.dim], query.values), row as u32);
        }
        let limit = progress.found.limit();
        if limit < progress.limit {
            progress.lower(limit, query);
            self.queries.limits[number].fetch_min(limit.to_bits(), Ordering::Relaxed);
        }
    }
}
