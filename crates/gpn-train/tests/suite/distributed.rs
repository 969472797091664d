//! Shards and ranks: the model depends on the number of shards, and not on who computes them.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use gpn_model::Device;
use gpn_train::{Alone, Config, Group, ThreadGroup, Trainer};

use crate::fixture::{benchmark, config};

fn with(settings: &[&str]) -> Config {
    settings.iter().fold(config(), |config, setting| config.with_setting(setting).unwrap())
}

/// Trains as one of a group until the end or until `stop`; all begin with the state of the first.
fn train(config: &Config, group: Arc<dyn Group>, folder: &Path, stop: u64) -> Vec<u8> {
    let is_first = group.rank() == 0;
    let mut trainer = Trainer::new(config, benchmark(), &Device::cpu()).unwrap();
    if is_first {
        trainer.resume(folder).unwrap();
    }
    let state = group.of_first(&trainer.state().unwrap()).unwrap();
    trainer.set_state(&state).unwrap();
    trainer.join(group).unwrap();
    let stop_at = |done, _: Option<&gpn_train::Progress>| {
        if done == stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    trainer.run(is_first.then_some(folder), stop_at).unwrap();
    trainer.state().unwrap()
}

/// The states of all ranks at the end of a run by so many ranks, each with a pool of its own.
fn by_ranks(config: &Config, ranks: usize, folder: &Path, stop: u64) -> Vec<Vec<u8>> {
    std::thread::scope(|scope| {
        let ranks: Vec<_> = ThreadGroup::of(ranks)
            .into_iter()
            .map(|group| {
                scope.spawn(move || {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
                    pool.install(|| train(config, Arc::new(group), folder, stop))
                })
            })
            .collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

/// The last checkpoint and the best models of a run.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_name().unwrap().display().to_string(), std::fs::read(&path).unwrap()))
        .collect();
    files.sort();
    files.retain(|(name, _)| name.starts_with("best-") || name.starts_with("0000000024"));
    files
}

fn assert_same_files(folder: &Path, expected: &[(String, Vec<u8>)], what: &str) {
    let found = files(folder);
    let names = |files: &[(String, Vec<u8>)]| files.iter().map(|file| file.0.clone()).collect::<Vec<_>>();
    assert_eq!(names(&found), names(expected), "{what}");
    assert!(found == expected, "{what}: other bytes");
}

#[test]
fn any_number_of_ranks_trains_the_same_model() {
    let scratch = tempfile::tempdir().unwrap();
    // Not every shard has a task, and those of the auxiliary batch differ in size.
    for (settings, ranks) in [
        (&["train.shards=4", "train.tasks_per_step=3", "train.auxiliary_batch=18"][..], &[2, 3, 4][..]),
        (&["train.shards=4", "train.tasks_per_step=8", "memory.norm=training"], &[3]),
        (&["train.shards=4", "train.tasks_per_step=5", "train.method=gnn"], &[3]),
        (&["train.shards=4", "train.method=baseline++", "baseline.steps=3"], &[2]),
        (&["train.shards=4", "train.method=prior"], &[3]),
        (
            &["train.shards=4", "train.method=prior", "train.tasks_per_step=3", "prior.learn_by=posteriors"],
            &[2],
        ),
    ] {
        let config = with(settings);
        let folder = |name: &str| scratch.path().join(format!("{}-{name}", settings.join("-")));
        let alone = folder("alone");
        train(&config, Arc::new(Alone), &alone, u64::MAX);
        let expected = files(&alone);
        assert!(expected.len() >= 2, "{settings:?}");
        for &ranks in ranks {
            let folder = folder(&ranks.to_string());
            let states = by_ranks(&config, ranks, &folder, u64::MAX);
            assert_same_files(&folder, &expected, &format!("{settings:?}, {ranks} ranks"));
            // Those who write nothing have become the same; the first also knows which file holds the best model.
            assert!(states[1..].iter().all(|state| *state == states[1]), "{settings:?}");
        }
    }
}

#[test]
fn a_run_may_be_resumed_by_another_number_of_ranks() {
    let scratch = tempfile::tempdir().unwrap();
    let config = with(&["train.shards=4", "train.tasks_per_step=2"]);
    let whole = scratch.path().join("whole");
    train(&config, Arc::new(Alone), &whole, u64::MAX);
    let folder = scratch.path().join("resumed");
    by_ranks(&config, 3, &folder, 5);
    train(&config, Arc::new(Alone), &folder, 9);
    by_ranks(&config, 2, &folder, 17);
    by_ranks(&config, 4, &folder, u64::MAX);
    assert_same_files(&folder, &files(&whole), "resumed");
}

#[test]
fn more_shards_and_more_tasks_change_what_is_learned() {
    let scratch = tempfile::tempdir().unwrap();
    let plain = scratch.path().join("plain");
    train(&config(), Arc::new(Alone), &plain, u64::MAX);
    for other in ["train.shards=2", "train.tasks_per_step=2"] {
        let folder = scratch.path().join(other);
        train(&with(&[other]), Arc::new(Alone), &folder, u64::MAX);
        assert!(files(&folder) != files(&plain), "{other}");
    }
}

#[test]
fn more_ranks_than_shards_and_shards_too_small_are_refused() {
    let trainer = |settings: &[&str]| Trainer::new(&with(settings), benchmark(), &Device::cpu());
    let two = ThreadGroup::of(2).remove(0);
    let refused = trainer(&[]).unwrap().join(Arc::new(two)).unwrap_err().to_string();
    assert!(refused.contains("setting `train.shards`") && refused.contains("at most 1"), "{refused}");
    let refused = trainer(&["train.shards=9"]).err().unwrap().to_string();
    assert!(refused.contains("16 samples cannot be divided into 9"), "{refused}");
    // Without auxiliary batches there is nothing to divide but tasks.
    trainer(&["train.shards=9", "schedule.auxiliary=false"]).unwrap();
}
