//! Stopping long work from another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::TrainError;

/// A handle by which training, evaluation and embedding can be stopped. Clones stop the same work.
///
/// Work that is stopped ends within a batch with [`TrainError::Interrupted`], or, in training, with a checkpoint to go on from.
#[derive(Clone, Debug, Default)]
pub struct StopHandle(Arc<AtomicBool>);

impl StopHandle {
    /// Asks the work to stop.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the work has been asked to stop.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// An error where the work has been asked to stop.
    pub fn check(&self) -> Result<(), TrainError> {
        if self.is_stopped() { Err(TrainError::Interrupted) } else { Ok(()) }
    }
}
