//! Panics of other crates on damaged files, turned into errors.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `read`, or gives `None` where it panics. For readers of other crates, some of which panic on damaged files.
pub fn contain<T>(read: impl FnOnce() -> T) -> Option<T> {
    let outer = CONTAINED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(read));
    CONTAINED.set(outer);
    result.ok()
}

/// Whether a panic on this thread becomes an error of this crate, so that a panic hook has nothing to print.
///
/// Some decoders of other crates panic on damaged files.
pub fn panic_is_contained() -> bool {
    CONTAINED.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_none_and_the_flag_is_taken_back() {
        assert_eq!(contain(|| (panic_is_contained(), 7)), Some((true, 7)));
        assert_eq!(contain(|| [0][std::hint::black_box(1)]), None);
        assert!(!panic_is_contained());
    }
}
