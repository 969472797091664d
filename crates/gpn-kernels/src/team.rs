//! A team of threads that works through the tasks of a pass together.
//!
//! A pass over a small batch is dozens of tasks of a few hundred microseconds. Waking a sleeping thread for each of
//! them would take a third of the time, so the helpers of a team are woken once per pass and spin from one task to the
//! next. The leader never waits for a helper that has not started: it does every part that nobody else has taken, and a
//! helper that comes too late finds the gate closed.
//!
//! Each thread starts with its own share of the parts, so that it works on the same images in every task and finds them
//! in its cache. Then it takes what is left of the other shares.

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Rounds of spinning before a thread offers the processor to others.
const PATIENCE: u32 = 1 << 12;
/// Bits of a part's number in [`Team::shares`].
const BITS: u32 = 16;
const MASK: u64 = (1 << BITS) - 1;

type Task<'t, W> = dyn Fn(usize, &mut W) + Sync + 't;

/// A leader, which is the thread that makes the team, and helpers from the current rayon pool. Each thread has its own
/// worker `W`.
pub(crate) struct Team<'a, W> {
    workers: &'a [Mutex<W>],
    /// The parts of each thread's share that nobody has taken: number of the task, end, begin.
    shares: Vec<AtomicU64>,
    /// The work on one part of the task. The leader writes it while no part is open or unfinished.
    task: UnsafeCell<Option<*const Task<'static, W>>>,
    /// Parts of the task that are not done.
    unfinished: AtomicUsize,
    has_failed: AtomicBool,
    /// Whether helpers wait for another task when all parts are taken.
    has_many_tasks: bool,
    gate: Arc<Gate>,
}

// SAFETY: only the leader writes `task`, before it writes the shares. A thread reads it after it has taken a part and
// before that part counts as finished; the leader writes again only after all parts are. What it points to is `Sync`.
unsafe impl<W: Send> Sync for Team<'_, W> {}

impl<'a, W: Send + 'static> Team<'a, W> {
    fn new(workers: &'a [Mutex<W>], has_many_tasks: bool) -> Self {
        Team {
            workers,
            shares: workers.iter().map(|_| AtomicU64::new(0)).collect(),
            task: UnsafeCell::new(None),
            unfinished: AtomicUsize::new(0),
            has_failed: AtomicBool::new(false),
            has_many_tasks,
            gate: Arc::default(),
        }
    }

    /// Runs `lead` on this thread with a team of as many threads as there are workers.
    pub(crate) fn gather<R>(workers: &'a [Mutex<W>], lead: impl FnOnce(&Team<'a, W>) -> R) -> R {
        let team = Team::new(workers, true);
        let _dismissal = Dismissal(&team.gate);
        team.call_helpers();
        lead(&team)
    }

    /// Does a single task of `parts` parts with as many threads as there are workers. Helpers leave as soon as no part is
    /// left to take.
    pub(crate) fn run_task(workers: &'a [Mutex<W>], parts: usize, work: impl Fn(usize, &mut W) + Sync) {
        let team = Team::new(workers, false);
        let _dismissal = Dismissal(&team.gate);
        // The task is there before the helpers come, or they would leave again.
        team.start(parts, &work, Team::call_helpers);
    }

    /// Does `work` once for each of `parts` parts, and returns when all are done. Called by the leader.
    pub(crate) fn for_each(&self, parts: usize, work: impl Fn(usize, &mut W) + Sync) {
        self.start(parts, &work, |_| ());
    }

    /// Publishes a task, calls `published`, and works until all parts are done.
    fn start(&self, parts: usize, work: &Task<'_, W>, published: impl FnOnce(&Self)) {
        assert!(parts as u64 <= MASK);
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
        published(self);
        while self.do_part(0) {}
        drop(completion);
        assert!(!self.has_failed.load(Ordering::Relaxed), "a thread failed in a part of the task");
    }

    /// Asks the current rayon pool for a helper for each worker but the leader's.
    fn call_helpers(&self) {
        for number in 1..self.workers.len() {
            let gate = Arc::clone(&self.gate);
            let team = TeamPointer(std::ptr::from_ref(self).cast::<Team<'static, W>>());
            rayon::spawn(move || {
                if let Some(_visit) = gate.enter() {
                    // SAFETY: the leader keeps the team until everyone who entered has left.
                    let team = unsafe { team.get() };
                    // The failure is noted in `has_failed`, and the leader fails for it.
                    let _ = catch_unwind(AssertUnwindSafe(|| team.help(number)));
                }
            });
        }
    }

    /// Works on tasks until the leader is done with all.
    fn help(&self, worker: usize) {
        let mut rounds = 0;
        while !self.gate.is_closed() {
            if self.do_part(worker) {
                rounds = 0;
            } else if self.has_many_tasks {
                spin(&mut rounds);
            } else {
                return;
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

/// A team on its way to a helper.
struct TeamPointer<W: 'static>(*const Team<'static, W>);

// SAFETY: `Team` is `Sync`, and who follows the pointer makes sure that the team is alive.
unsafe impl<W: Send + 'static> Send for TeamPointer<W> {}

impl<W: 'static> TeamPointer<W> {
    /// # Safety
    /// The team is alive as long as the result is used.
    unsafe fn get<'t>(self) -> &'t Team<'static, W> {
        // SAFETY: the caller's promise.
        unsafe { &*self.0 }
    }
}

/// Where helpers enter and leave a team. It outlives the team, so that a helper that starts late can still ask.
#[derive(Default)]
struct Gate {
    /// Number of helpers inside, and [`CLOSED`].
    state: AtomicUsize,
}

/// Bit of [`Gate::state`].
const CLOSED: usize = 1 << (usize::BITS - 1);

impl Gate {
    fn enter(&self) -> Option<Visit<'_>> {
        let before = self.state.fetch_add(1, Ordering::Acquire);
        let visit = Visit(self);
        (before & CLOSED == 0).then_some(visit)
    }

    fn is_closed(&self) -> bool {
        self.state.load(Ordering::Acquire) & CLOSED != 0
    }
}

