//! How many threads a pass may use, given what other passes use at the same time.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Threads of all passes that are under way in this process.
static BUSY: AtomicUsize = AtomicUsize::new(0);

/// Threads that the machine runs at once.
static PROCESSORS: LazyLock<usize> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get));

/// Threads that can work at once: those of the machine, or of the current rayon pool where it has more.
pub(crate) fn capacity() -> usize {
    rayon::current_num_threads().max(*PROCESSORS)
}

/// The threads of one pass: the calling one and its helpers. Dropping it gives them back.
pub(crate) struct Reservation {
    threads: usize,
}

impl Reservation {
    /// All threads of the current rayon pool, whether others use them or not.
    pub(crate) fn whole_pool() -> Reservation {
        let threads = rayon::current_num_threads();
        BUSY.fetch_add(threads, Ordering::Relaxed);
        Reservation { threads }
    }

    /// The calling thread, and as many others as are free now, but at most `most` together and at most the current rayon
    /// pool has.
    pub(crate) fn free_threads(most: usize) -> Reservation {
        let pool = rayon::current_num_threads();
        let capacity = capacity();
        let threads = |busy: usize| capacity.saturating_sub(busy).min(pool).min(most).max(1);
        let update = |busy| Some(busy + threads(busy));
        let (Ok(busy) | Err(busy)) = BUSY.fetch_update(Ordering::Relaxed, Ordering::Relaxed, update);
        Reservation { threads: threads(busy) }
    }

    /// Number of threads, at least one.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        BUSY.fetch_sub(self.threads, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_leaves_the_calling_thread_alone() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(*PROCESSORS).build().unwrap();
        pool.install(|| {
            let all = Reservation::whole_pool();
            assert_eq!(all.threads(), *PROCESSORS);
            // Other tests may hold threads too, which changes nothing.
            assert_eq!(Reservation::free_threads(32).threads(), 1);
            assert_eq!(Reservation::free_threads(0).threads(), 1);
        });
    }
}
