//! Progress of long work, and how it is stopped.

use std::ops::ControlFlow;

use gpn_train::{StopHandle, TimeSplit};
use serde::Serialize;

use crate::run::TrainingReport;

/// Something that happened in long work.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum Event<'a> {
    /// Samples were stored.
    Stored {
        /// So far.
        done: usize,
        /// In all.
        total: usize,
    },
    /// Samples went through an encoder, or their embeddings were found in its cache.
    Encoded {
        /// So far.
        done: usize,
        /// In all.
        total: usize,
    },
    /// An episode of training is done.
    Episode {
        /// Episodes done.
        done: u64,
        /// Episodes in all.
        total: u64,
        /// Means since the last report, where one is due.
        report: Option<&'a TrainingReport>,
        /// Where the time went, with the report.
        #[serde(skip)]
        time: Option<TimeSplit>,
    },
    /// A larger piece of work begins.
    Step {
        /// What it is, for people.
        what: &'a str,
    },
    /// Something that a person should know.
    Warning {
        /// One sentence or more.
        text: &'a str,
    },
    /// Information that needs no action.
    Note {
        /// One sentence or more.
        text: &'a str,
    },
}

/// Is called for every event; a break stops the work.
type OnEvent<'a> = dyn Fn(&Event<'_>) -> ControlFlow<()> + Sync + 'a;

/// Receives progress while the library works, and can stop the work within a second, from any thread.
///
/// ```
/// use std::ops::ControlFlow;
/// use gpn::Watch;
///
/// let silent = Watch::default();
/// let by_handle = silent.stop_handle();
/// by_handle.stop();
/// assert!(silent.is_stopped());
/// let print = |event: &gpn::Event<'_>| { println!("{event:?}"); ControlFlow::Continue(()) };
/// let telling = Watch::new(&print);
/// ```
#[derive(Clone, Default)]
pub struct Watch<'a> {
    stop: StopHandle,
    on_event: Option<&'a OnEvent<'a>>,
}

impl<'a> Watch<'a> {
    /// Calls `on_event` for everything that happens; a break stops the work.
    pub fn new(on_event: &'a (dyn Fn(&Event<'_>) -> ControlFlow<()> + Sync)) -> Self {
        Self { stop: StopHandle::default(), on_event: Some(on_event) }
    }

    /// The same work, stopped by this handle.
    #[must_use]
    pub fn with_stop(mut self, stop: StopHandle) -> Self {
        self.stop = stop;
        self
    }

    /// A handle that stops the work.
    pub fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// Whether the work has been asked to stop.
    pub fn is_stopped(&self) -> bool {
        self.stop.is_stopped()
    }

    pub(crate) fn stop(&self) -> &StopHandle {
        &self.stop
    }

    /// Reports an event; returns whether to go on.
    pub(crate) fn tell(&self, event: &Event<'_>) -> ControlFlow<()> {
        if self.on_event.is_some_and(|tell| tell(event).is_break()) {
            self.stop.stop();
        }
        if self.stop.is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    pub(crate) fn warn(&self, text: &str) {
        let _ = self.tell(&Event::Warning { text });
    }

    pub(crate) fn note(&self, text: &str) {
        let _ = self.tell(&Event::Note { text });
    }

    pub(crate) fn step(&self, what: &str) {
        let _ = self.tell(&Event::Step { what });
    }
}
