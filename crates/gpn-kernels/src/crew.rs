//! Threads that go through many short tasks together.
//!
//! A pass over a small batch is dozens of tasks of a few hundred microseconds. To wake a sleeping thread for each of
//! them takes a third of the time, so the helpers of a crew are woken once per pass and spin from one task to the
//! next. Nobody waits for a helper that has not come: the leader does every part that nobody else has taken.
//!
//! Each thread begins with a share of the parts that is its own, so that it does the same images in every task and
//! finds them in its cache, and then takes what is left of the others'.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Rounds of spinning before the processor is offered to others.
const PATIENCE: u32 = 1 << 12;
/// Bits of a part's number in [`Crew::shares`].
const BITS: u32 = 16;
const MASK: u64 = (1 << BITS) - 1;

type Task<'t, W> = dyn Fn(usize, &mut W) + Sync + 't;

/// A leader, the thread that makes the crew, and a helper for each further thread of the current rayon pool. Each has
/// a worker `W` of its own.
pub(crate) struct Crew<'a, W> {
    workers: &'a [Mutex<W>],
    /// The parts of each thread's share that nobody has taken: number of the task, end, begin.
    shares: Vec<AtomicU64>,
    /// The work on one part of the task. Written by the leader while no part is left or unfinished.
    task: UnsafeCell<Option<*const Task<'static, W>>>,
    /// Parts of the task that are not done.
    unfinished: AtomicUsize,
    is_closed: AtomicBool,
    has_failed: AtomicBool,
}

// SAFETY: `task` is written by the leader alone, before the shares are, and read by who has taken a part, before
// it counts as finished; the leader writes again only after all parts are. What it points to is `Sync`.
unsafe impl<W: Send> Sync for Crew<'_, W> {}

impl<W: Send> Crew<'_, W> {
    /// Runs `lead` on this thread with a crew of as many threads as the pool has, but no more than `workers`.
    pub(crate) fn gather<R>(workers: &[Mutex<W>], lead: impl FnOnce(&Crew<'_, W>) -> R) -> R {
        let threads = rayon::current_num_threads().min(workers.len());
        let crew = Crew {
            workers,
            shares: (0..threads).map(|_| AtomicU64::new(0)).collect(),
            task: UnsafeCell::new(None),
            unfinished: AtomicUsize::new(0),
            is_closed: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
        };
        let crew = &crew;
        rayon::in_place_scope(|scope| {
            for helper in 1..threads {
                scope.spawn(move |_| crew.help(helper));
            }
            let _dismissal = Dismissal(crew);
            lead(crew)
        })
    }

    /// Does `work` once for each of `parts` parts, and returns when all are done. Called by the leader.
    pub(crate) fn for_each(&self, parts: usize, work: impl Fn(usize, &mut W) + Sync) {
        assert!(parts as u64 <= MASK);
        let work: &Task<'_, W> = &work;
        #[expect(
            clippy::transmute_ptr_to_ptr,
            reason = "a cast cannot lengthen the lifetime of a trait object"
        )]
        // SAFETY: only the lifetime is changed; nobody uses the task after `Completion` has waited for all parts.
        let work = unsafe { std::mem::transmute::<*const Task<'_, W>, *const Task<'static, W>>(work) };
        // SAFETY: all parts of the task before are finished.
        unsafe { *self.task.get() = Some(work) };
        self.unfinished.store(parts, Ordering::Relaxed);
        for (thread, share) in self.shares.iter().enumerate() {
            let number = (share.load(Ordering::Relaxed) >> (2 * BITS)) + 1;
            let [begin, end] = [thread, thread + 1].map(|t| (t * parts / self.shares.len()) as u64);
            share.store(number << (2 * BITS) | end << BITS | begin, Ordering::Release);
        }
        let completion = Completion(self);
        while self.do_part(0) {}
        drop(completion);
        assert!(!self.has_failed.load(Ordering::Relaxed), "a thread failed in a part of the task");
    }

    /// Works on tasks until the leader is done with all.
    fn help(&self, worker: usize) {
        let mut rounds = 0;
        while !self.is_closed.load(Ordering::Acquire) {
            if self.do_part(worker) {
                rounds = 0;
            } else {
                spin(&mut rounds);
            }
        }
    }

    /// Does one part, if one is open.
    fn do_part(&self, worker: usize) -> bool {
        let Some(part) = self.take(worker) else { return false };
        let _finish = Finish(self);
        // SAFETY: the part is taken and not finished, so the task is that of the part, and alive.
        let Some(task) = (unsafe { *self.task.get() }) else { return false };
        // Nobody else has this number, so the lock is free; it is there for the compiler.
        let mut worker = self.workers[worker].lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: as above.
        unsafe { (*task)(part, &mut worker) };
        true
    }

    /// Takes a part: the next of the thread's own share, or else of another's.
    fn take(&self, thread: usize) -> Option<usize> {
        let threads = self.shares.len();
        (thread..thread + threads).find_map(|owner| take_from(&self.shares[owner % threads]))
    }
}

