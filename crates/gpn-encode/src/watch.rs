//! Counts what is done, tells a [`Progress`] about it, and learns when to stop.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use gpn_data::Progress;

use crate::error::{EncodeError, Result};

/// Time between two calls.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// Progress of one call, shared by its threads.
pub(crate) struct Counter<'a> {
    progress: &'a dyn Progress,
    total: usize,
    done: AtomicUsize,
    stopped: AtomicBool,
    asked: Mutex<Option<Instant>>,
}

impl<'a> Counter<'a> {
    pub(crate) fn new(progress: &'a dyn Progress, total: usize) -> Self {
        Self { progress, total, done: 0.into(), stopped: false.into(), asked: Mutex::new(None) }
    }

    /// Counts samples as done; an error once the work is to stop. Cheap enough for every sample.
    pub(crate) fn add(&self, samples: usize) -> Result<()> {
        let done = self.done.fetch_add(samples, Ordering::Relaxed) + samples;
        if !self.stopped.load(Ordering::Relaxed)
            && let Ok(mut asked) = self.asked.try_lock()
            && asked.is_none_or(|asked| asked.elapsed() >= ASK_EVERY)
        {
            *asked = Some(Instant::now());
            if self.progress.update(done, self.total).is_break() {
                self.stopped.store(true, Ordering::Relaxed);
            }
        }
        if self.stopped.load(Ordering::Relaxed) { Err(EncodeError::Interrupted) } else { Ok(()) }
    }

    /// Tells that all is done, whatever was told before.
    pub(crate) fn finish(&self) {
        let _asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        // The work is complete, so an answer would come too late.
        let _ = self.progress.update(self.done.load(Ordering::Relaxed), self.total);
    }
}
