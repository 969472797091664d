//! What ids, names and file names can do to whoever reads the output: nothing.

use std::fs;
use std::path::Path;

use crate::command::{gpn, stderr, success};
use crate::teach::trained;

const HOSTILE: &str = "a\u{1b}]0;owned\u{7}\u{1b}[2J\r\u{9b}31mb\u{202e}c\u{2066}\u{200b}";

fn is_hidden(c: char) -> bool {
    (c.is_control() && c != '\n')
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Runs a command; neither of its streams may hold a hidden character.
fn harmless(folder: &Path, arguments: &[&str], code: i32) -> String {
    let output = gpn(folder, arguments);
    let (out, err) = (String::from_utf8(output.stdout.clone()).unwrap(), stderr(&output));
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {err}");
    assert!(!out.contains(is_hidden), "{arguments:?}: {out:?}");
    assert!(!err.contains(is_hidden), "{arguments:?}: {err:?}");
    out + &err
}

#[test]
fn hidden_characters_are_shown_as_escapes() {
    let folder = trained();
    let folder = folder.path();
    // Control characters are refused in taught names, but file names, labels and arguments have them.
    let name = "b\u{202e}c\u{2066}";
    let text =
        harmless(folder, &["teach", "m", "--class", name, "--parent", "group5", "a.npy", "--out", "m2"], 0);
    assert!(text.contains("b\\u{202e}c\\u{2066}"), "{text}");
    let text = harmless(folder, &["classes", "m2", "--taught"], 0);
    assert!(text.contains("b\\u{202e}c"), "{text}");
    let file = format!("{HOSTILE}.npy");
    fs::copy(folder.join("query.npy"), folder.join(&file)).unwrap();
    let text = harmless(folder, &["predict", "m2", &file, "--taught", "--explain"], 0);
    assert!(
        text.contains("a\\x1b]0;owned\\x07\\x1b[2J\\r\\u{9b}31mb\\u{202e}c\\u{2066}\\u{200b}.npy: row 1"),
        "{text}"
    );
    for arguments in [
        &["classes", HOSTILE][..],
        &["predict", "m2", HOSTILE],
        &["teach", "m", "--class", HOSTILE, "a.npy", "--out", "m3"],
        &["data", "info", HOSTILE],
        &["data", "build", "--source", HOSTILE, "--out", "x"],
        &["eval", "m2", "--data", HOSTILE],
    ] {
        let text = harmless(folder, arguments, 1);
        assert!(text.contains("\\u{9b}31mb\\u{202e}"), "{text}");
    }
    // What clap refuses is shown by us as well.
    for arguments in [&[HOSTILE][..], &["data", HOSTILE], &["classes", "m", "--taught", HOSTILE, "more"]] {
        harmless(folder, arguments, 2);
    }
    // Programs get the data as they are.
    let json = success(folder, &["classes", "m2", "--taught", "--json"]);
    let classes: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(classes[0]["name"], name);
    let csv = success(folder, &["predict", "m2", &file, "--taught", "--format", "csv"]);
    assert!(csv.contains(name) && csv.contains("\u{1b}[2J"), "{csv}");
}

#[test]
fn a_line_break_in_a_name_makes_no_message_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let text = harmless(folder.path(), &["data", "info", "x\nerror: all files are gone\nwarning: x"], 1);
    assert_eq!(
        text.lines().filter(|line| line.starts_with("error:") || line.starts_with("warning:")).count(),
        1
    );
}

#[test]
fn a_name_of_any_length_is_shown_short() {
    let folder = trained();
    let folder = folder.path();
    let name = "x".repeat(70_000);
    let text = success(folder, &["teach", "m", "--class", &name, "a.npy", "--out", "m2"]);
    assert!(text.contains("xxx...xxx") && text.len() < 1_000, "{}", text.len());
    for arguments in [
        &["classes", "m2"][..],
        &["classes", "m2", "--taught"],
        &["predict", "m2", "--taught", "--explain", "query.npy"],
    ] {
        let text = success(folder, arguments);
        assert!(text.contains("xxx...xxx") && text.len() < 10_000, "{arguments:?}: {}", text.len());
    }
    let json = success(folder, &["classes", "m2", "--taught", "--json"]);
    assert!(json.contains(&name), "data are whole");
    let output = gpn(folder, &["teach", "m2", "--class", &name, "a.npy", "--out", "m2"]);
    assert_eq!(output.status.code(), Some(1));
    let message = stderr(&output);
    assert!(message.contains("--more adds to them") && message.len() < 2_000, "{}", message.len());
}
