//! Work buffers: zeroed, aligned, in huge pages where the system has them.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

const CACHE_LINE: usize = 64;
const HUGE_PAGE: usize = 2 << 20;

/// A slice of f32 that starts on a cache line and never moves. It grows only when asked for more
/// than it has, so a training step allocates nothing after the first.
pub(crate) struct Buffer {
    start: NonNull<f32>,
    len: usize,
}

// SAFETY: `Buffer` owns its memory and hands it out under the borrow rules of `&self` and `&mut self`.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// A buffer of `len` zeros.
    pub(crate) fn zeroed(len: usize) -> Buffer {
        if len == 0 {
            return Buffer { start: NonNull::dangling(), len };
        }
        let layout = Self::layout(len);
        // SAFETY: the layout has a size above zero.
        let Some(start) = NonNull::new(unsafe { alloc_zeroed(layout) }) else { handle_alloc_error(layout) };
        #[cfg(target_os = "linux")]
        if layout.size() >= HUGE_PAGE {
            // SAFETY: the range is one allocation of ours, and the advice changes no contents. A kernel that does not
            // know the advice returns an error, which costs speed and nothing else.
            unsafe { libc::madvise(start.as_ptr().cast(), layout.size(), libc::MADV_HUGEPAGE) };
        }
        Buffer { start: start.cast(), len }
    }

    /// Makes room for `len` values; contents are zeros after growing, and kept otherwise.
    pub(crate) fn reserve(&mut self, len: usize) {
        if len > self.len {
            *self = Buffer::zeroed(len);
        }
    }

    fn layout(len: usize) -> Layout {
        let bytes = len * size_of::<f32>();
        let align = if bytes >= HUGE_PAGE { HUGE_PAGE } else { CACHE_LINE };
        // invariant: the alignment is a power of two, and no machine has isize::MAX bytes.
        Layout::from_size_align(bytes, align).expect("a buffer fits the address space")
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: allocated in `zeroed` with the layout that `len` determines.
            unsafe { dealloc(self.start.as_ptr().cast(), Self::layout(self.len)) };
        }
    }
}

impl Deref for Buffer {
    type Target = [f32];
    fn deref(&self) -> &[f32] {
        // SAFETY: `start` holds `len` initialised values (or is dangling with `len == 0`).
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        // SAFETY: as in `deref`, and `&mut self` makes it the only access.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_zero_aligned_and_grow() {
        let mut buffer = Buffer::zeroed(0);
        assert!(buffer.is_empty());
        for len in [1, 1000, 3 << 20] {
            buffer.reserve(len);
            assert_eq!(buffer.len(), len);
            assert_eq!(buffer.as_ptr() as usize % CACHE_LINE, 0);
            assert!(buffer.iter().all(|&v| v == 0.0));
            buffer[len - 1] = 1.0;
        }
        buffer.reserve(10);
        assert_eq!(buffer.len(), 3 << 20);
    }
}
