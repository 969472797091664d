//! The library's progress on a person's screen, and Ctrl-C as a way to stop it.

use std::ops::ControlFlow;
use std::sync::{Mutex, OnceLock, PoisonError};

use gpn::{Event, StopHandle, TrainingReport, Watch, time_shares};

use crate::terminal::{self, Progress};

/// Shows what happens in `work`: bars, lines and warnings. The first Ctrl-C stops it where it can go on later, the second ends
/// the process at once.
pub(crate) fn watched<R>(work: impl FnOnce(&Watch<'_>) -> R) -> anyhow::Result<R> {
    let stop = stop_by_signal("stopping; interrupt again to stop at once")?;
    let screen = Screen::default();
    let show = |event: &Event<'_>| screen.show(event);
    let watch = Watch::new(&show).with_stop(stop.clone());
    Ok(work(&watch))
}

/// The same for a process of several that shows nothing, but can be stopped.
pub(crate) fn unwatched<R>(work: impl FnOnce(&Watch<'_>) -> R) -> anyhow::Result<R> {
    let stop = stop_by_signal("")?;
    Ok(work(&Watch::default().with_stop(stop.clone())))
}

/// The same for the process of several that shows what happens. `on_signal` says what a signal means for all of them.
pub(crate) fn watched_as_first<R>(
    on_signal: &'static str,
    work: impl FnOnce(&Watch<'_>) -> R,
) -> anyhow::Result<R> {
    stop_by_signal(on_signal)?;
    watched(work)
}

/// The handle that Ctrl-C stops, one for the whole process. The first call decides what is said then.
fn stop_by_signal(message: &'static str) -> anyhow::Result<&'static StopHandle> {
    static STOP: OnceLock<StopHandle> = OnceLock::new();
    if let Some(stop) = STOP.get() {
        return Ok(stop);
    }
    let stop = STOP.get_or_init(StopHandle::default);
    ctrlc::set_handler(move || {
        if stop.is_stopped() {
            std::process::exit(130);
        }
        stop.stop();
        if !message.is_empty() {
            terminal::say(message);
        }
    })?;
    Ok(stop)
}

/// The bar of the work under way.
#[derive(Default)]
struct Screen {
    bar: Mutex<Option<(&'static str, Progress)>>,
}

impl Screen {
    fn show(&self, event: &Event<'_>) -> ControlFlow<()> {
        match event {
            Event::Stored { done, total } => {
                self.with_bar("storing samples", |bar| bar.update(*done, *total));
            }
            Event::Encoded { done, total } => {
                self.with_bar("encoding samples", |bar| bar.update(*done, *total));
                if done == total {
                    self.end_bar();
                }
            }
            Event::Episode { done, total, report, time } => {
                self.with_bar("training", |bar| bar.update(*done as usize, *total as usize));
                if let Some(report) = report {
                    self.with_bar("training", |bar| {
                        bar.note(&summary(report, time.as_ref()));
                        bar.say(&line(report));
                    });
                }
                if done == total {
                    self.end_bar();
                    if let Some(time) = time.filter(|time| !time.total().is_zero()) {
                        let parts: Vec<String> =
                            time_shares(&time).map(|(name, share)| format!("{name} {share:.0}%")).collect();
                        let seconds = time.total().as_secs_f64();
                        terminal::say(&format!("time: {seconds:.0} s: {}", parts.join(", ")));
                    }
                }
            }
            Event::Step { what } => {
                self.end_bar();
                terminal::step(what);
            }
            Event::Warning { text } => {
                self.end_bar();
                terminal::warn(text);
            }
            Event::Note { text } => {
                self.end_bar();
                terminal::say(text);
            }
        }
        ControlFlow::Continue(())
    }

    fn with_bar(&self, what: &'static str, show: impl FnOnce(&Progress)) {
        let mut bar = self.bar.lock().unwrap_or_else(PoisonError::into_inner);
        if bar.as_ref().is_none_or(|(shown, _)| *shown != what) {
            *bar = Some((what, Progress::new(what)));
        }
        if let Some((_, bar)) = &*bar {
            show(bar);
        }
    }

    fn end_bar(&self) {
        *self.bar.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// A report in a few words, for the bar.
fn summary(report: &TrainingReport, time: Option<&gpn::train::TimeSplit>) -> String {
    let result = report.tasks.as_ref().or(report.auxiliary.as_ref());
    let result = result.map_or(String::new(), |result| {
        format!("loss {:.3} accuracy {:.1}% ", result.loss, 100.0 * result.accuracy)
    });
    let Some(time) = time else { return result };
    let parts: Vec<String> = time_shares(time)
        .filter(|(name, _)| ["data", "backbone", "propagation", "memory"].contains(name))
        .map(|(name, share)| format!("{name} {share:.0}%"))
        .collect();
    format!("{result}[{}]", parts.join(" "))
}

/// A report as a line of text.
fn line(report: &TrainingReport) -> String {
    let result = |name: &str, result: &Option<gpn::train::StepResult>| {
        result.as_ref().map_or(String::new(), |result| {
            format!("  {name} loss {:.3} accuracy {:4.1}%", result.loss, 100.0 * result.accuracy)
        })
    };
    let validation = report.validation.map_or(String::new(), |[base, method]| {
        format!("  validation {:.1}% -> {:.1}%", base.mean, method.mean)
    });
    format!(
        "episode {}{}{}{validation}  lambda {:.2}  rate {:.1e}",
        report.episode,
        result("tasks", &report.tasks),
        result("auxiliary", &report.auxiliary),
        report.lambda,
        report.rate,
    )
}
