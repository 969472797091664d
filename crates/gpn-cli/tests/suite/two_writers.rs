//! Two processes that write the same thing at once: nothing that was acknowledged is lost, and nobody ever sees a torn file.
//!
//! `GPN_WRITER_ROUNDS=500` makes as many rounds of each kind; the suite itself a few.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::command::{command, failure, stderr, success};
use crate::teach::trained;

fn rounds() -> u64 {
    std::env::var("GPN_WRITER_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(6)
}

/// Starts both commands, one right after the other, and waits for both.
fn both(folder: &Path, [first, second]: [&[&str]; 2]) -> [Output; 2] {
    let running = [first, second].map(|arguments| command(folder, arguments).spawn().unwrap());
    running.map(|child| child.wait_with_output().unwrap())
}

/// Whether a command came to a proper end: done, or refused with one error.
fn is_done(output: &Output) -> bool {
    let text = stderr(output);
    assert!(!text.contains("panicked") && !text.contains("internal fault"), "{text}");
    match output.status.code() {
        Some(0) => true,
        Some(1) if text.matches("error:").count() == 1 => false,
        other => panic!("{other:?}: {text}"),
    }
}

/// Names in a folder that begin with a dot: locks and parts.
fn hidden(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with('.')).collect()
}

/// The taught classes that a model lists.
fn taught(folder: &Path, model: &str) -> BTreeSet<String> {
    let report: serde_json::Value =
        serde_json::from_str(&success(folder, &["classes", model, "--json"])).unwrap();
    let taught = |class: &&serde_json::Value| class["kind"] == "taught";
    let id = |class: &serde_json::Value| class["id"].as_str().unwrap().to_owned();
    report.as_array().unwrap().iter().filter(taught).map(id).collect()
}

#[test]
fn classes_taught_in_place_at_once_are_all_there() {
    let folder = trained();
    let folder = folder.path();
    let mut expected = BTreeSet::new();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // A reader that sees every state of the file: each must be whole.
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                success(folder, &["classes", "m"]);
            }
        });
        for round in 0..rounds() {
            let names = ["ant", "bee"].map(|class| format!("{class}{round}"));
            let [a, b] = [(&names[0], "a.npy"), (&names[1], "b.npy")]
                .map(|(class, file)| ["teach", "m", "--class", class, file, "--out", "m"]);
            for (output, name) in both(folder, [&a, &b]).iter().zip(&names) {
                assert!(is_done(output), "{}", stderr(output));
                expected.insert(name.clone());
            }
        }
        ended.store(true, Ordering::Relaxed);
    });
    assert_eq!(taught(folder, "m"), expected);
    assert_eq!(hidden(folder), [""; 0], "nothing is left behind");
}

#[test]
fn a_teacher_says_whom_it_waits_for() {
    let folder = trained();
    let folder = folder.path();
    let lock = fs::File::create(folder.join(".m.lock")).unwrap();
    lock.lock().unwrap();
    fs::write(folder.join(".m.lock"), "4711 elsewhere\n").unwrap();
    let arguments = ["teach", "m", "--class", "ant", "a.npy", "--out", "m"];
    let mut child = command(folder, &arguments).spawn().unwrap();
    let mut line = String::new();
    let mut errors = std::io::BufReader::new(child.stderr.take().unwrap());
    std::io::BufRead::read_line(&mut errors, &mut line).unwrap();
    assert!(line.contains("process 4711 on elsewhere is writing m; waiting"), "{line}");
    // Its holder is killed: the file stays, the lock does not.
    drop(lock);
    assert!(child.wait().unwrap().success());
    assert_eq!(taught(folder, "m").len(), 1);
    assert_eq!(hidden(folder), [""; 0]);
}

#[test]
fn a_directory_built_twice_at_once_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let build = |seed: &'static str| {
        ["data", "build", "--source=synthetic", "--size=8", "--images-per-leaf=2", "--out=bench", seed]
    };
    let forced = |seed| [&build(seed)[..], &["--force"]].concat();
    let mut refused = 0;
    for round in 0..rounds() {
        let outputs = if round % 2 == 0 {
            fs::remove_dir_all(folder.join("bench")).or_else(|_| fs::create_dir_all(folder)).unwrap();
            both(folder, [&build("--seed=1"), &build("--seed=2")])
        } else {
            both(folder, [&forced("--seed=1"), &forced("--seed=2")])
        };
        let done = outputs.iter().filter(|output| is_done(output)).count();
        assert!(done >= 1, "{}", stderr(&outputs[0]));
        for output in outputs.iter().filter(|output| !is_done(output)) {
            let text = stderr(output);
            let is_clear = ["is building it right now", "holds a benchmark already"];
            assert!(is_clear.iter().any(|words| text.contains(words)), "{text}");
            refused += 1;
        }
        success(folder, &["data", "info", "bench", "--verify"]);
        assert_eq!(hidden(folder), [""; 0]);
    }
    eprintln!("{refused} of {} builds were refused", 2 * rounds());
}

