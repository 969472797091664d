//! `gpn train` and `gpn eval` as a user meets them: killed, interrupted, out of disk, and resumed.

use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::command::{command, failure, gpn, stderr, success};
use crate::teach::benchmark;

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

/// The bytes of the model that a run ships.
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
    for file in ["config.toml", "run.json", "model_card.md"] {
        assert!(folder.join("killed").join(file).is_file(), "{file}");
    }
    let last = |run: &str| fs::read(folder.join(run).join("last.safetensors")).unwrap();
    assert!(last("killed") == last("whole"));
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
    let eval = ["eval", "whole", "--data", "data", "--tasks", "5", "--queries", "2", "--json"];
    let output = success(folder, &[&eval[..], &["--csv", "tasks.csv"]].concat());
    let report: serde_json::Value = serde_json::from_str(&output).unwrap();
    assert_eq!(report["per_task"].as_array().unwrap().len(), 5);
    assert_eq!(fs::read_to_string(folder.join("tasks.csv")).unwrap().lines().count(), 6);
    let compared = success(folder, &[&eval[..], &["--against", "tasks.csv"]].concat());
    let compared: serde_json::Value = serde_json::from_str(&compared).unwrap();
    assert_eq!(compared["against"]["mean"], 0.0, "a run does not differ from itself");
    let fewer =
        ["eval", "whole", "--data", "data", "--tasks", "4", "--queries", "2", "--against", "tasks.csv"];
    assert!(failure(folder, &fewer).contains("it holds 5 tasks, but 4 are evaluated"));
    // As many tasks, but others.
    for other in [&["--seed", "1"][..], &["--split", "far"], &["--way", "4"], &["--sampling", "snowball"]] {
        let message = failure(folder, &[&eval[..], other, &["--against", "tasks.csv"]].concat());
        assert!(message.contains("tasks.csv: its task 0 is not the one that is evaluated here"), "{message}");
    }
    let unmarked = "task,base,method,mixed\n".to_owned() + &"0,1.0,2.0,3.0\n".repeat(5);
    fs::write(folder.join("unmarked.csv"), unmarked).unwrap();
    let message = failure(folder, &[&eval[..], &["--against", "unmarked.csv"]].concat());
    assert!(message.contains("it does not say which tasks it holds"), "{message}");
    let fingerprint = |report: &serde_json::Value| report["fingerprint"].as_str().unwrap().to_owned();
    assert_eq!(fingerprint(&report), fingerprint(&compared));
    let elsewhere = success(folder, &[&eval[..], &["--seed", "1"]].concat());
    assert_ne!(fingerprint(&report), fingerprint(&serde_json::from_str(&elsewhere).unwrap()));
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

/// Files in the checkpoints of a run whose name begins so.
fn checkpoints(folder: &Path, run: &str, prefix: &str) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder.join(run).join("checkpoints"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(prefix))
        .collect();
    names.sort();
    names
}

