//! The records of a text table: comma, semicolon, tab or bar between fields, or words between blanks.

use std::borrow::Cow;
use std::path::Path;

use super::malformed;
use crate::error::{TaxonomyError, excerpt};

/// What may stand between fields, the likeliest first.
const DELIMITERS: [char; 4] = ['\t', ',', ';', '|'];
/// Lines that are looked at to tell which one does.
const LINES_COUNTED: usize = 50;

/// What separates the fields of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Delimited(char),
    Words,
}

impl Form {
    /// The delimiter that the first line has and that most lines have as often; words where it has none.
    fn of(text: &str) -> Self {
        let mut lines = text.lines().filter(|line| !is_skipped(line)).take(LINES_COUNTED);
        let Some(first) = lines.next() else { return Self::Words };
        let lines: Vec<&str> = lines.collect();
        let agreeing = |delimiter: char| {
            let wanted = outside_quotes(first, delimiter);
            let agree = |line: &&&str| outside_quotes(line, delimiter) == wanted;
            if wanted == 0 { 0 } else { 1 + lines.iter().filter(agree).count() }
        };
        let mut best = (0, Self::Words);
        for delimiter in DELIMITERS {
            let agreeing = agreeing(delimiter);
            if agreeing > best.0 {
                best = (agreeing, Self::Delimited(delimiter));
            }
        }
        if best.0 == 0 && first.contains('"') { Self::Delimited(',') } else { best.1 }
    }
}

/// How often a delimiter separates fields of a line.
fn outside_quotes(line: &str, delimiter: char) -> usize {
    line.split('"').step_by(2).map(|part| part.matches(delimiter).count()).sum()
}

/// Walks over the records of a text, counting lines.
pub(super) struct Records<'a> {
    rest: &'a str,
    path: &'a Path,
    line: u64,
    pub(super) form: Form,
}

impl<'a> Records<'a> {
    pub(super) fn new(text: &'a str, path: &'a Path) -> Self {
        // Spreadsheets may say what they put between fields: `sep=;`.
        let (first, after) = text.split_once('\n').unwrap_or((text, ""));
        match first.trim_end().strip_prefix("sep=").map(|mark| mark.chars().collect::<Vec<_>>()).as_deref() {
            Some([mark]) => Self { rest: after, path, line: 1, form: Form::Delimited(*mark) },
            _ => Self { rest: text, path, line: 0, form: Form::of(text) },
        }
    }

    /// Fills `fields` with the next record and returns its line.
    pub(super) fn next(&mut self, fields: &mut Vec<Cow<'a, str>>) -> Result<Option<u64>, TaxonomyError> {
        fields.clear();
        while !self.rest.is_empty() {
            let (line, after) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
            self.line += 1;
            let start = self.line;
            if is_skipped(line) {
                self.rest = after;
                continue;
            }
            match self.form {
                Form::Words => {
                    fields.extend(line.split_whitespace().map(Cow::Borrowed));
                    self.rest = after;
                }
                Form::Delimited(delimiter) if !line.contains('"') => {
                    let line = line.strip_suffix('\r').unwrap_or(line);
                    fields.extend(line.split(delimiter).map(Cow::Borrowed));
                    self.rest = after;
                }
                Form::Delimited(delimiter) => self.quoted(delimiter, fields)?,
            }
            return Ok(Some(start));
        }
        Ok(None)
    }

    /// A record with quotes, which may go over several lines.
    fn quoted(&mut self, delimiter: char, fields: &mut Vec<Cow<'a, str>>) -> Result<(), TaxonomyError> {
        let start = self.line;
        loop {
            let trimmed = self.rest.trim_start_matches(' ');
            if let Some(mut inside) = trimmed.strip_prefix('"') {
                let mut field = String::new();
                loop {
                    let Some(end) = inside.find('"') else {
                        return Err(malformed(
                            self.path,
                            Some(start),
                            "a quote (\") is opened but not closed",
                        ));
                    };
                    field.push_str(&inside[..end]);
                    inside = &inside[end + 1..];
                    if let Some(more) = inside.strip_prefix('"') {
                        field.push('"');
                        inside = more;
                    } else {
                        break;
                    }
                }
                self.line += field.matches('\n').count() as u64;
                let end = inside.find([delimiter, '\n']).unwrap_or(inside.len());
                if !inside[..end].trim().is_empty() {
                    let message = format!("text after a closing quote: {}", excerpt(&inside[..end]));
                    return Err(malformed(self.path, Some(self.line), message));
                }
                fields.push(Cow::Owned(field));
                self.rest = &inside[end..];
            } else {
                let end = self.rest.find([delimiter, '\n']).unwrap_or(self.rest.len());
                fields.push(Cow::Borrowed(&self.rest[..end]));
                self.rest = &self.rest[end..];
            }
            if let Some(more) = self.rest.strip_prefix(delimiter) {
                self.rest = more;
            } else {
                self.rest = self.rest.strip_prefix('\n').unwrap_or(self.rest);
                return Ok(());
            }
        }
    }
}

fn is_skipped(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || line.starts_with('#')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delimiter_is_the_one_that_lines_agree_on() {
        for (text, form) in [
            ("a,b\nc,d\n", Form::Delimited(',')),
            ("a;b\nc;d\n", Form::Delimited(';')),
            ("a\tb, c\n", Form::Delimited('\t')),
            ("apple, red;fruit\npear;fruit\nplum;fruit\n", Form::Delimited(';')),
            ("\"apple; red\",fruit\npear,fruit\n", Form::Delimited(',')),
            ("a|b\n", Form::Delimited('|')),
            ("\"a b\"\n", Form::Delimited(',')),
            ("# a, comment\nanimal cat\n", Form::Words),
            ("", Form::Words),
        ] {
            assert_eq!(Form::of(text), form, "{text:?}");
        }
        let mut fields = Vec::new();
        let mut records = Records::new("sep=;\na;b, c\n", Path::new("x"));
        assert_eq!(records.next(&mut fields).unwrap(), Some(2));
        assert_eq!(fields, ["a", "b, c"]);
    }
}
