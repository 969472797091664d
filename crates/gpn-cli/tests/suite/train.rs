//! `gpn train` and `gpn eval` as a user meets them: killed, interrupted, out of disk, and resumed.

use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::command::{command, failure, success};

const EPISODES: &str = "train.episodes=40";
const SETTINGS: [&str; 12] = [
    "--set",
    EPISODES,
    "--set",
    "train.checkpoint_every=4",
    "--set",
    "train.log_every=5",
    "--set",
    "train.auxiliary_batch=8",
    "--set",
    "memory.samples=2",
    "--set",
    "validation.tasks=4",
];

/// A folder with a small benchmark `data` and a run `whole` that nothing disturbed, made once for all tests.
fn with_run() -> &'static Path {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let made = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let build = ["data", "build", "--source", "synthetic", "--images-per-leaf", "4", "--out", "data"];
        success(folder.path(), &build);
        success(folder.path(), &[&["train", "--data", "data", "--out", "whole"], &SETTINGS[..]].concat());
        folder
    });
    made.path()
}

fn model(folder: &Path, run: &str) -> Vec<u8> {
    fs::read(folder.join(run).join("model.safetensors")).unwrap()
}

/// Waits a moment that differs from round to round; whether the process still ran then.
fn still_runs_after(child: &mut Child, wait: Duration) -> bool {
    let started = Instant::now();
    while started.elapsed() < wait {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    child.try_wait().unwrap().is_none()
}

#[test]
fn a_killed_run_ends_with_the_same_bytes() {
    let folder = with_run();
    let expected = model(folder, "whole");
    let rounds: u64 =
        std::env::var("GPN_KILL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(4);
    let first = [&["train", "--data", "data", "--out", "killed"], &SETTINGS[..]].concat();
    let mut kills = 0;
    for round in 0..rounds {
        // A run that ended before it was killed begins again, so that every round kills.
        let resume = folder.join("killed/config.toml").exists();
        let arguments: &[&str] = if resume { &["train", "--resume", "killed"] } else { &first };
        let mut child = command(folder, arguments).spawn().unwrap();
        let wait = Duration::from_millis(40 + round * 7919 % 700);
        if still_runs_after(&mut child, wait) {
            child.kill().unwrap();
            kills += 1;
        }
        child.wait().unwrap();
        if folder.join("killed/model.safetensors").exists() {
            assert!(model(folder, "killed") == expected, "after {kills} kills");
            fs::remove_dir_all(folder.join("killed")).unwrap();
        }
    }
    let resume = folder.join("killed/config.toml").exists();
    let arguments: &[&str] = if resume { &["train", "--resume", "killed"] } else { &first };
    success(folder, arguments);
    assert!(model(folder, "killed") == expected, "after {kills} kills");
    assert!(kills > 0, "no round was slow enough to be killed");
    eprintln!("{kills} kills in {rounds} rounds");
    let lines = |run: &str| {
        let text = fs::read_to_string(folder.join(run).join("metrics.jsonl")).unwrap();
        text.lines().map(|line| line.split("\"lambda\"").next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(lines("killed").last(), lines("whole").last());
    for file in ["config.toml", "run.json", "model_card.md", "checkpoints/best.safetensors"] {
        assert!(folder.join("killed").join(file).is_file(), "{file}");
    }
}

#[cfg(unix)]
#[test]
fn a_full_disk_leaves_the_last_checkpoint_intact() {
    let folder = with_run();
    let copy = folder.join("copy");
    let run = [&["train", "--data", "data", "--out", "copy"], &SETTINGS[..]].concat();
    success(folder, &run);
    fs::remove_file(copy.join("model.safetensors")).unwrap();
    for old in fs::read_dir(copy.join("checkpoints")).unwrap() {
        let path = old.unwrap().path();
        if path.file_stem().is_some_and(|stem| stem == "0000000040") {
            fs::remove_file(path).unwrap();
        }
    }
    // Files may not grow beyond 50 kB; the signal for it is ignored, so that writing fails as on a full disk.
    let script =
        format!("trap '' XFSZ; ulimit -f 100; exec '{}' train --resume copy", env!("CARGO_BIN_EXE_gpn"));
    let output = Command::new("sh").args(["-c", &script]).current_dir(folder).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("error:") && message.contains("checkpoints"), "{message}");
    assert!(!message.contains("panicked") && !message.contains("internal fault"), "{message}");
    let leftovers: Vec<_> = fs::read_dir(copy.join("checkpoints"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.ends_with(".safetensors"))
        .collect();
    assert!(leftovers.is_empty(), "{leftovers:?}");
    success(folder, &["train", "--resume", "copy"]);
    assert!(model(folder, "copy") == model(folder, "whole"));
}

#[cfg(unix)]
#[test]
fn an_interrupt_saves_and_exits_with_0() {
    let folder = with_run();
    let run = [&["train", "--data", "data", "--out", "stopped"], &SETTINGS[..]].concat();
    let mut child = command(folder, &run).spawn().unwrap();
    let started = Instant::now();
    while !folder.join("stopped/metrics.jsonl").exists() && started.elapsed() < Duration::from_mins(1) {
        std::thread::sleep(Duration::from_millis(5));
    }
    Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    let status = child.wait().unwrap();
    assert!(status.success(), "{status}");
    success(folder, &["train", "--resume", "stopped"]);
    assert!(model(folder, "stopped") == model(folder, "whole"));
}

#[test]
fn evaluation_reports_tasks_and_refuses_what_does_not_fit() {
    let folder = with_run();
    let eval =
        ["eval", "whole", "--data", "data", "--tasks", "5", "--queries", "2", "--json", "--csv", "tasks.csv"];
    let output = success(folder, &eval);
    let report: serde_json::Value = serde_json::from_str(&output).unwrap();
    assert_eq!(report["per_task"].as_array().unwrap().len(), 5);
    assert_eq!(fs::read_to_string(folder.join("tasks.csv")).unwrap().lines().count(), 6);
    let compared = success(folder, &[&eval[..], &["--against", "tasks.csv"]].concat());
    let compared: serde_json::Value = serde_json::from_str(&compared).unwrap();
    assert_eq!(compared["against"]["mean"], 0.0, "a run does not differ from itself");
    let fewer =
        ["eval", "whole", "--data", "data", "--tasks", "4", "--queries", "2", "--against", "tasks.csv"];
    assert!(failure(folder, &fewer).contains("it holds 5 tasks, but 4 were evaluated"));
    let rest = [&eval[..], &["--rest", "3"]].concat();
    let with_rest = success(folder, &rest);
    assert_ne!(with_rest, output);

    success(
        folder,
        &[
            "data",
            "build",
            "--source",
            "synthetic",
            "--seed",
            "5",
            "--images-per-leaf",
            "4",
            "--out",
            "other",
        ],
    );
    for (arguments, expected) in [
        (&["eval", "whole", "--data", "other"][..], "trained on another benchmark"),
        (&["eval", "data", "--data", "data"], "model.safetensors"),
        (&["train", "--data", "data", "--out", "whole"], "holds a run already"),
        (&["train", "--resume", "data"], "it is no run"),
        (&["train", "--data", "data", "--out", "x", "--set", "task.wya=3"], "did you mean `task.way`?"),
        (&["train", "--data", "data", "--out", "x", "--method", "gpm"], "did you mean `gpn`?"),
        (&["eval", "whole", "--data", "data", "--way", "500"], "500-way"),
    ] {
        let message = failure(folder, arguments);
        assert!(message.contains(expected), "{arguments:?}: {message}");
    }
    assert!(!folder.join("x").exists());
}

#[test]
fn a_run_is_trained_by_one_process_at_a_time() {
    let folder = with_run();
    fs::create_dir_all(folder.join("alone/checkpoints")).unwrap();
    for file in ["config.toml", "run.json", "checkpoints/0000000040.safetensors"] {
        fs::copy(folder.join("whole").join(file), folder.join("alone").join(file)).unwrap();
    }
    let lock = fs::File::create(folder.join("alone/.lock")).unwrap();
    lock.lock().unwrap();
    let message = failure(folder, &["train", "--resume", "alone"]);
    assert!(message.contains("another process is training this run"), "{message}");
    // Its holder is killed: the file stays, the lock does not.
    drop(lock);
    success(folder, &["train", "--resume", "alone"]);
    assert!(!folder.join("alone/.lock").exists());
}
