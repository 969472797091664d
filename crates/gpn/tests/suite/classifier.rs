//! A trained model in use: taught classes are told apart just as evaluation does, however they were taught.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use gpn::{
    Among, Candidates, ClassKind, Classifier, Device, IfTaught, NewClass, Parents, Relation, Sample,
    StopHandle, Watch,
};
use gpn_data::benchmark::{Benchmark, Part, Split, Store};
use gpn_data::task::{Task, TaskConfig, TaskSampler};
use gpn_data::transform::{EvalTransform, ImageView};
use gpn_train::{Embeddings, Hierarchy, Placement, TrainedModel, Trainer, evaluate};

use crate::fixture::{benchmark, config};

fn watch() -> Watch<'static> {
    Watch::default()
}

/// A model trained for some episodes, made once.
fn model() -> PathBuf {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let mut trainer = Trainer::new(&config(), benchmark(), &Device::cpu()).unwrap();
        trainer.run(Some(&folder.path().join("checkpoints")), |_, _| ControlFlow::Continue(())).unwrap();
        trainer.save_model(&folder.path().join("model.safetensors")).unwrap();
        folder
    });
    folder.path().join("model.safetensors")
}

fn opened() -> Classifier {
    Classifier::open(&model(), &Device::cpu()).unwrap()
}

/// A sample of the benchmark as an image file.
fn sample(benchmark: &Benchmark, index: u32) -> Sample {
    let Store::Images { size, array } = benchmark.store() else { panic!("the benchmark has no images") };
    Sample::image(format!("sample {index}"), bmp(*size, *size, array.row(index as usize)))
}

fn samples(benchmark: &Benchmark, indices: &[u32]) -> Vec<Sample> {
    indices.iter().map(|&index| sample(benchmark, index)).collect()
}

/// An uncompressed image file.
fn bmp(width: u32, height: u32, pixels: &[u8]) -> Vec<u8> {
    let row = (3 * width as usize).next_multiple_of(4);
    let mut file = b"BM".to_vec();
    for value in [54 + row as u32 * height, 0, 54, 40, width, height, 1 | 24 << 16, 0, 0, 0, 0, 0, 0] {
        file.extend(value.to_le_bytes());
    }
    for line in pixels.chunks_exact(3 * width as usize).rev() {
        let start = file.len();
        file.extend(line.chunks_exact(3).flat_map(|rgb| [rgb[2], rgb[1], rgb[0]]));
        file.resize(start + row, 0);
    }
    file
}

fn new_class(class: &str, parents: Parents, samples: Vec<Sample>) -> NewClass {
    NewClass { class: class.into(), parents, samples }
}

fn below(parents: &[&str]) -> Parents {
    Parents::Named(parents.iter().map(|&parent| parent.to_owned()).collect())
}

fn tasks(benchmark: &Benchmark, count: u64) -> Vec<Task> {
    let config = TaskConfig { way: 5, shot: 3, queries: 10, ..TaskConfig::default() };
    let sampler = TaskSampler::new(&benchmark.task_pool(Split::Close, Part::Test), config, 3).unwrap();
    (0..count).map(|index| sampler.task(index).unwrap()).collect()
}

/// The ids of a task's classes.
fn ids(benchmark: &Benchmark, task: &Task) -> Vec<String> {
    let rows = benchmark.data_set(Split::Close).rows;
    task.classes.iter().map(|&class| benchmark.classes()[rows[class as usize]].id.clone()).collect()
}

/// Percent of a task's queries that a classifier gets right among the task's classes.
fn accuracy(classifier: &Classifier, benchmark: &Benchmark, task: &Task, lambda: f32) -> f64 {
    let candidates = classifier.candidates(&Among::Listed(ids(benchmark, task)), lambda).unwrap();
    let (mut hits, mut count) = (0_u32, 0_u32);
    for (class, queries) in task.query.iter().enumerate() {
        for embedding in classifier.embed(&samples(benchmark, queries), &watch()).unwrap() {
            count += 1;
            hits += u32::from(candidates.rank(&embedding.unwrap(), 1)[0].class == class);
        }
    }
    100.0 * f64::from(hits) / f64::from(count)
}

