//! Work shared between threads so that the result does not depend on how many there are.
//!
//! A batch is cut into at most [`MOST_PARTS`] parts of consecutive images, by the size of the batch alone.
//! Each part is summed by one thread from its first image to its last, and the sums of the parts are added
//! in order.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

/// Largest number of parts of a batch, and so of threads that can share one.
pub(crate) const MOST_PARTS: usize = 32;

/// How a batch is cut.
#[derive(Clone, Copy)]
pub(crate) struct Parts {
    images: usize,
    per_part: usize,
}

impl Parts {
    pub(crate) fn of(images: usize) -> Parts {
        Parts { images, per_part: images.div_ceil(MOST_PARTS).max(1) }
    }
    /// Number of parts.
    pub(crate) fn count(self) -> usize {
        self.images.div_ceil(self.per_part)
    }
    /// Images of a part.
    pub(crate) fn range(self, part: usize) -> Range<usize> {
        part * self.per_part..((part + 1) * self.per_part).min(self.images)
    }
    /// Runs `work` once per part on the current rayon pool, each time with a worker of its own.
    pub(crate) fn for_each<W: Send>(self, workers: &[Mutex<W>], work: impl Fn(usize, &mut W) + Sync) {
        (0..self.count()).into_par_iter().with_max_len(1).for_each(|part| {
            // A thread runs one part at a time, so the lock is free; it is there for the compiler.
            let worker = rayon::current_thread_index().unwrap_or(0) % workers.len();
            let mut worker = workers[worker].lock().unwrap_or_else(PoisonError::into_inner);
            work(part, &mut worker);
        });
    }
}

/// A slice of equal items that parts of a batch write to, each its own items.
pub(crate) struct Shared<'a, T> {
    start: *mut T,
    len: usize,
    item: usize,
    slice: PhantomData<&'a mut [T]>,
}

// SAFETY: items are handed out under the promise of `items`, as from `&mut [T]` split up.
unsafe impl<T: Send> Sync for Shared<'_, T> {}

impl<'a, T> Shared<'a, T> {
    /// `slice` holds items of `item` values.
    pub(crate) fn new(slice: &'a mut [T], item: usize) -> Self {
        Shared { start: slice.as_mut_ptr(), len: slice.len(), item, slice: PhantomData }
    }
    /// The values of a range of items.
    ///
    /// # Safety
    /// While the result lives, nobody else asks for any item of the range.
    pub(crate) unsafe fn items(&self, range: Range<usize>) -> &'a mut [T] {
        let (begin, end) = (range.start * self.item, range.end * self.item);
        assert!(begin <= end && end <= self.len);
        // SAFETY: inside the slice, and not handed out twice by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(begin), end - begin) }
    }
}

/// Adds the rows of `parts` (each `out.len()` values) in order.
pub(crate) fn sum_parts(parts: &[f32], out: &mut [f32]) {
    const CHUNK: usize = 4096;
    let len = out.len();
    out.par_chunks_mut(CHUNK).enumerate().for_each(|(i, chunk)| {
        chunk.fill(0.0);
        for row in parts.chunks_exact(len) {
            for (sum, value) in chunk.iter_mut().zip(&row[i * CHUNK..]) {
                *sum += value;
            }
        }
    });
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "these values are exact")]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_the_batch_once() {
        for images in [0, 1, 2, 10, 31, 32, 33, 50, 128, 1000] {
            let parts = Parts::of(images);
            assert!(parts.count() <= MOST_PARTS);
            let covered: Vec<usize> = (0..parts.count()).flat_map(|p| parts.range(p)).collect();
            assert_eq!(covered, (0..images).collect::<Vec<_>>());
        }
    }

    #[test]
    fn sums_go_in_order() {
        let parts: Vec<f32> = (0..3 * 5000).map(|i| i as f32).collect();
        let mut out = vec![0.0; 5000];
        sum_parts(&parts, &mut out);
        assert_eq!(out[4999], 4999.0 + 9999.0 + 14999.0);
    }
}