/// A helper inside a team.
struct Visit<'a>(&'a Gate);

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        self.0.state.fetch_sub(1, Ordering::Release);
    }
}

/// Counts a part as finished, even if it failed.
struct Finish<'a, 'w, W>(&'a Team<'w, W>);

impl<W> Drop for Finish<'_, '_, W> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.has_failed.store(true, Ordering::Relaxed);
        }
        self.0.unfinished.fetch_sub(1, Ordering::Release);
    }
}

/// Waits for all parts of a task. Where the leader failed, it drops the parts that nobody has taken.
struct Completion<'a, 'w, W: Send + 'static>(&'a Team<'w, W>);

impl<W: Send + 'static> Drop for Completion<'_, '_, W> {
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

/// Closes the gate and waits until all helpers have left.
struct Dismissal<'a>(&'a Gate);

impl Drop for Dismissal<'_> {
    fn drop(&mut self) {
        self.0.state.fetch_or(CLOSED, Ordering::AcqRel);
        let mut rounds = 0;
        while self.0.state.load(Ordering::Acquire) != CLOSED {
            spin(&mut rounds);
        }
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
                Team::gather(&workers, |team| {
                    for task in 0..500 {
                        team.for_each(task % 40, |part, count| {
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
                Team::gather(&workers, |team| team.for_each(32, |part, _| assert!(part != failing)));
            }));
            assert!(outcome.is_err());
        }
    }

    #[test]
    fn a_single_task_is_done_once_by_any_number_of_threads() {
        for threads in [1, 2, 5] {
            let workers = workers(threads);
            for parts in [0, 1, 2, 40] {
                let done: Vec<AtomicUsize> = (0..parts).map(|_| AtomicUsize::new(0)).collect();
                Team::run_task(&workers, parts, |part, _| {
                    done[part].fetch_add(1, Ordering::Relaxed);
                });
                assert!(done.iter().all(|count| count.load(Ordering::Relaxed) == 1));
            }
        }
        let failing = || Team::run_task(&workers(2), 32, |part, _| assert!(part != 31));
        assert!(catch_unwind(AssertUnwindSafe(failing)).is_err());
    }

    #[test]
    fn helpers_that_come_after_the_end_do_nothing() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let workers = workers(3);
        // The leader occupies the only thread of the pool, so both helpers start when the team is gone.
        pool.install(|| Team::run_task(&workers, 8, |_, count| *count += 1));
        drop(pool);
        let counts: Vec<usize> = workers.into_iter().map(|worker| worker.into_inner().unwrap()).collect();
        assert_eq!(counts, [8, 0, 0]);
    }
}
