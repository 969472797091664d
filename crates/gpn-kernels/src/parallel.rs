//! Work shared between threads so that the result does not depend on how many there are.
//!
//! A batch is cut into at most [`MOST_PARTS`] parts of consecutive images, by the sizes of batch and map alone.
//! Each part is summed by one thread from its first image to its last, and the sums of the parts are added
//! in order. The threads are those of a [`crate::team::Team`].

use std::marker::PhantomData;
use std::ops::Range;

/// Largest number of parts of a batch, and so of threads that can share one.
pub(crate) const MOST_PARTS: usize = 32;

/// How a batch is cut.
#[derive(Clone, Copy)]
pub(crate) struct Parts {
    images: usize,
    count: usize,
}

impl Parts {
    /// Parts of about `images_per_part` images, and at least two. Fewer, larger parts spare work that each part does
    /// once; more can be shared among more threads.
    pub(crate) fn of(images: usize, images_per_part: usize) -> Parts {
        let count = (images / images_per_part.max(1)).clamp(images.min(2), MOST_PARTS);
        Parts { images, count }
    }
    /// Number of parts.
    pub(crate) fn count(self) -> usize {
        self.count
    }
    /// Images of a part: as many as of any other, or one more.
    pub(crate) fn range(self, part: usize) -> Range<usize> {
        part * self.images / self.count..(part + 1) * self.images / self.count
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_the_batch_once() {
        for images in [0, 1, 2, 10, 31, 32, 33, 50, 128, 1000] {
            for per_part in [1, 4, 8] {
                let parts = Parts::of(images, per_part);
                assert!(parts.count() <= MOST_PARTS && parts.count() >= images.min(2));
                let covered: Vec<usize> = (0..parts.count()).flat_map(|p| parts.range(p)).collect();
                assert_eq!(covered, (0..images).collect::<Vec<_>>());
                assert!((0..parts.count()).all(|p| !parts.range(p).is_empty()));
            }
        }
    }
}
