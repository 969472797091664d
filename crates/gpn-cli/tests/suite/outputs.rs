//! What a command may write onto: never a file or folder of the user's that it was not told to replace.

use std::fs;
use std::path::Path;

use crate::command::{failure, success};
use crate::teach::{benchmark, trained};

/// A short training on the small benchmark.
const TRAIN: [&str; 8] = [
    "train",
    "--data=bench",
    "--set=model.backbone=identity",
    "--set=task.way=3",
    "--set=memory.refresh_every=10",
    "--set=train.checkpoint_every=5",
    "--set=validation.tasks=2",
    "--episodes=10",
];

fn train(more: &[&'static str]) -> Vec<&'static str> {
    [&TRAIN[..], more].concat()
}

fn entries(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn training_leaves_foreign_folders_alone() {
    let folder = benchmark(&[]);
    let folder = folder.path();
    fs::create_dir(folder.join("photos")).unwrap();
    fs::write(folder.join("photos/cat.jpg"), "mine").unwrap();
    fs::write(folder.join("notes.txt"), "mine").unwrap();
    for force in [&[][..], &["--force"]] {
        let message = failure(folder, &[&train(&["--out=photos"])[..], force].concat());
        assert!(message.contains("photos: it holds other files (cat.jpg) and is no run"), "{message}");
        assert_eq!(entries(&folder.join("photos")), ["cat.jpg"]);
    }
    // Settings of somebody's own do not make a run.
    fs::write(folder.join("photos/config.toml"), "").unwrap();
    assert!(failure(folder, &train(&["--out=photos", "--force"])).contains("and is no run"));
    assert!(
        failure(folder, &train(&["--out=notes.txt"])).contains("notes.txt: it is a file; name a directory")
    );
    for command in [&["demo", "--episodes=1"][..], &["experiment", "tables", "--episodes=1"]] {
        let message = failure(folder, &[command, &["--out=photos"]].concat());
        assert!(message.contains("photos: it holds other files (cat.jpg)"), "{message}");
    }
    assert_eq!(entries(&folder.join("photos")), ["cat.jpg", "config.toml"]);

    // An empty folder is as good as none.
    fs::create_dir(folder.join("empty")).unwrap();
    success(folder, &train(&["--out=empty"]));
    let message = failure(folder, &train(&["--out=empty"]));
    assert!(message.contains("holds a run already; go on with `gpn train --resume empty`"), "{message}");
    fs::write(folder.join("empty/my notes.txt"), "mine").unwrap();
    success(folder, &train(&["--out=empty", "--force", "--set=train.seed=5"]));
    assert!(fs::read_to_string(folder.join("empty/config.toml")).unwrap().contains("seed = 5"));
    assert!(folder.join("empty/my notes.txt").is_file(), "what is not ours stays");
}

#[test]
fn a_failed_start_leaves_nothing_in_the_way() {
    let folder = benchmark(&[]);
    let folder = folder.path();
    // No such tasks; and a rate that makes gradients infinite in the first episodes, after the directory was made.
    for wrong in ["--set=task.way=500", "--set=rate.initial=1e300"] {
        failure(folder, &train(&["--out=run", "--set=model.backbone=mlp", wrong]));
        assert!(!folder.join("run").exists(), "{wrong}: {:?}", entries(&folder.join("run")));
    }
    success(folder, &train(&["--out=run"]));
}

#[test]
fn files_are_replaced_only_with_leave() {
    let folder = trained();
    let folder = folder.path();
    let teach = ["teach", "m", "--class=ant", "a.npy"];
    fs::write(folder.join("letter.txt"), "mine").unwrap();
    let message = failure(folder, &[&teach[..], &["--out=letter.txt"]].concat());
    assert!(
        message.contains("letter.txt: it exists already; name another file, or pass --force"),
        "{message}"
    );
    assert_eq!(fs::read(folder.join("letter.txt")).unwrap(), b"mine");
    assert!(failure(folder, &[&teach[..], &["--out=."]].concat()).contains("it is a directory"));
    success(folder, &[&teach[..], &["--out=letter.txt", "--force"]].concat());
    success(folder, &["classes", "letter.txt", "ant"]);
    // The model itself, by another name.
    success(folder, &[&teach[..], &["--out=./m"]].concat());
    success(folder, &["classes", "m", "ant"]);

    let folder = benchmark(&[]);
    let folder = folder.path();
    success(folder, &train(&["--out=run"]));
    let eval = ["eval", "run", "--data=bench", "--tasks=2", "--way=2", "--queries=2", "--csv=tasks.csv"];
    fs::write(folder.join("tasks.csv"), "mine").unwrap();
    assert!(failure(folder, &eval).contains("tasks.csv: it exists already"));
    assert_eq!(fs::read(folder.join("tasks.csv")).unwrap(), b"mine");
    success(folder, &[&eval[..], &["--force"]].concat());
    assert!(fs::read_to_string(folder.join("tasks.csv")).unwrap().starts_with("task,fingerprint,"));
}

#[test]
fn what_a_model_was_taught_is_not_trained_away() {
    let folder = benchmark(&[]);
    let folder = folder.path();
    success(folder, &train(&["--out=run"]));
    let model = folder.join("run/model.safetensors");
    success(folder, &["teach", "run", "--class=ant", "a.npy", "--out=run/model.safetensors"]);
    let taught = fs::read(&model).unwrap();
    let message = failure(folder, &["train", "--resume=run", "--episodes=20"]);
    assert!(message.contains("it has been taught classes since it was trained (ant)"), "{message}");
    assert!(fs::read(&model).unwrap() == taught);
    fs::rename(&model, folder.join("mine.safetensors")).unwrap();
    success(folder, &["train", "--resume=run", "--episodes=20"]);
}

#[test]
fn a_damaged_model_is_not_taken_for_foreign_weights() {
    let folder = trained();
    let folder = folder.path();
    let whole = fs::read(folder.join("m")).unwrap();
    fs::write(folder.join("m"), &whole[..whole.len() / 2]).unwrap();
    let message = failure(folder, &["classes", "m"]);
    assert!(message.contains("or a damaged one") && !message.contains("PyTorch"), "{message}");
}