fn take_from(share: &AtomicU64) -> Option<usize> {
    let mut left = share.load(Ordering::Acquire);
    while left & MASK < left >> BITS & MASK {
        match share.compare_exchange_weak(left, left + 1, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return Some((left & MASK) as usize),
            Err(now) => left = now,
        }
    }
    None
}

fn spin(rounds: &mut u32) {
    if *rounds < PATIENCE {
        *rounds += 1;
        std::hint::spin_loop();
    } else {
        std::thread::yield_now();
    }
}

/// Counts a part as finished, even if it failed.
struct Finish<'a, 'w, W>(&'a Crew<'w, W>);

impl<W> Drop for Finish<'_, '_, W> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.has_failed.store(true, Ordering::Relaxed);
        }
        self.0.unfinished.fetch_sub(1, Ordering::Release);
    }
}

/// Waits for all parts of a task; where the leader failed, parts that nobody has taken are left out.
struct Completion<'a, 'w, W: Send>(&'a Crew<'w, W>);

impl<W: Send> Drop for Completion<'_, '_, W> {
    fn drop(&mut self) {
        while self.0.take(0).is_some() {
            self.0.unfinished.fetch_sub(1, Ordering::Release);
        }
        let mut rounds = 0;
        while self.0.unfinished.load(Ordering::Acquire) > 0 {
            spin(&mut rounds);
        }
    }
}

/// Sends the helpers home.
struct Dismissal<'a, 'w, W>(&'a Crew<'w, W>);

impl<W> Drop for Dismissal<'_, '_, W> {
    fn drop(&mut self) {
        self.0.is_closed.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workers(count: usize) -> Vec<Mutex<usize>> {
        (0..count).map(|_| Mutex::new(0)).collect()
    }

    #[test]
    fn every_part_of_every_task_is_done_once() {
        for threads in [1, 2, 3, 8] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let workers = workers(threads);
            let done: Vec<AtomicUsize> = (0..40).map(|_| AtomicUsize::new(0)).collect();
            pool.install(|| {
                Crew::gather(&workers, |crew| {
                    for task in 0..500 {
                        crew.for_each(task % 40, |part, count| {
                            done[part].fetch_add(1, Ordering::Relaxed);
                            *count += 1;
                        });
                        let expected = |part| task / 40 * (39 - part) + (task % 40).saturating_sub(part);
                        assert!((0..40).all(|part| done[part].load(Ordering::Relaxed) == expected(part)));
                    }
                });
            });
            let total: usize = workers.into_iter().map(|worker| worker.into_inner().unwrap()).sum();
            assert_eq!(total, (0..500).map(|task| task % 40).sum::<usize>());
        }
    }

    #[test]
    fn a_failure_reaches_the_leader() {
        for failing in [0, 31] {
            let workers = workers(2);
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                Crew::gather(&workers, |crew| crew.for_each(32, |part, _| assert!(part != failing)));
            }));
            assert!(outcome.is_err());
        }
    }
}
