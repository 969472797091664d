//! Every few-shot method, trained and asked through the same doors.

use std::ops::ControlFlow;

use gpn_data::benchmark::{Part, Split};
use gpn_data::task::{Task, TaskConfig, TaskSampler};
use gpn_model::Device;
use gpn_train::methods::METHODS;
use gpn_train::{
    Classifier, Config, Embeddings, Hierarchy, TaskResult, TrainedModel, Trainer, accuracies, evaluate,
};

use crate::resume::{benchmark, config};

fn trained(config: &Config) -> TrainedModel {
    let folder = tempfile::tempdir().unwrap();
    let mut trainer = Trainer::new(config, benchmark(), &Device::cpu()).unwrap();
    trainer.run(folder.path(), |_, _| ControlFlow::Continue(())).unwrap();
    let path = folder.path().join("model.safetensors");
    trainer.save_model(&path).unwrap();
    TrainedModel::read(&path, &Device::cpu()).unwrap()
}

fn tasks(count: u64) -> Vec<Task> {
    let config = TaskConfig { way: 5, shot: 1, queries: 4, ..TaskConfig::default() };
    let sampler = TaskSampler::new(&benchmark().task_pool(Split::Close, Part::Test), config, 1).unwrap();
    (0..count).map(|index| sampler.task(index).unwrap()).collect()
}

fn evaluated(model: &mut TrainedModel, lambda: f32) -> Vec<TaskResult> {
    let (benchmark, tasks) = (benchmark(), tasks(8));
    let embeddings = Embeddings::of_tasks(&mut model.network.embedder, benchmark.store(), &tasks).unwrap();
    let data_set = benchmark.data_set(Split::Close);
    evaluate(model.trained(), &data_set, &embeddings, &tasks, Hierarchy::Known, lambda).unwrap()
}

#[test]
fn every_method_is_trained_saved_and_asked() {
    for kind in &METHODS {
        let mut model = trained(&config().with_method(kind.name).unwrap());
        assert_eq!(model.info.method().name, kind.name);
        let results = evaluated(&mut model, 0.0);
        let possible = |percent: f64| (0.0..=100.0).contains(&percent);
        assert!(results.iter().all(|task| possible(task.base) && possible(task.method)), "{}", kind.name);
        let by_prototypes = model.network.method.answers_by_prototypes();
        let classifier = Classifier::new(model);
        assert_eq!(classifier.is_ok(), by_prototypes, "{}", kind.name);
        if let Err(error) = classifier {
            assert!(error.to_string().contains("has no prototypes to teach"), "{error}");
        }
    }
}

#[test]
fn an_interrupted_run_of_any_method_gives_the_same_bytes() {
    for name in ["gnn", "baseline++", "ppn"] {
        let config = config().with_method(name).unwrap();
        let bytes = |stop: u64| {
            let folder = tempfile::tempdir().unwrap();
            let mut trainer = Trainer::new(&config, benchmark(), &Device::cpu()).unwrap();
            let stopping = |done, _: Option<&gpn_train::Progress>| {
                if done == stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            trainer.run(folder.path(), stopping).unwrap();
            let mut trainer = Trainer::new(&config, benchmark(), &Device::cpu()).unwrap();
            trainer.resume(folder.path()).unwrap();
            trainer.run(folder.path(), |_, _| ControlFlow::Continue(())).unwrap();
            let path = folder.path().join("model.safetensors");
            trainer.save_model(&path).unwrap();
            std::fs::read(path).unwrap()
        };
        assert!(bytes(13) == bytes(u64::MAX), "{name}");
    }
}

/// A Prototypical Network is GPN that keeps its first prototypes, in training and in testing.
#[test]
fn a_prototypical_network_equals_gpn_with_lambda_one() {
    let lambda_one = ["schedule.anneal_lambda=false", "schedule.lambda=1"];
    let fixed = lambda_one.iter().fold(config(), |config, setting| config.with_setting(setting).unwrap());
    let mut gpn = trained(&fixed);
    let mut protonet = trained(&config().with_method("protonet").unwrap());
    let backbone = |model: &TrainedModel| -> Vec<u32> {
        model
            .network
            .embedder
            .parameters()
            .iter()
            .flat_map(|tensor| tensor.values.to_vec())
            .map(f32::to_bits)
            .collect()
    };
    assert!(backbone(&gpn) == backbone(&protonet), "the backbones learned otherwise");
    let theirs: Vec<f64> = evaluated(&mut protonet, 0.0).iter().map(|task| task.method).collect();
    let results = evaluated(&mut gpn, 1.0);
    assert_eq!(results.iter().map(|task| task.mixed).collect::<Vec<_>>(), theirs);
    assert_eq!(results.iter().map(|task| task.base).collect::<Vec<_>>(), theirs);
}

#[test]
fn a_task_of_more_classes_than_a_graph_network_was_made_for_is_refused() {
    let mut config = config().with_method("gnn").unwrap();
    config.task.way = 3;
    config.task.rest = 0;
    let mut model = trained(&config);
    let (benchmark, tasks) = (benchmark(), tasks(1));
    let embeddings = Embeddings::of_tasks(&mut model.network.embedder, benchmark.store(), &tasks).unwrap();
    let data_set = benchmark.data_set(Split::Close);
    let asked = accuracies(model.trained(), &data_set, &embeddings, &tasks, Hierarchy::Known, &[0.0]);
    let message = asked.unwrap_err().to_string();
    assert!(message.contains("made for 3 classes"), "{message}");
}
