//! The command as a user meets it: exit codes, messages, output.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::command::{failure, gpn, stderr};

/// Three classes of embeddings and their edges.
fn small_data(folder: &Path) {
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (60, 2), }\n";
    header.extend((text.len() as u16).to_le_bytes());
    header.extend(text.as_bytes());
    header.extend((0..120_u8).flat_map(|i| f32::from(i).to_le_bytes()));
    fs::write(folder.join("x.npy"), header).unwrap();
    let labels: String = (0..60).map(|row| ["cat\n", "dog\n", "cup\n"][row % 3]).collect();
    fs::write(folder.join("x_labels.txt"), labels).unwrap();
    fs::write(folder.join("edges.csv"), "child,parent\ncat,animal\ndog,animal\nanimal,any\ncup,any\n")
        .unwrap();
}

const BUILD: [&str; 9] = [
    "data",
    "build",
    "--source",
    "embeddings:x.npy",
    "--taxonomy",
    "edges:edges.csv",
    "--images-per-leaf",
    "4",
    "--out=bench",
];

#[test]
fn wrong_usage_is_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        &["nonsense"][..],
        &["data", "build"],
        &["data", "build", "--source", "synthetic", "--out", "x", "--close", "4..1"],
        &["data", "build", "--source", "synthetic", "--out", "x", "--train-share", "2"],
        &["data", "info"],
    ] {
        let output = gpn(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).starts_with("error:"), "{}", stderr(&output));
    }
}

#[test]
fn build_and_info() {
    let folder = tempfile::tempdir().unwrap();
    small_data(folder.path());
    let output = gpn(folder.path(), &BUILD);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("60 embeddings of length 2") && text.contains("5 classes, 4 edges"), "{text}");
    assert!(text.contains("Close 1 to 4 hops"), "{text}");

    let output = gpn(folder.path(), &["data", "info", "bench", "--json", "--verify"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["manifest"]["counts"]["samples"], 60);
    assert_eq!(report["statistics"]["data_sets"].as_array().unwrap().len(), 3);

    let message = failure(folder.path(), &BUILD);
    assert!(message.contains("bench: it holds a benchmark already; pass --force"), "{message}");
    fs::write(folder.path().join("bench/classes.csv"), "changed").unwrap();
    let output = gpn(folder.path(), &[&BUILD[..], &["--force"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn messages_say_what_where_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    small_data(folder.path());
    let build = |source: &str, rest: &[&str]| {
        let message = failure(
            folder.path(),
            &[&["data", "build", "--out", "bench", "--source", source], rest].concat(),
        );
        assert!(!folder.path().join("bench").exists() && !folder.path().join("bench.partial").exists());
        message
    };
    let message = build("embedings:x.npy", &[]);
    assert!(message.contains("did you mean `embeddings`?"), "{message}");
    let message = build("embeddings:x.npy", &[]);
    assert!(message.contains("name one with --taxonomy"), "{message}");
    let message = build("embeddings:missing.npy", &["--taxonomy", "edges:edges.csv"]);
    assert!(message.contains("missing.npy") && message.matches("No such file").count() == 1, "{message}");
    let message = build("embeddings:x.npy", &["--taxonomy", "edge:edges.csv"]);
    assert!(message.contains("`edges`"), "{message}");
    let message = build("embeddings:x.npy", &["--taxonomy", "edges:none.csv"]);
    assert!(message.contains("none.csv"), "{message}");

    fs::write(folder.path().join("cycle.csv"), "child,parent\ncat,dog\ndog,cup\ncup,cat\n").unwrap();
    let message = build("embeddings:x.npy", &["--taxonomy", "edges:cycle.csv"]);
    assert!(message.contains("cycle.csv") && message.contains("cycle: "), "{message}");
    fs::write(folder.path().join("typo.csv"), "child,parent\ncats,animal\ndog,animal\ncup,animal\n").unwrap();
    let message = build("embeddings:x.npy", &["--taxonomy", "edges:typo.csv"]);
    assert!(
        message.contains("taxonomy edges:typo.csv: unknown class: `cat` (did you mean `cats`?)"),
        "{message}"
    );
    let message = build("embeddings:x.npy", &["--taxonomy", "edges:edges.csv", "--far", "2..9"]);
    assert!(message.contains("change --close or --far"), "{message}");
    fs::write(folder.path().join("leaves.csv"), "cat\ndog\ncup\n").unwrap();
    let message = build("leaves:leaves.csv", &["--taxonomy", "edges:edges.csv"]);
    assert!(message.contains("pass --classes-only"), "{message}");

    let message = failure(folder.path(), &["data", "info", "nowhere"]);
    assert!(message.contains("nowhere") && message.contains("gpn data build"), "{message}");
    let message = failure(
        folder.path(),
        &["data", "build", "--out", ".", "--source", "embeddings:x.npy", "--taxonomy", "edges:edges.csv"],
    );
    assert!(message.contains("choose another directory"), "{message}");
}

#[test]
fn classes_without_samples_are_warned_about() {
    let folder = tempfile::tempdir().unwrap();
    small_data(folder.path());
    let edges = "child,parent\ncat,animal\ndog,animal\nanimal,any\ncup,any\nfish,animal\n";
    fs::write(folder.path().join("edges.csv"), edges).unwrap();
    let output = gpn(folder.path(), &BUILD);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let expected = "warning: 1 class of the taxonomy without samples below it is left out: fish";
    assert!(stderr(&output).contains(expected), "{}", stderr(&output));
}

#[test]
fn a_damaged_parquet_file_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    small_data(folder.path());
    let file = folder.path().join("x.parquet");
    for bytes in [&b"PAR1"[..], b"PAR1\0\0\0\0\xff\xff\xff\x7fPAR1", b"PAR1 \x15\x04\x19\x00\x04\0\0\0PAR1"] {
        fs::write(&file, bytes).unwrap();
        let arguments = [
            "data",
            "build",
            "--source",
            "embeddings:x.parquet",
            "--taxonomy",
            "edges:edges.csv",
            "--out",
            "b",
        ];
        let message = failure(folder.path(), &arguments);
        assert!(message.contains("x.parquet") && message.trim_end().lines().count() == 1, "{message}");
    }
}

#[test]
fn no_escape_codes_where_there_is_no_terminal() {
    let folder = tempfile::tempdir().unwrap();
    small_data(folder.path());
    for output in [gpn(folder.path(), &BUILD), gpn(folder.path(), &BUILD)] {
        assert!(!output.stdout.contains(&0x1b) && !output.stderr.contains(&0x1b), "{}", stderr(&output));
    }
    let output = Command::new(env!("CARGO_BIN_EXE_gpn"))
        .args(["data", "info", "nowhere"])
        .current_dir(folder.path())
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    assert!(stderr(&output).starts_with("error: nowhere"), "{}", stderr(&output));
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    small_data(folder.path());
    gpn(folder.path(), &BUILD);
    for arguments in [&["data", "info", "bench"][..], &["completions", "bash"], &["--help"]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_gpn"))
            .args(arguments)
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn the_demo_is_the_same_for_the_same_seed() {
    let folder = tempfile::tempdir().unwrap();
    let run = |out: &str| {
        let output = gpn(folder.path(), &["demo", "--out", out, "--seed", "3", "--episodes", "20"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        output.stdout
    };
    let first = run("demo");
    assert!(first == run("demo"), "a second run replaces the first and prints the same");
    assert!(String::from_utf8(first).unwrap().contains("GPN+: place in the graph known"));
    let report = fs::read_to_string(folder.path().join("demo/report.html")).unwrap();
    assert!(report.contains("Who told whom") && report.contains("data:image/png"));
}
