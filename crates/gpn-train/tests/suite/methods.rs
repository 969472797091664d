//! Every few-shot method, trained and asked through the same doors.

use std::ops::ControlFlow;

use gpn_data::benchmark::{Part, Split};
use gpn_data::task::{Task, TaskConfig, TaskSampler};
use gpn_model::methods::MethodKind;
use gpn_model::{Device, Trainable as _};
use gpn_train::{
    Config, Embeddings, Hierarchy, StopHandle, TaskResult, TrainedModel, Trainer, accuracies, evaluate,
};

use crate::fixture::{benchmark, config};

fn trained(config: &Config) -> TrainedModel {
    let folder = tempfile::tempdir().unwrap();
    let mut trainer = Trainer::new(config, benchmark(), &Device::cpu()).unwrap();
    trainer.run(Some(folder.path()), |_, _| ControlFlow::Continue(())).unwrap();
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
    let embeddings =
        Embeddings::of_tasks(&model.network.embedder, benchmark.store(), &tasks, &StopHandle::default())
            .unwrap();
    let data_set = benchmark.data_set(Split::Close);
    evaluate(
        model.trained(),
        &data_set,
        &embeddings,
        &tasks,
        Hierarchy::Known,
        lambda,
        &StopHandle::default(),
    )
    .unwrap()
}

#[test]
fn every_method_is_trained_saved_and_asked() {
    for kind in MethodKind::all() {
        let mut model = trained(&config().with_method(kind.name).unwrap());
        assert_eq!(model.info.method().name, kind.name);
        // Read from its file, it answers as it did: the same tasks, the same answers, and none by chance alone.
        let results = evaluated(&mut model, 0.0);
        assert_eq!(results, evaluated(&mut model, 0.0), "{}", kind.name);
        let percent = |of: fn(&TaskResult) -> f64| results.iter().map(of).sum::<f64>() / results.len() as f64;
        assert!(percent(|task| task.base) > 20.0, "{}: {results:?}", kind.name);
    }
}

#[test]
fn an_interrupted_run_of_any_method_gives_the_same_bytes() {
    let by_posteriors = ["prior.learn_by=posteriors", "task.most_shot=3"];
    for (name, settings) in
        [("gnn", &[][..]), ("baseline++", &[]), ("ppn", &[]), ("prior", &[]), ("prior", &by_posteriors)]
    {
        let config = config().with_method(name).unwrap();
        let config = settings.iter().fold(config, |config, setting| config.with_setting(setting).unwrap());
        let bytes = |stop: u64| {
            let folder = tempfile::tempdir().unwrap();
            let mut trainer = Trainer::new(&config, benchmark(), &Device::cpu()).unwrap();
            let stopping = |done, _: Option<&gpn_train::Progress>| {
                if done == stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            trainer.run(Some(folder.path()), stopping).unwrap();
            let mut trainer = Trainer::new(&config, benchmark(), &Device::cpu()).unwrap();
            trainer.resume(folder.path()).unwrap();
            trainer.run(Some(folder.path()), |_, _| ControlFlow::Continue(())).unwrap();
            let path = folder.path().join("model.safetensors");
            trainer.save_model(&path).unwrap();
            std::fs::read(path).unwrap()
        };
        assert!(bytes(13) == bytes(u64::MAX), "{name} {settings:?}");
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
    let model = trained(&config);
    let (benchmark, tasks) = (benchmark(), tasks(1));
    let embeddings =
        Embeddings::of_tasks(&model.network.embedder, benchmark.store(), &tasks, &StopHandle::default())
            .unwrap();
    let data_set = benchmark.data_set(Split::Close);
    let asked = accuracies(
        model.trained(),
        &data_set,
        &embeddings,
        &tasks,
        Hierarchy::Known,
        &[0.0],
        &StopHandle::default(),
    );
    let message = asked.unwrap_err().to_string();
    assert!(message.contains("made for 3 classes"), "{message}");
}