#[test]
fn predictions_are_those_of_evaluation() {
    let benchmark = benchmark();
    let tasks = tasks(&benchmark, 12);
    let data_set = benchmark.data_set(Split::Close);
    let trained = TrainedModel::read(&model(), &Device::cpu()).unwrap();
    let embeddings =
        Embeddings::of_tasks(&trained.network.embedder, benchmark.store(), &tasks, &StopHandle::default())
            .unwrap();
    for (hierarchy, place) in [(Hierarchy::Known, Parents::FromGraph), (Hierarchy::Unknown, Parents::Unknown)]
    {
        let expected = evaluate(
            trained.trained(),
            &data_set,
            &embeddings,
            &tasks,
            hierarchy,
            0.3,
            &StopHandle::default(),
        )
        .unwrap();
        // One classifier for all tasks: what else it was taught makes no difference.
        let classifier = opened();
        for (task, expected) in tasks.iter().zip(expected) {
            let classes: Vec<NewClass> = ids(&benchmark, task)
                .iter()
                .zip(&task.support)
                .map(|(id, support)| new_class(id, place.clone(), samples(&benchmark, support)))
                .collect();
            classifier.teach(&classes, IfTaught::Replace, &watch()).unwrap();
            let found = [1.0, 0.0, 0.3].map(|lambda| accuracy(&classifier, &benchmark, task, lambda));
            let expected = [expected.base, expected.method, expected.mixed];
            assert_eq!(found.map(f64::to_bits), expected.map(f64::to_bits), "{hierarchy:?} {found:?}");
        }
    }
}

#[test]
fn one_sitting_or_many_give_the_same_bytes() {
    let (benchmark, scratch) = (benchmark(), tempfile::tempdir().unwrap());
    let task = &tasks(&benchmark, 1)[0];
    let ids = ids(&benchmark, task);
    let (a, b) = (&task.query[0][..], &task.query[1][..]);
    let root = opened().classes()[0].id.clone();
    let found = || Parents::FromGraph;
    let written = |name: &str, sittings: &[(&str, Parents, &[u32], IfTaught)]| {
        let path = scratch.path().join(name);
        opened().save(&path).unwrap();
        for (class, place, indices, again) in sittings {
            // Read and written anew each time, onto itself.
            let classifier = Classifier::open(&path, &Device::cpu()).unwrap();
            let new = new_class(class, place.clone(), samples(&benchmark, indices));
            classifier.teach(&[new], *again, &watch()).unwrap();
            classifier.save(&path).unwrap();
        }
        std::fs::read(path).unwrap()
    };
    let under = below(&[root.as_str()]);
    let whole = written(
        "whole",
        &[("new", under.clone(), a, IfTaught::Refuse), (&ids[1], found(), b, IfTaught::Refuse)],
    );
    let mut turned = a.to_vec();
    turned.reverse();
    let parts = written(
        "parts",
        &[
            (&ids[1], found(), &b[4..], IfTaught::Add),
            ("new", under, &turned[..3], IfTaught::Refuse),
            ("new", found(), &turned[2..8], IfTaught::Add),
            (&ids[1], found(), &b[..4], IfTaught::Add),
            ("new", found(), &turned[8..], IfTaught::Add),
        ],
    );
    assert!(whole == parts);
    assert!(whole != std::fs::read(model()).unwrap());
}

#[test]
fn mistakes_change_nothing() {
    let (benchmark, scratch) = (benchmark(), tempfile::tempdir().unwrap());
    let task = &tasks(&benchmark, 1)[0];
    let one = || samples(&benchmark, &task.support[0][..1]);
    let classifier = opened();
    classifier.teach(&[new_class("first", Parents::Unknown, one())], IfTaught::Refuse, &watch()).unwrap();
    let path = scratch.path().join("taught");
    classifier.save(&path).unwrap();
    let before = std::fs::read(&path).unwrap();
    let training = classifier.classes()[3].clone();
    let fault = |class: &str, place: Parents, samples: Vec<Sample>, expected: &str| {
        let classes = [new_class("other", Parents::Unknown, one()), new_class(class, place, samples)];
        let message = classifier.teach(&classes, IfTaught::Refuse, &watch()).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
        classifier.save(&path).unwrap();
        assert!(std::fs::read(&path).unwrap() == before, "{message}");
    };
    fault("first", Parents::FromGraph, one(), "already taught with 1 sample");
    fault(&training.id, Parents::FromGraph, one(), "the model was trained with it");
    fault("new", Parents::FromGraph, Vec::new(), "there are no samples of it");
    fault("other", Parents::FromGraph, one(), "it is given twice");
    fault(" ", Parents::FromGraph, one(), "needs a name");
    fault("new", below(&["first"]), one(), "its parent `first` has no parents itself");
    let mistyped = format!("{}x", training.id);
    fault("new", below(&[&mistyped]), one(), &format!("did you mean `{}`?", training.id));
    fault("new", below(&["new"]), one(), "its own parent");
    fault("new", Parents::FromGraph, vec![Sample::image("x.jpg", vec![0; 9])], "x.jpg: broken image");
    fault(
        "new",
        Parents::FromGraph,
        vec![Sample::embedding("row", vec![0.0; 64])],
        "row: it is an embedding",
    );
    let missing = vec![Sample::image_file(Path::new("missing.png"))];
    fault("new", Parents::FromGraph, missing, "missing.png: cannot read");

    let more = [new_class("first", below(&[&training.id]), one())];
    assert!(
        classifier.teach(&more, IfTaught::Add, &watch()).unwrap_err().to_string().contains("place already")
    );
    let known = ids(&benchmark, task).swap_remove(1);
    let message = classifier
        .teach(&[new_class(&known, below(&[&training.id]), one())], IfTaught::Refuse, &watch())
        .unwrap_err();
    assert!(message.to_string().contains("the class graph of the model has it below"), "{message}");
    let message = |among: Among| classifier.candidates(&among, 0.0).err().unwrap().to_string();
    assert!(message(Among::Listed(vec![known])).contains("teach it first"));
    assert!(message(Among::Listed(vec!["firs".into()])).contains("did you mean `first`?"));
    assert!(message(Among::Below("first".into())).contains("no trained or taught class below it"));
    let root = classifier.classes()[0].id.clone();
    assert!(message(Among::Listed(vec![root])).contains("the top class"));
    assert!(classifier.search("firstt").unwrap_err().to_string().contains("did you mean `first`?"));
}

