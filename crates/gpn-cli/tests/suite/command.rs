//! Running `gpn` in a folder.

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The command with its arguments, not yet started.
pub(crate) fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpn"));
    command
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

pub(crate) fn gpn(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Runs a command that must succeed; returns what it printed.
pub(crate) fn success(folder: &Path, arguments: &[&str]) -> String {
    let output = gpn(folder, arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command that must fail with exit code 1 and one error; returns it.
pub(crate) fn failure(folder: &Path, arguments: &[&str]) -> String {
    let output = gpn(folder, arguments);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {message}");
    assert_eq!(message.matches("error:").count(), 1, "{message}");
    assert!(!message.contains("panicked") && !message.contains("internal fault"), "{message}");
    message
}
