//! An allocator that ends the process when more than a gigabyte is in use: libFuzzer itself looks once a second.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const LIMIT: usize = 1 << 30;

struct Limited;

static IN_USE: AtomicUsize = AtomicUsize::new(0);

fn take(size: usize) {
    if IN_USE.fetch_add(size, Relaxed) + size > LIMIT {
        // Printing may allocate.
        IN_USE.store(0, Relaxed);
        eprintln!("an allocation of {size} bytes leads beyond the limit of {LIMIT}");
        std::process::abort();
    }
}

// SAFETY: every call is handed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: as asked by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: as asked by the caller.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        take(size);
        IN_USE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as asked by the caller.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as asked by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Limited = Limited;