#[test]
fn explanations_add_up_to_the_prototypes() {
    let benchmark = benchmark();
    let task = &tasks(&benchmark, 1)[0];
    let ids = ids(&benchmark, task);
    let classifier = opened();
    let parent = classifier.classes()[2].id.clone();
    let classes = [
        new_class(&ids[0], Parents::FromGraph, samples(&benchmark, &task.support[0])),
        new_class("lost", Parents::Unknown, samples(&benchmark, &task.support[1])),
        new_class("child", below(&["parent"]), samples(&benchmark, &task.support[2])),
        new_class("parent", below(&[&parent]), samples(&benchmark, &task.support[3])),
    ];
    let taught = classifier.teach(&classes, IfTaught::Refuse, &watch()).unwrap();
    assert_eq!(taught[0].place, Placement::InGraph);
    assert_eq!(taught[2].place, Placement::Below(vec!["parent".into()]));

    let trained = TrainedModel::read(&model(), &Device::cpu()).unwrap();
    let dim = trained.memory.dim;
    let first = classifier.candidates(&Among::Taught, 1.0).unwrap();
    let first_of = |id: &str| -> Vec<f32> {
        if let Some(row) = trained.info.classes.iter().position(|class| class.id == id) {
            return trained.memory.of(row as u32).to_vec();
        }
        let row = first.classes().iter().position(|class| class.id == id).unwrap();
        first.prototypes()[row * dim..][..dim].to_vec()
    };
    for lambda in [0.0, 0.4] {
        let candidates = classifier.candidates(&Among::Taught, lambda).unwrap();
        assert_eq!(candidates.classes().len(), 4);
        for class in 0..4 {
            let shares = candidates.explain(class);
            let total: f64 = shares.iter().map(|share| share.share).sum();
            assert!((total - 1.0).abs() < 1e-9 && shares.len() > 1, "{shares:?}");
            let mut sum = vec![0.0; dim];
            for share in &shares {
                let prototype = first_of(&share.class.id);
                sum.iter_mut().zip(prototype).for_each(|(sum, p)| *sum += share.weight * f64::from(p));
            }
            let prototype = &candidates.prototypes()[class * dim..][..dim];
            for (sum, &value) in sum.iter().zip(prototype) {
                assert!((sum - f64::from(value)).abs() < 1e-4 * (1.0 + sum.abs()), "{sum} {value}");
            }
        }
        let relations = |id: &str| {
            let class = candidates.classes().iter().position(|class| class.id == id).unwrap();
            candidates.explain(class).into_iter().map(|share| (share.relation, share.class.id))
        };
        assert!(relations("lost").any(|(relation, _)| relation == Relation::Nearest));
        assert!(relations("child").any(|found| found == (Relation::Parent, "parent".into())));
        assert!(relations("parent").any(|found| found == (Relation::Child, "child".into())));
    }
}

