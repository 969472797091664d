//! Faults of this program: nothing is printed, the exception says what happened.

use std::sync::{Mutex, PoisonError};

static LAST: Mutex<String> = Mutex::new(String::new());

/// Keeps the text of a panic instead of printing it.
pub(crate) fn keep_quiet() {
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.payload_as_str().unwrap_or("no message");
        let place = panic.location().map(|place| format!(" ({}:{})", place.file(), place.line()));
        let text = format!("{text}{}", place.unwrap_or_default());
        *LAST.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }));
}

/// The text of the last panic.
pub(crate) fn last() -> String {
    LAST.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
