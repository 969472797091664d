//! Long work: it runs beside the calling thread, which meanwhile looks for signals and calls back.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

use gpn::{Event, StopHandle, Watch};
use pyo3::prelude::*;
use serde_json::Value;

use crate::convert::to_py;
use crate::errors::{Fault, bug};
use crate::panics;

/// Time between two looks for signals.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Who is told what happens.
#[derive(Default)]
pub(crate) struct Listener {
    callback: Option<Py<PyAny>>,
}

impl Listener {
    /// Calls `callback` with every event, and shows a bar where `progress` asks for one.
    pub(crate) fn new(py: Python<'_>, callback: Option<Py<PyAny>>, progress: bool) -> PyResult<Self> {
        if !progress {
            return Ok(Self { callback });
        }
        let with_bar = py.import("gpn._progress")?.call_method1("with_bar", (callback,))?;
        Ok(Self { callback: Some(with_bar.unbind()) })
    }
}

/// An event on its way to Python; where an answer is awaited, it says whether to go on.
struct Message {
    event: Value,
    answer: Option<SyncSender<bool>>,
}

/// Runs `work` in a thread of its own, without the lock of the interpreter. An interrupt or an exception of the callback stops
/// the work and is raised once it has ended; a callback that returns `False` stops it as well.
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    listener: &Listener,
    stop: &StopHandle,
    work: impl FnOnce(&Watch<'_>) -> gpn::Result<T> + Send,
) -> PyResult<T> {
    let (sender, receiver) = channel::<Message>();
    let receiver = Mutex::new(receiver);
    let awaits_answers = listener.callback.is_some();
    let mut raised = None;
    let outcome = std::thread::scope(|scope| {
        let handle = scope.spawn(move || {
            let tell = |event: &Event<'_>| tell(&sender, event, awaits_answers);
            let watch = Watch::new(&tell).with_stop(stop.clone());
            catch_unwind(AssertUnwindSafe(|| work(&watch)))
        });
        loop {
            let next = py.detach(|| {
                // invariant: no other thread takes this lock, so it is not poisoned.
                receiver.lock().unwrap().recv_timeout(LOOK_EVERY)
            });
            let handled = match next {
                Ok(message) => handle_message(py, listener, stop, message),
                Err(RecvTimeoutError::Timeout) => Ok(()),
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if let Err(error) = handled.and_then(|()| py.check_signals()) {
                stop.stop();
                raised.get_or_insert(error);
            }
        }
        py.detach(|| handle.join())
    });
    if let Some(error) = raised {
        return Err(error);
    }
    match outcome {
        Ok(Ok(outcome)) => outcome.map_err(|error| Fault::from(error).into()),
        Ok(Err(_)) | Err(_) => Err(bug(&panics::last())),
    }
}

/// Sends an event on; without a callback only what is logged.
fn tell(sender: &Sender<Message>, event: &Event<'_>, awaits_answers: bool) -> ControlFlow<()> {
    let is_logged = !matches!(event, Event::Stored { .. } | Event::Episode { report: None, .. });
    if !awaits_answers && !is_logged {
        return ControlFlow::Continue(());
    }
    let Ok(event) = serde_json::to_value(event) else { return ControlFlow::Continue(()) };
    if !awaits_answers {
        let _ = sender.send(Message { event, answer: None });
        return ControlFlow::Continue(());
    }
    let (answer, answered) = sync_channel(1);
    let _ = sender.send(Message { event, answer: Some(answer) });
    // Where nobody answers, the caller is gone and the work ends.
    if answered.recv().unwrap_or(false) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}

fn handle_message(
    py: Python<'_>,
    listener: &Listener,
    stop: &StopHandle,
    Message { event, answer }: Message,
) -> PyResult<()> {
    let told = log(py, &event).and_then(|()| match &listener.callback {
        Some(callback) if !stop.is_stopped() => callback.call1(py, (to_py(py, &event)?,)).map(Some),
        _ => Ok(None),
    });
    let goes_on = match &told {
        Ok(Some(returned)) => !returned.bind(py).is(pyo3::types::PyBool::new(py, false)),
        Ok(None) => true,
        Err(_) => false,
    };
    if !goes_on {
        stop.stop();
    }
    if let Some(answer) = answer {
        let _ = answer.send(goes_on);
    }
    told.map(|_| ())
}

/// Hands an event to the logger `gpn`.
fn log(py: Python<'_>, event: &Value) -> PyResult<()> {
    let text = |key: &str| event.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (level, text) = match event.get("event").and_then(Value::as_str) {
        Some("warning") => ("warning", text("text")),
        Some("note") => ("info", text("text")),
        Some("step") => ("info", text("what")),
        Some("episode") if !event["report"].is_null() => ("debug", event["report"].to_string()),
        _ => return Ok(()),
    };
    let logger = py.import("logging")?.call_method1("getLogger", ("gpn",))?;
    logger.call_method1(level, ("%s", text))?;
    Ok(())
}

/// Short work without the lock of the interpreter, in the calling thread.
pub(crate) fn unlocked<T: Send>(py: Python<'_>, work: impl FnOnce() -> gpn::Result<T> + Send) -> PyResult<T> {
    match py.detach(|| catch_unwind(AssertUnwindSafe(work))) {
        Ok(outcome) => outcome.map_err(|error| Fault::from(error).into()),
        Err(_) => Err(bug(&panics::last())),
    }
}