#[test]
fn classes_are_listed_and_found() {
    let benchmark = benchmark();
    let task = &tasks(&benchmark, 1)[0];
    let classifier = opened();
    assert!(classifier.candidates(&Among::Taught, 0.0).is_err());
    let parent = classifier.classes().into_iter().find(|class| class.parents.len() == 1).unwrap();
    let classes = [
        new_class("moss green", below(&[&parent.id]), samples(&benchmark, &task.support[0])),
        new_class("lost", Parents::Unknown, samples(&benchmark, &task.support[1])),
    ];
    classifier.teach(&classes, IfTaught::Refuse, &watch()).unwrap();
    let found = classifier.search("MOSS").unwrap();
    assert_eq!((found.len(), found[0].kind, found[0].samples), (1, ClassKind::Taught, 3));
    assert_eq!(found[0].parents, std::slice::from_ref(&parent.id));
    assert_eq!(classifier.search("lost").unwrap()[0].nearest.len(), config().pathways.nearest);
    let kinds = |kind| classifier.classes().iter().filter(|class| class.kind == kind).count();
    let splits = |split| benchmark.rows_of(split).len();
    assert_eq!(kinds(ClassKind::Training), splits(Split::Train));
    assert_eq!(kinds(ClassKind::Untaught), benchmark.classes().len() - splits(Split::Train));
    assert_eq!(kinds(ClassKind::Taught), 2);

    let all = classifier.candidates(&Among::All, 0.0).unwrap();
    assert_eq!(all.classes().len(), splits(Split::Train) - 1 + 2);
    let below = classifier.candidates(&Among::Below(parent.id.clone()), 0.0).unwrap();
    let names: Vec<&str> = below.classes().iter().map(|class| class.name.as_str()).collect();
    assert!(names.contains(&"moss green") && !names.contains(&parent.name.as_str()), "{names:?}");
    let probabilities: f64 = all.rank(&vec![0.1; 64], 9999).iter().map(|ranked| ranked.probability).sum();
    assert!((probabilities - 1.0).abs() < 1e-9);
}

#[test]
fn a_broken_sample_leaves_the_others_alone() {
    let benchmark = benchmark();
    let classifier = opened();
    let mut mixed = samples(&benchmark, &[1, 2]);
    mixed.insert(1, Sample::image("broken", b"none".to_vec()));
    let embeddings = classifier.embed(&mixed, &watch()).unwrap();
    let alone = classifier.embed(&samples(&benchmark, &[2]), &watch()).unwrap();
    assert!(embeddings[1].is_err());
    assert_eq!(embeddings[2].as_ref().unwrap(), alone[0].as_ref().unwrap());
}

#[test]
fn images_of_any_size_go_the_way_of_the_benchmark() {
    let (width, height) = (70, 48);
    let pixels: Vec<u8> = (0..width * height * 3).map(|i| (i * 31 % 251) as u8).collect();
    let mut stored = vec![0; 32 * 32 * 3];
    let view = ImageView::new(width, height, &pixels).unwrap();
    EvalTransform::whole(32).unwrap().apply(view, &mut stored).unwrap();
    let samples =
        [Sample::image("large", bmp(width, height, &pixels)), Sample::image("stored", bmp(32, 32, &stored))];
    let embeddings = opened().embed(&samples, &watch()).unwrap();
    assert_eq!(embeddings[0].as_ref().unwrap(), embeddings[1].as_ref().unwrap());
}

#[test]
fn a_classifier_can_serve_from_any_thread() {
    fn shared<T: Send + Sync>() {}
    shared::<Classifier>();
    shared::<Candidates>();
}

#[test]
fn a_fork_is_taught_for_itself_and_embedded_samples_teach_alike() {
    let benchmark = benchmark();
    let task = &tasks(&benchmark, 1)[0];
    let id = &ids(&benchmark, task)[0];
    let images = samples(&benchmark, &task.support[0]);
    let classifier = opened();
    let fork = classifier.fork();
    let embedded: Vec<Sample> = classifier
        .embed(&images, &watch())
        .unwrap()
        .into_iter()
        .map(|embedding| Sample::embedded("kept", embedding.unwrap()))
        .collect();
    fork.teach(&[new_class(id, Parents::FromGraph, embedded.clone())], IfTaught::Refuse, &watch()).unwrap();
    assert_eq!(classifier.class(id).unwrap().kind, ClassKind::Untaught);
    assert_eq!(fork.class(id).unwrap().kind, ClassKind::Taught);
    let node = fork.graph().find(id).unwrap();
    assert_eq!(fork.entries([node, u32::MAX]), [fork.class(id).unwrap()]);

    classifier.teach(&[new_class(id, Parents::FromGraph, images)], IfTaught::Refuse, &watch()).unwrap();
    assert!(classifier.to_bytes().unwrap() == fork.to_bytes().unwrap());

    let short = Sample::embedded("short", vec![0.0; 3]);
    let refused =
        fork.teach(&[new_class("other", Parents::Unknown, vec![short])], IfTaught::Refuse, &watch());
    assert!(refused.unwrap_err().to_string().starts_with("short: the embedding has 3 numbers"));
}