fn metrics(folder: &Path, run: &str) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(folder.join(run).join("metrics.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The episode of the model at `file`, as `gpn eval` tells it.
fn episode_of(folder: &Path, file: &str, data: &str) -> serde_json::Value {
    let eval = ["eval", file, "--data", data, "--tasks", "2", "--way", "2", "--queries", "2", "--json"];
    let report: serde_json::Value = serde_json::from_str(&success(folder, &eval)).unwrap();
    report["episode"].clone()
}

#[test]
fn the_best_model_on_validation_is_shipped() {
    let folder = with_run();
    // A method with one accuracy, which the metrics hold.
    let settings = ["--method", "protonet", "--set", "validation.every=4", "--set", "validation.tasks=60"];
    success(folder, &[&["train", "--data", "data", "--out", "proto"], &SETTINGS[..10], &settings].concat());
    let mut best = (0, 0.0);
    for line in metrics(folder, "proto") {
        let accuracy = line["validation"].as_f64().unwrap_or(0.0);
        if accuracy > best.1 {
            best = (line["episode"].as_u64().unwrap(), accuracy);
        }
    }
    assert_eq!(episode_of(folder, "proto", "data"), best.0);
    let shipped = model(folder, "proto");
    let kept = folder.join(format!("proto/checkpoints/best-{:010}.safetensors", best.0));
    assert!(shipped == fs::read(kept).unwrap());

    // Interrupted before the end: the same bytes.
    for name in checkpoints(folder, "proto", "0000000040") {
        fs::remove_file(folder.join("proto/checkpoints").join(name)).unwrap();
    }
    fs::remove_file(folder.join("proto/model.safetensors")).unwrap();
    success(folder, &["train", "--resume", "proto"]);
    assert!(shipped == model(folder, "proto"));

    // Without validation the last is the model.
    let none = ["--set", "validation.tasks=0"];
    success(folder, &[&["train", "--data", "data", "--out", "unvalidated"], &SETTINGS[..10], &none].concat());
    let last = fs::read(folder.join("unvalidated/last.safetensors")).unwrap();
    assert!(model(folder, "unvalidated") == last);
    assert!(checkpoints(folder, "unvalidated", "best").is_empty());
}

#[test]
fn the_last_model_is_kept_beside_the_best() {
    // A network without weights is as good after every episode: the first result stays the best.
    let folder = benchmark(&["--val-share=0.5"]);
    let folder = folder.path();
    let output = gpn(
        folder,
        &[
            "train",
            "--data=bench",
            "--out=run",
            "--method=protonet",
            "--set=model.backbone=identity",
            "--set=task.way=3",
            "--set=validation.every=4",
            "--set=validation.tasks=5",
            "--episodes=10",
        ],
    );
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{message}");
    assert_eq!(episode_of(folder, "run", "bench"), 4);
    assert_eq!(episode_of(folder, "run/last.safetensors", "bench"), 10);
    assert!(
        message.contains("model.safetensors, the best on validation tasks, after episode 4:"),
        "{message}"
    );
    assert!(message.contains("last.safetensors, after the last episode, 10:"), "{message}");
    let card = fs::read_to_string(folder.join("run/model_card.md")).unwrap();
    assert!(card.contains("4 of 10 episodes (the best on validation tasks)"), "{card}");
    assert!(card.contains("`last.safetensors` beside it is the one after the last episode, 10"), "{card}");
}

#[test]
fn a_finished_run_is_made_longer() {
    let folder = with_run();
    let run = [&["train", "--data", "data", "--out", "long"], &SETTINGS[..]].concat();
    success(folder, &run);
    let first = model(folder, "long");
    let message = failure(folder, &["train", "--resume", "long", "--episodes", "39"]);
    assert!(message.contains("39 episodes: long has 40 episodes behind it"), "{message}");
    assert!(model(folder, "long") == first, "a refused wish changes nothing");
    success(folder, &["train", "--resume", "long", "--episodes", "52"]);
    assert_eq!(metrics(folder, "long").last().unwrap()["episode"], 52);
    // Lambda goes on under the new total: it falls to 0 at the new end.
    let lambda = |episode: u64| {
        let lines = metrics(folder, "long");
        lines.iter().find(|line| line["episode"] == episode).unwrap()["lambda"].as_f64().unwrap()
    };
    assert!((lambda(45) - (1.0 - 45.0 / 52.0)).abs() < 1e-6 && lambda(52).abs() < 1e-6);
    let config = fs::read_to_string(folder.join("long/config.toml")).unwrap();
    assert!(config.contains("episodes = 52"), "{config}");

    // Interrupted on the way to the new end, it ends with the same bytes.
    success(folder, &[&["train", "--data", "data", "--out", "longer"], &SETTINGS[..]].concat());
    let mut child = command(folder, &["train", "--resume", "longer", "--episodes", "52"]).spawn().unwrap();
    while checkpoints(folder, "longer", "0000000044").is_empty() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    success(folder, &["train", "--resume", "longer"]);
    for file in ["model.safetensors", "last.safetensors"] {
        let of = |run: &str| fs::read(folder.join(run).join(file)).unwrap();
        assert!(of("longer") == of("long"), "{file}");
    }
}

#[test]
fn a_run_that_is_not_finished_is_evaluated() {
    let folder = with_run();
    let eval = |run: &str| gpn(folder, &["eval", run, "--data", "data", "--tasks", "2", "--queries", "2"]);
    // A stopped run is one whose last checkpoint and models are not there.
    for (run, tasks) in [("halfway", "validation.tasks=4"), ("blind", "validation.tasks=0")] {
        let settings = [&SETTINGS[..10], &["--set", tasks, "--set", "validation.every=8"]].concat();
        success(folder, &[&["train", "--data", "data", "--out", run], &settings[..]].concat());
        for name in checkpoints(folder, run, "0000000040") {
            fs::remove_file(folder.join(run).join("checkpoints").join(name)).unwrap();
        }
        fs::remove_file(folder.join(run).join("model.safetensors")).unwrap();
    }
    let output = eval("halfway");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("halfway: its training is not finished; the best model so far"));
    let output = eval("blind");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let expected =
        "blind: its training is not finished; its newest checkpoint is evaluated, after episode 36 of 40";
    assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    let message = failure(folder, &["classes", "halfway"]);
    assert!(
        message.contains(
            "halfway: its training is not finished; go on with `gpn train --resume halfway`, or name its best"
        ),
        "{message}"
    );
    fs::remove_dir_all(folder.join("blind/checkpoints")).unwrap();
    assert!(
        failure(folder, &["eval", "blind", "--data", "data"]).contains("blind: it has no checkpoint yet")
    );
}

#[test]
fn a_short_run_leaves_metrics() {
    let folder = with_run();
    let short = ["--episodes", "3", "--set", "validation.tasks=0", "--set", "memory.samples=2"];
    success(folder, &[&["train", "--data", "data", "--out", "short"], &short[..]].concat());
    let lines = metrics(folder, "short");
    assert_eq!((lines.len(), &lines[0]["episode"]), (1, &serde_json::json!(3)));
    assert!(lines[0]["auxiliary_loss"].is_f64() || lines[0]["loss"].is_f64(), "{lines:?}");
}

#[test]
fn evaluation_of_nothing_is_refused_and_warnings_are_counted() {
    let folder = with_run();
    let output = gpn(folder, &["eval", "whole", "--data", "data", "--tasks", "0"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("give a whole number of at least 1"), "{}", stderr(&output));
    let output = gpn(folder, &["eval", "whole", "--data", "data", "--tasks", "1", "--queries", "20"]);
    let message = stderr(&output);
    assert_eq!((output.status.code(), message.matches("warning:").count()), (Some(0), 1), "{message}");
    assert!(
        message.contains("classes have fewer than the 21 samples") && message.contains(" more"),
        "{message}"
    );
}
