//! Watching long work, and stopping it.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::error::DataError;

/// Is told how far long work has come, and says whether it goes on.
///
/// Closures that return a [`ControlFlow`] are one, and `()` is one that never stops. Calls come from any thread, at least
/// ten times a second as long as the work runs, and perhaps with the same numbers again. After `Break` the work ends
/// with [`DataError::Interrupted`] and leaves nothing behind.
///
/// ```
/// use std::ops::ControlFlow;
/// use gpn_data::Progress;
///
/// let first_thousand = |done: usize, total: usize| {
///     println!("{done} of {total}");
///     if done < 1000 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
/// };
/// assert!(first_thousand.update(1000, 5000).is_break());
/// assert!(().update(1000, 5000).is_continue());
/// ```
pub trait Progress: Sync {
    /// `done` of `total` samples are done. Both are 0 before the number is known.
    fn update(&self, done: usize, total: usize) -> ControlFlow<()>;
}

impl Progress for () {
    fn update(&self, _done: usize, _total: usize) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl<F: Fn(usize, usize) -> ControlFlow<()> + Sync> Progress for F {
    fn update(&self, done: usize, total: usize) -> ControlFlow<()> {
        self(done, total)
    }
}

/// Time between two calls where nothing new is done.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// Asks a [`Progress`] from inside of loops: as often as needed, and not more often.
pub(crate) struct Watch<'a> {
    progress: &'a dyn Progress,
    total: usize,
    done: AtomicUsize,
    stopped: AtomicBool,
    asked: Mutex<Instant>,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(progress: &'a dyn Progress, total: usize) -> Self {
        Self {
            progress,
            total,
            done: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            asked: Mutex::new(Instant::now()),
        }
    }

    /// For work that nobody watches.
    pub(crate) fn unwatched() -> Self {
        Self::new(&(), 0)
    }

    /// Tells how much is done. An error once the work is to stop.
    pub(crate) fn reach(&self, done: usize) -> Result<(), DataError> {
        self.done.store(done, Ordering::Relaxed);
        let mut asked = self.asked.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *asked = Instant::now();
        self.ask(done)
    }

    /// An error once the work is to stop. Cheap enough for every sample.
    pub(crate) fn check(&self) -> Result<(), DataError> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err(DataError::Interrupted);
        }
        // Where another thread is asking, this one goes on until that has an answer.
        match self.asked.try_lock() {
            Ok(mut asked) if asked.elapsed() >= ASK_EVERY => {
                *asked = Instant::now();
                self.ask(self.done.load(Ordering::Relaxed))
            }
            _ => Ok(()),
        }
    }

    fn ask(&self, done: usize) -> Result<(), DataError> {
        if self.progress.update(done, self.total).is_break() {
            self.stopped.store(true, Ordering::Relaxed);
        }
        if self.stopped.load(Ordering::Relaxed) { Err(DataError::Interrupted) } else { Ok(()) }
    }

    /// For tests: work that is to stop already.
    #[cfg(test)]
    pub(crate) fn stopped() -> Self {
        let watch = Self::unwatched();
        watch.stopped.store(true, Ordering::Relaxed);
        watch
    }

    /// Whether the work is to stop, without asking again.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

/// A writer that fails once the work is to stop.
pub(crate) struct WatchedWriter<'a, W> {
    pub(crate) inner: W,
    pub(crate) watch: &'a Watch<'a>,
}

impl<W: Write> Write for WatchedWriter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.watch.check().map_err(io::Error::other)?;
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_stopped_it_stays_stopped() {
        let stop = AtomicBool::new(false);
        let progress = |_: usize, _: usize| {
            if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let watch = Watch::new(&progress, 9);
        assert!(watch.reach(1).is_ok() && !watch.is_stopped());
        stop.store(true, Ordering::Relaxed);
        assert!(matches!(watch.reach(2), Err(DataError::Interrupted)));
        stop.store(false, Ordering::Relaxed);
        assert!(matches!(watch.check(), Err(DataError::Interrupted)));
        assert!(matches!(watch.reach(3), Err(DataError::Interrupted)));
        let mut out = WatchedWriter { inner: Vec::new(), watch: &watch };
        assert!(out.write_all(b"a").is_err());
    }
}
