//! What a person sees: results, messages and progress. Nothing else in this program writes to standard output or error.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::printable;

/// A word before a message, and its style on a terminal.
type Mark<'a> = (&'a str, &'a str);

const ERROR: Mark<'_> = ("error:", "1;31");
const WARNING: Mark<'_> = ("warning:", "1;33");

/// Prints the one message of a failed command.
pub(crate) fn print_error(error: &anyhow::Error) {
    let text = with_causes(error);
    let text = crate::hints::hint(error).map_or(text.clone(), |hint| format!("{text}; {hint}"));
    write_message(Some(ERROR), &text);
}

/// The message with its causes, leaving out those it tells already.
fn with_causes(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// Prints what is wrong with the words that a user typed.
pub(crate) fn print_usage_error(error: &clap::Error) {
    let text = error.render().to_string();
    let text = printable::lines(text.trim_end());
    match text.strip_prefix("error: ") {
        Some(text) => write_line(Some(ERROR), text),
        None => write_line(None, &text),
    }
}

/// Prints one line about a fault of the program itself.
pub(crate) fn print_fault(panic: &std::panic::PanicHookInfo<'_>) {
    let place = panic.location().map_or_else(String::new, |place| format!(" at {place}"));
    let reason = panic.payload_as_str().unwrap_or("unknown reason");
    let reason = printable::one_line(reason);
    write_message(
        Some(ERROR),
        &format!("internal fault{place}: {reason}; please report this line with the command you ran"),
    );
}

/// Prints the heading of a step of several.
pub(crate) fn step(heading: &str) {
    write_message(Some((&printable::one_line(heading), "1")), "");
}

/// Prints a line that tells how the work goes.
pub(crate) fn say(message: &str) {
    write_message(None, message);
}

/// Prints something a user should know.
pub(crate) fn warn(message: &str) {
    write_message(Some(WARNING), message);
}

/// Items that a warning about many names one by one.
const NAMED: usize = 5;

/// The first few of many, for one warning instead of many: `a, b, c and 9 more`.
pub(crate) fn first_few<T: std::fmt::Display>(items: impl ExactSizeIterator<Item = T>) -> String {
    let more = items.len().saturating_sub(NAMED);
    let named: Vec<String> = items.take(NAMED).map(|item| printable::cell(&item.to_string())).collect();
    let named = named.join(", ");
    if more > 0 { format!("{named} and {} more", grouped(more)) } else { named }
}

/// A number of things, in words: `1 sample`, `12,000 samples`.
pub(crate) fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { many })
}

/// Writes a message to standard error. Log files are read on terminals too, so what a file or a user wrote is always made fit
/// to be shown.
fn write_message(mark: Option<Mark<'_>>, message: &str) {
    write_line(mark, &printable::message(message));
}

fn write_line(mark: Option<Mark<'_>>, shown: &str) {
    let text = match mark {
        Some((word, style)) if shown.is_empty() => painted(word, style),
        Some((word, style)) => format!("{} {shown}", painted(word, style)),
        None => shown.to_owned(),
    };
    // The work goes on when standard error is closed.
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn painted(text: &str, style: &str) -> String {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if plain || !std::io::stderr().is_terminal() {
        text.to_owned()
    } else {
        format!("\x1b[{style}m{text}\x1b[0m")
    }
}

/// Whether the reader of our output has gone away (`gpn ... | head`), which is no failure.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// Writes a result for people to standard output.
pub(crate) fn print_text(text: &str) -> anyhow::Result<()> {
    write_result(&printable::lines(text))
}

/// Writes a result for programs: as it is, except on a terminal.
pub(crate) fn print_data(text: &str) -> anyhow::Result<()> {
    if std::io::stdout().is_terminal() { print_text(text) } else { write_result(text) }
}

/// Writes JSON, or a part of it; on a terminal in a form that does nothing to it.
pub(crate) fn print_json(text: &str) -> anyhow::Result<()> {
    if std::io::stdout().is_terminal() { write_result(&printable::json(text)) } else { write_result(text) }
}

fn write_result(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Progress of work with a known end: a bar on a terminal, a line now and then elsewhere.
pub(crate) struct Progress {
    what: &'static str,
    bar: ProgressBar,
    last_line: Option<Mutex<Instant>>,
}

/// Time between two lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

impl Progress {
    pub(crate) fn new(what: &'static str) -> Self {
        let bar = ProgressBar::new(0);
        let style =
            ProgressStyle::with_template("{msg} {wide_bar} {human_pos}/{human_len} {per_sec} eta {eta}");
        // invariant: the template is a constant that parses.
        bar.set_style(style.unwrap());
        bar.set_message(what);
        let last_line = (!std::io::stderr().is_terminal()).then(|| Mutex::new(Instant::now()));
        Self { what, bar, last_line }
    }

    pub(crate) fn update(&self, done: usize, total: usize) {
        self.bar.set_length(total as u64);
        self.bar.set_position(done as u64);
        let Some(last_line) = &self.last_line else { return };
        let mut last_line = last_line.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if last_line.elapsed() >= LINE_EVERY {
            *last_line = Instant::now();
            say(&format!("{}: {done} of {total}", self.what));
        }
    }
}

impl Progress {
    /// Shows a few words beside the bar.
    pub(crate) fn note(&self, words: &str) {
        self.bar.set_message(printable::one_line(&format!("{} {words}", self.what)).into_owned());
    }

    /// Prints a line above the bar.
    pub(crate) fn say(&self, line: &str) {
        match &self.last_line {
            None => self.bar.println(printable::message(line)),
            Some(_) => say(line),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A number with thousands set apart: 100,320.
pub(crate) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!([0, 999, 1000, 100_320].map(grouped), ["0", "999", "1,000", "100,320"]);
    }

    #[test]
    fn a_cause_is_told_once() {
        let cause = || anyhow::anyhow!("disk full");
        assert_eq!(with_causes(&cause().context("cannot write: disk full")), "cannot write: disk full");
        assert_eq!(with_causes(&cause().context("cannot write")), "cannot write: disk full");
    }
}
