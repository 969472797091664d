//! Text from files and users, made fit to be shown: ids, names and file names may hold anything.
//!
//! A terminal obeys control characters: an escape sequence in a class name can repaint lines that were printed before it,
//! and a bidirectional override shows a file name backwards. Such characters, and those that cannot be seen, are shown as
//! escapes (`\x1b`, `\u{202e}`). Everything that this program prints goes through [`terminal`](crate::terminal), which uses
//! these functions.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Characters of a table's cell.
const CELL: usize = 100;
/// Characters of a line of a message.
const MESSAGE_LINE: usize = 1_000;
/// What a shortened text has in place of its middle.
const GAP: &str = "...";

/// Whether a character acts on the terminal or on the text around it, or cannot be seen.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' // soft hyphen
            | '\u{61c}' | '\u{180e}'
            | '\u{200b}'..='\u{200f}' // zero width, left-to-right and right-to-left marks
            | '\u{2028}'..='\u{202e}' // line and paragraph separators, bidirectional embeddings and overrides
            | '\u{2060}'..='\u{206f}' // word joiner, invisible operators, bidirectional isolates
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' // interlinear annotations
            | '\u{e0000}'..='\u{e007f}') // tags
}

/// The text with every hidden character that `keep` does not keep replaced by what `escape` writes.
fn escaped(text: &str, keep: impl Fn(char) -> bool, escape: impl Fn(&mut String, char)) -> Cow<'_, str> {
    let hidden = |c: char| is_hidden(c) && !keep(c);
    if !text.contains(hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if hidden(c) { escape(&mut shown, c) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

fn as_rust_writes(out: &mut String, c: char) {
    // invariant: writing to a string does not fail.
    match c {
        '\n' | '\r' | '\t' => write!(out, "{}", c.escape_default()).unwrap(),
        _ if c.is_ascii() => write!(out, "\\x{:02x}", u32::from(c)).unwrap(),
        _ => write!(out, "{}", c.escape_unicode()).unwrap(),
    }
}

/// The text on one line, for a cell of a table or a name within a sentence.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false, as_rust_writes)
}

/// The text with its lines and tabs.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c == '\n' || c == '\t', as_rust_writes)
}

/// JSON with the hidden characters of its strings written as JSON writes them: another form of the same data.
pub(crate) fn json(text: &str) -> Cow<'_, str> {
    escaped(
        text,
        |c| c == '\n',
        |out, c| {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // invariant: writing to a string does not fail.
                write!(out, "\\u{unit:04x}").unwrap();
            }
        },
    )
}

/// A name or another short text on one line, its middle left out where it is long.
pub(crate) fn cell(text: &str) -> String {
    // What is left out is not escaped first: a name may have millions of characters.
    let shortened = shortened(text, CELL);
    match one_line(&shortened) {
        Cow::Owned(escaped) => self::shortened(&escaped, CELL).into_owned(),
        Cow::Borrowed(text) => text.to_owned(),
    }
}

/// A message: long lines shortened, and every line after the first set in, so that no text from a file can pass for a
/// message of its own.
pub(crate) fn message(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            shown.push('\n');
            if !line.starts_with(' ') && !line.is_empty() {
                shown.push_str("  ");
            }
        }
        shown.push_str(&lines(&shortened(line, MESSAGE_LINE)));
    }
    shown
}

/// The text without its middle where it has more than `most` characters: a message says where at its beginning and what to do
/// at its end.
fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most || text.chars().nth(most).is_none() {
        return Cow::Borrowed(text);
    }
    let (first, last) = ((most - GAP.len()) * 2 / 3, (most - GAP.len()).div_ceil(3));
    let begin = text.char_indices().nth(first).map_or(text.len(), |(at, _)| at);
    let end = text.char_indices().rev().nth(last - 1).map_or(0, |(at, _)| at);
    Cow::Owned(format!("{}{GAP}{}", &text[..begin], &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_a_terminal_is_shown_as_an_escape() {
        let name = "a\x1b[31m\x07\rb\u{85}\u{202e}c\u{2066}\u{200b}\u{feff}\u{e0041}\x7f\n\t";
        let shown = one_line(name);
        assert_eq!(
            shown,
            "a\\x1b[31m\\x07\\rb\\u{85}\\u{202e}c\\u{2066}\\u{200b}\\u{feff}\\u{e0041}\\x7f\\n\\t"
        );
        assert!(!shown.chars().any(is_hidden));
        assert!(lines(name).ends_with("\\x7f\n\t"), "lines stay lines");
        let plain = "Übung \u{4e2d}\u{6587} \u{1f427} \u{627}\u{644} C:\\x 'q'";
        assert!(matches!(one_line(plain), Cow::Borrowed(text) if text == plain));
    }

    #[test]
    fn json_stays_the_same_data() {
        let value = serde_json::json!({ "name\u{202e}": ["\u{9b}31m\u{e0041}", "plain \u{4e2d}\n"] });
        let text = format!("{value:#}\n");
        let shown = json(&text);
        assert!(!shown.chars().any(|c| is_hidden(c) && c != '\n'), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
        assert!(shown.contains("\\u202e") && shown.contains("\\u009b"), "{shown}");
    }

    #[test]
    fn long_texts_keep_their_beginning_and_their_end() {
        let long = format!("begin {} end", "\u{e9}".repeat(70_000));
        let shown = cell(&long);
        assert_eq!(shown.chars().count(), CELL);
        assert!(
            shown.starts_with("begin \u{e9}") && shown.contains("\u{e9}...\u{e9}") && shown.ends_with(" end")
        );
        assert_eq!(cell(&"\x1b".repeat(70_000)).chars().count(), CELL);
        assert_eq!(cell(&"x".repeat(CELL)), "x".repeat(CELL));
        assert!(message(&long).chars().count() == MESSAGE_LINE && message(&long).ends_with(" end"));
    }

    #[test]
    fn a_text_cannot_pass_for_a_message_of_its_own() {
        assert_eq!(message("a\nerror: forged\n  b"), "a\n  error: forged\n  b");
    }
}