#[test]
fn a_run_started_twice_at_once_is_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    success(
        folder,
        &["data", "build", "--source=synthetic", "--size=32", "--images-per-leaf=4", "--out=data"],
    );
    let train = |seed: &'static str| {
        [
            "train",
            "--data=data",
            "--out=run",
            "--set=train.episodes=2",
            "--set=train.auxiliary_batch=4",
            "--set=memory.samples=1",
            "--set=validation.tasks=1",
            seed,
        ]
    };
    for _ in 0..rounds() {
        let outputs = both(folder, [&train("--set=train.seed=1"), &train("--set=train.seed=2")]);
        let done: Vec<usize> = (0..2).filter(|&number| is_done(&outputs[number])).collect();
        let [winner] = done[..] else { panic!("{} of two runs have the directory", done.len()) };
        let text = stderr(&outputs[1 - winner]);
        let is_clear = ["is training this run", "holds a run already"];
        assert!(is_clear.iter().any(|words| text.contains(words)), "{text}");
        // Settings, origin and model are all of the one that was done.
        let seed = format!("seed = {}", winner + 1);
        let config = fs::read_to_string(folder.join("run/config.toml")).unwrap();
        assert!(config.lines().any(|line| line == seed), "{config}");
        let origin: serde_json::Value =
            serde_json::from_slice(&fs::read(folder.join("run/run.json")).unwrap()).unwrap();
        assert_eq!(origin["seed"], winner + 1);
        success(folder, &["eval", "run", "--data=data", "--tasks=1", "--queries=1"]);
        success(folder, &["train", "--resume=run"]);
        assert_eq!(hidden(&folder.join("run")), [""; 0]);
        fs::remove_dir_all(folder.join("run")).unwrap();
    }
}

#[test]
fn damaged_files_are_named_and_settings_are_not_made_up() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    success(folder, &["data", "build", "--source=synthetic", "--images-per-leaf=4", "--out=data"]);
    let run = [
        "train",
        "--data=data",
        "--out=run",
        "--set=train.episodes=6",
        "--set=train.checkpoint_every=3",
        "--set=train.auxiliary_batch=4",
        "--set=memory.samples=1",
        "--set=validation.tasks=0",
    ];
    success(folder, &run);
    let path = folder.join("run/config.toml");
    let config = fs::read_to_string(&path).unwrap();
    for cut in [String::new(), config.lines().take(12).collect::<Vec<_>>().join("\n")] {
        fs::write(&path, cut).unwrap();
        let message = failure(folder, &["train", "--resume=run"]);
        assert!(message.contains("run/config.toml: setting `") && message.contains("missing"), "{message}");
    }
    fs::write(&path, config.replace("seed = 0", "seed = 5")).unwrap();
    let message = failure(folder, &["train", "--resume=run"]);
    assert!(message.contains("made with other settings"), "{message}");
    fs::write(&path, config).unwrap();

    let flip_at = |name: &str, place: fn(usize) -> usize| {
        let path = folder.join(name);
        let mut bytes = fs::read(&path).unwrap();
        let at = place(bytes.len());
        bytes[at] ^= 1;
        fs::write(path, bytes).unwrap();
    };
    let flip = |name: &str| flip_at(name, |length| length * 2 / 3);
    flip("run/checkpoints/0000000006.safetensors");
    let output = command(folder, &["train", "--resume=run"]).output().unwrap();
    let text = stderr(&output);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("warning: ") && text.contains("0000000006.safetensors is damaged"), "{text}");
    assert!(text.contains("going on after episode 3"), "{text}");

    flip("run/model.safetensors");
    for command in [&["eval", "run", "--data=data"][..], &["classes", "run"]] {
        let message = failure(folder, command);
        assert!(message.contains("model.safetensors is damaged"), "{message}");
    }
    success(folder, &["train", "--resume=run"]);
    let eval = ["eval", "run", "--data=data", "--tasks=1", "--queries=1", "--verify"];
    success(folder, &eval);
    for name in ["data/assignments.csv", "data/images.npy", "data/benchmark.toml"] {
        let whole = fs::read(folder.join(name)).unwrap();
        // The last block of a large file is among those that are always looked at.
        flip_at(name, |length| if length > 1 << 20 { length - 1 } else { length * 2 / 3 });
        let other = [&run[..2], &["--out=other"][..], &run[3..]].concat();
        for command in [&eval[..5], &other, &["train", "--resume=run"]] {
            let message = failure(folder, command);
            assert!(message.contains("data") && message.contains("anew"), "{name}: {message}");
        }
        assert!(!folder.join("other").exists());
        fs::write(folder.join(name), whole).unwrap();
    }
    flip("data/images.npy");
    let message = failure(folder, &eval);
    assert!(message.contains("data: not as built: images.npy"), "{message}");
}
