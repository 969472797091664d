//! A model with a graph prior, from training to predictions.

use std::ops::ControlFlow;
use std::sync::OnceLock;

use gpn::{
    Among, Classifier, Device, EvaluationRequest, IfTaught, NewClass, Parents, Relation, Sample, StopHandle,
    TestTasks, TrainedModel, Watch, evaluate_model,
};
use gpn_data::benchmark::{Benchmark, Store};
use gpn_train::{Embeddings, Hierarchy, Trainer, answers};

use crate::fixture::{benchmark, config};

fn model() -> TrainedModel {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    let bytes = BYTES.get_or_init(|| {
        let mut trainer =
            Trainer::new(&config().with_method("prior").unwrap(), benchmark(), &Device::cpu()).unwrap();
        trainer.run(None, |_, _| ControlFlow::Continue(())).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        trainer.save_model(&path).unwrap();
        std::fs::read(path).unwrap()
    });
    TrainedModel::from_bytes(bytes, "model".as_ref(), &Device::cpu()).unwrap()
}

fn samples(benchmark: &Benchmark, indices: &[u32]) -> Vec<Sample> {
    let Store::Images { size, array } = benchmark.store() else { panic!("the benchmark has no images") };
    let png = |&index: &u32| {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, *size, *size);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.write_header().unwrap().write_image_data(array.row(index as usize)).unwrap();
        Sample::image(format!("sample {index}"), bytes)
    };
    indices.iter().map(png).collect()
}

#[test]
fn a_taught_class_without_a_place_is_answered_as_in_evaluation() {
    let (model, benchmark, watch) = (model(), benchmark(), Watch::default());
    let request = EvaluationRequest { tasks: 6, shot: 2, queries: 6, ..EvaluationRequest::default() };
    let tasks = TestTasks::of(&benchmark, &request).unwrap();
    let stop = StopHandle::default();
    let embeddings =
        Embeddings::of_tasks(&model.network.embedder, benchmark.store(), &tasks.tasks, &stop).unwrap();
    let expected = answers(
        model.trained(),
        &tasks.data_set,
        &embeddings,
        &tasks.tasks,
        Hierarchy::Unknown,
        &[0.0],
        &stop,
    )
    .unwrap();
    let classifier = Classifier::new(model).unwrap();
    for (task, expected) in tasks.tasks.iter().zip(expected) {
        let names: Vec<String> = task.classes.iter().map(|class| format!("class {class}")).collect();
        let new = names.iter().zip(&task.support).map(|(class, support)| NewClass {
            class: class.clone(),
            parents: Parents::Unknown,
            samples: samples(&benchmark, support),
        });
        classifier.teach(&new.collect::<Vec<_>>(), IfTaught::Replace, &watch).unwrap();
        let candidates = classifier.candidates(&Among::Listed(names), 0.0).unwrap();
        let queries: Vec<u32> = task.query.iter().flatten().copied().collect();
        let found: Vec<usize> = classifier
            .embed(&samples(&benchmark, &queries), &watch)
            .unwrap()
            .into_iter()
            .map(|embedding| candidates.rank(&embedding.unwrap(), 1)[0].class)
            .collect();
        assert_eq!(found, expected[0]);
    }
}

#[test]
fn shares_add_up_and_own_samples_count_for_more_when_there_are_more() {
    let (benchmark, watch) = (benchmark(), Watch::default());
    let classifier = Classifier::new(model()).unwrap();
    let parent = classifier.classes().into_iter().find(|class| class.parents.len() == 1).unwrap().id;
    let mut own = Vec::new();
    for shots in [1, 5] {
        let indices: Vec<u32> = (0..shots).collect();
        let new = NewClass {
            class: "new".into(),
            parents: Parents::Named(vec![parent.clone()]),
            samples: samples(&benchmark, &indices),
        };
        classifier.teach(&[new], IfTaught::Replace, &watch).unwrap();
        let shares = classifier.candidates(&Among::Taught, 0.0).unwrap().explain(0);
        let total: f64 = shares.iter().map(|share| share.share).sum();
        assert!((total - 1.0).abs() < 1e-6, "{shares:?}");
        assert!(shares.iter().any(|share| share.relation == Relation::Parent), "{shares:?}");
        own.push(shares.iter().find(|share| share.relation == Relation::Own).unwrap().share);
    }
    assert!(own[1] > own[0], "{own:?}");
    // All classes are answers at once, and what was taught survives the file.
    let all = classifier.candidates(&Among::All, 0.0).unwrap();
    let again = Classifier::from_bytes(&classifier.to_bytes().unwrap(), "again", &Device::cpu()).unwrap();
    assert_eq!(again.candidates(&Among::All, 0.0).unwrap().prototypes(), all.prototypes());
}

#[test]
fn any_network_can_be_evaluated_with_another_method() {
    let mut trainer = Trainer::new(&config(), benchmark(), &Device::cpu()).unwrap();
    trainer.run(None, |_, _| ControlFlow::Continue(())).unwrap();
    let (model, benchmark) = (trainer.into_model().unwrap(), benchmark());
    let with = |method: Option<&str>, hierarchy| {
        let method = method.map(str::to_owned);
        let request =
            EvaluationRequest { tasks: 10, queries: 5, method, hierarchy, ..EvaluationRequest::default() };
        let tasks = TestTasks::of(&benchmark, &request).unwrap();
        evaluate_model(&model, &benchmark, &tasks, &request, &Watch::default())
    };
    let known = with(Some("prior"), Hierarchy::Known).unwrap();
    assert_eq!((known.name.as_str(), known.tasks), ("prior", 10));
    assert!(
        known.calibration_error.unwrap() < with(None, Hierarchy::Known).unwrap().calibration_error.unwrap()
    );
    assert_ne!(known.per_task, with(Some("prior"), Hierarchy::Unknown).unwrap().per_task);
    let nearest = with(Some("protonet"), Hierarchy::Known).unwrap();
    assert!(nearest.per_task.iter().all(|task| (task.method - task.base).abs() < 1e-9));
    let message = with(Some("ppn"), Hierarchy::Known).unwrap_err().to_string();
    assert!(message.contains("train a model with it"), "{message}");
}
