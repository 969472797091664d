//! A run gives the same bytes however often it is interrupted and however many threads it has.

use std::ops::ControlFlow;
use std::path::Path;

use gpn_model::Device;
use gpn_train::{TrainedModel, Trainer};

use crate::fixture::{benchmark, config};

/// Trains in `folder`, stopping after each of the given episodes and going on anew; returns the bytes of the last model and of
/// the best one, with its name.
fn trained(folder: &Path, stops: &[u64]) -> Vec<u8> {
    let mut stops = stops.to_vec();
    stops.push(u64::MAX);
    for stop in stops {
        let mut trainer = Trainer::new(&config(), benchmark(), &Device::cpu()).unwrap();
        trainer.resume(folder).unwrap();
        let stop_at = |done, _: Option<&gpn_train::Progress>| {
            if done == stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        trainer.run(Some(folder), stop_at).unwrap();
        if trainer.position().episode == trainer.episodes() {
            let path = folder.join("model.safetensors");
            trainer.save_model(&path).unwrap();
            let read = TrainedModel::read(&path, &Device::cpu()).unwrap();
            assert!(read.info == trainer.info() && &read.memory == trainer.memory());
            let best = best_models(folder).pop().unwrap();
            return [
                std::fs::read(path).unwrap(),
                best.as_bytes().to_vec(),
                std::fs::read(folder.join(best)).unwrap(),
            ]
            .concat();
        }
    }
    panic!("the run did not end");
}

/// The names of the best models so far, oldest first.
fn best_models(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("best-"))
        .collect();
    names.sort();
    names
}

#[test]
fn interrupted_runs_and_any_number_of_threads_give_the_same_bytes() {
    let scratch = tempfile::tempdir().unwrap();
    let whole = trained(&scratch.path().join("whole"), &[]);
    assert_eq!(trained(&scratch.path().join("stopped"), &[7, 16, 23]), whole, "interrupted");
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let bytes = pool.install(|| trained(&scratch.path().join(format!("threads{threads}")), &[]));
        assert!(bytes == whole, "{threads} threads");
    }
}

#[test]
fn old_checkpoints_are_removed() {
    let scratch = tempfile::tempdir().unwrap();
    trained(scratch.path(), &[3, 9]);
    let kept = std::fs::read_dir(scratch.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(|first: char| first.is_ascii_digit()))
        .count();
    assert!(best_models(scratch.path()).len() <= config().train.keep_checkpoints);
    assert!(!best_models(scratch.path()).is_empty());
    assert_eq!(kept, config().train.keep_checkpoints);
}
