//! A training run is the same bytes with every instruction set but the portable one, and may move between them.

use std::fs;
use std::path::Path;

use crate::command::{command, stderr, success};

const SETTINGS: [&str; 10] = [
    "--set",
    "train.episodes=300",
    "--set",
    "train.checkpoint_every=50",
    "--set",
    "train.auxiliary_batch=12",
    "--set",
    "memory.samples=2",
    "--set",
    "validation.tasks=4",
];

/// Runs `gpn` with an instruction set forced and some threads.
fn run(folder: &Path, simd: &str, threads: usize, arguments: &[&str]) {
    let mut command = command(folder, arguments);
    command.env("GPN_SIMD", simd).env("RAYON_NUM_THREADS", threads.to_string());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{simd}: {}", stderr(&output));
}

/// The bytes of the best model and of the last.
fn model(folder: &Path, run: &str) -> Vec<u8> {
    let bytes = |file: &str| fs::read(folder.join(run).join(file)).unwrap();
    [bytes("model.safetensors"), bytes("last.safetensors")].concat()
}

#[test]
fn a_run_is_the_same_bytes_with_every_instruction_set() {
    let sets: Vec<&str> = gpn_kernels::Simd::available()
        .into_iter()
        .filter(|simd| simd.is_fused())
        .map(gpn_kernels::Simd::name)
        .collect();
    let Some((&first, others)) = sets.split_first() else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    success(folder, &["data", "build", "--source", "synthetic", "--images-per-leaf", "4", "--out", "data"]);
    let train = |out| [&["train", "--data", "data", "--out", out], &SETTINGS[..]].concat();
    run(folder, first, 2, &train("first"));
    let expected = model(folder, "first");
    for (simd, threads) in others.iter().zip([1, 3]) {
        run(folder, simd, threads, &train("other"));
        assert!(model(folder, "other") == expected, "{first} and {simd} train different models");
        fs::remove_dir_all(folder.join("other")).unwrap();
    }
    // Begun with the last, killed on its way, and ended with the first. A run that ends before it is killed begins anew.
    let last = sets[sets.len() - 1];
    while !killed_half_way(folder, last, &train("moved")) {
        fs::remove_dir_all(folder.join("moved")).unwrap();
    }
    run(folder, first, 2, &["train", "--resume", "moved"]);
    assert!(
        model(folder, "moved") == expected,
        "a run that moved from {last} to {first} ends in another model"
    );
}

/// Starts the training of `moved` and kills it after half of the episodes; whether it had not ended by then.
fn killed_half_way(folder: &Path, simd: &str, arguments: &[&str]) -> bool {
    let mut child = command(folder, arguments).env("GPN_SIMD", simd).spawn().unwrap();
    let half = folder.join("moved/checkpoints/0000000150.safetensors");
    while !half.exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    !folder.join("moved/model.safetensors").exists()
}

#[test]
fn a_run_that_goes_on_with_other_rounding_warns() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    success(folder, &["data", "build", "--source", "synthetic", "--images-per-leaf", "4", "--out", "data"]);
    let few =
        ["--set", "train.episodes=2", "--set", "validation.tasks=0", "--set", "train.auxiliary_batch=4"];
    run(folder, "portable", 2, &[&["train", "--data", "data", "--out", "run"], &few[..]].concat());
    let resume = |simd: &str, episodes: &str| {
        let mut command = command(folder, &["train", "--resume", "run", "--episodes", episodes]);
        stderr(&command.env("GPN_SIMD", simd).output().unwrap())
    };
    assert!(!resume("portable", "3").contains("rounding"));
    let sets = gpn_kernels::Simd::available();
    let Some(fused) = sets.iter().find(|simd| simd.is_fused()) else { return };
    let message = resume(fused.name(), "4");
    assert_eq!(message.matches("portable rounding, and here it is fused").count(), 1, "{message}");
}
