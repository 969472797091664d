//! Memory that is read soon, fetched into the cache while something else is computed.

use crate::simd::Vector;

/// Values of f32 in a cache line.
const LINE: usize = 16;

/// Values that the second cache takes beside those in use; more would be gone before they are read.
const MOST: usize = 1 << 16;

/// What the next group of images is made from. A convolution fetches it bit by bit as it goes: reading it
/// afterwards then does not wait for memory, which is half of the time of the element-wise work otherwise.
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

    /// Asks for the share of step `step` of `steps`.
    #[inline(always)]
    pub(crate) fn fetch<V: Vector>(&self, step: usize, steps: usize) {
        for map in self.maps {
            let (begin, end) = (map.len() * step / steps, map.len() * (step + 1) / steps);
            for line in (begin..end).step_by(LINE) {
                V::prefetch(map[line..].as_ptr());
            }
        }
    }
}
