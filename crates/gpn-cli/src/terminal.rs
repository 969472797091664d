//! What a person sees: messages, progress and tables.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Prints the one message of a failed command.
pub(crate) fn print_error(error: &anyhow::Error) {
    eprintln!("{} {}", painted("error:", "1;31"), with_causes(error));
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

/// Prints one line about a fault of the program itself.
pub(crate) fn print_fault(panic: &std::panic::PanicHookInfo<'_>) {
    let place = panic.location().map_or_else(String::new, |place| format!(" at {place}"));
    let reason = panic.payload_as_str().unwrap_or("unknown reason").replace('\n', " ");
    // A closed standard error is no reason to panic again.
    let _ = writeln!(
        std::io::stderr(),
        "{} internal fault{place}: {reason}; please report this line with the command you ran",
        painted("error:", "1;31")
    );
}

/// Prints the heading of a step of several.
pub(crate) fn step(heading: &str) {
    eprintln!("{}", painted(heading, "1"));
}

/// Prints something a user should know.
pub(crate) fn warn(message: &str) {
    eprintln!("{} {message}", painted("warning:", "1;33"));
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

/// Writes a result to standard output.
pub(crate) fn print_result(text: &str) -> anyhow::Result<()> {
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
            eprintln!("{}: {done} of {total}", self.what);
        }
    }
}

impl Progress {
    /// Shows a few words beside the bar.
    pub(crate) fn note(&self, words: &str) {
        self.bar.set_message(format!("{} {words}", self.what));
    }

    /// Prints a line above the bar.
    pub(crate) fn say(&self, line: &str) {
        match &self.last_line {
            None => self.bar.println(line),
            Some(_) => eprintln!("{line}"),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A table of text: the first column to the left, all others to the right.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<const N: usize>(header: [&str; N]) -> Self {
        Self { rows: vec![header.map(str::to_owned).to_vec()] }
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let width =
            |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.rows[0].len()).map(width).collect();
        for (number, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let cell = if column == 0 { format!("{cell:<width$}") } else { format!("  {cell:>width$}") };
                line.push_str(&cell);
            }
            writeln!(f, "{}", line.trim_end())?;
            if number == 0 {
                writeln!(f, "{}", "-".repeat(line.chars().count()))?;
            }
        }
        Ok(())
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

/// Rows of text, every column to the left; the first row is the heading.
pub(crate) fn left_aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        let cells: Vec<String> =
            row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
        if number == 0 {
            text.push_str(&"-".repeat(widths.iter().sum::<usize>() + 2 * (N - 1)));
            text.push('\n');
        }
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

    #[test]
    fn columns_align() {
        let mut table = Table::new(["", "n"]);
        table.row(["train".into(), "1,234".into()]);
        table.row(["far".into(), "7".into()]);
        assert_eq!(table.to_string(), "           n\n------------\ntrain  1,234\nfar        7\n");
    }
}
