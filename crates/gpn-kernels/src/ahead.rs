//! Memory that is read soon, fetched into the cache while something else is computed.

use crate::simd::Vector;

/// Values of f32 in a cache line.
const LINE: usize = 16;

/// Values that fit into the second-level cache beside those in use; more would be evicted before they are read.
const MOST: usize = 1 << 16;

/// The memory that the next group of images is made from. A convolution fetches a little of it in each step, so that
/// reading it afterwards does not wait for memory. That wait is otherwise half of the time of the element-wise work.
#[derive(Clone, Copy, Default)]
pub(crate) struct Ahead<'a> {
    maps: [&'a [f32]; 3],
}

impl<'a> Ahead<'a> {
    /// These maps, or nothing where they are too large.
    pub(crate) fn new(maps: [&'a [f32]; 3]) -> Self {
        let fits = maps.iter().map(|map| map.len()).sum::<usize>() <= MOST;
        Ahead { maps: if fits { maps } else { [&[]; 3] } }
    }

    /// Shares the maps out over the steps of a convolution.
    #[inline(always)]
    pub(crate) fn over(self, steps: usize) -> Pace<'a> {
        Pace { maps: self.maps, each: self.maps.map(|map| map.len().div_ceil(steps).next_multiple_of(LINE)) }
    }
}

/// What is fetched in each step. (A division per step would take a tenth of a small convolution's time.)
#[derive(Clone, Copy)]
pub(crate) struct Pace<'a> {
    maps: [&'a [f32]; 3],
    /// Values of each map.
    each: [usize; 3],
}

impl Pace<'_> {
    /// Asks for the share of a step.
    #[inline(always)]
    pub(crate) fn fetch<V: Vector>(&self, step: usize) {
        for (map, each) in self.maps.into_iter().zip(self.each) {
            let end = ((step + 1) * each).min(map.len());
            for line in (step * each..end).step_by(LINE) {
                V::prefetch(map[line..].as_ptr());
            }
        }
    }
}
