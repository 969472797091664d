//! The whole journey through the library alone: arrays in memory in, a model in a buffer out, no file but the run directory.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gpn::{
    ArraySource, Benchmark, BuildConfig, Check, Classifier, Config, Device, EvaluationRequest, Event,
    IfTaught, NewClass, Parents, PredictRequest, Prediction, ResumeRequest, Run, Sample, StartRequest,
    TestTasks, Trained, TrainedModel, Watch, evaluate_model,
};
use gpn_data::source::{Source as _, SyntheticSource};
use gpn_data::synthetic::SyntheticConfig;

const SIZE: usize = 32;

/// Drawn images as arrays: pixels, labels and the class graph.
fn arrays() -> (Vec<u8>, Vec<String>, gpn_taxonomy::Taxonomy) {
    let source = SyntheticSource::new(SyntheticConfig { per_leaf: 60, ..SyntheticConfig::default() });
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    for (row, sample) in source.samples().iter().enumerate() {
        pixels.extend_from_slice(source.image(row).unwrap().pixels());
        labels.push(source.leaves()[sample.leaf as usize].id.clone());
    }
    (pixels, labels, source.taxonomy().unwrap().unwrap().taxonomy)
}

fn config() -> Config {
    ["train.episodes=60", "train.auxiliary_batch=16", "validation.tasks=20", "train.checkpoint_every=1000"]
        .iter()
        .fold(Config::default(), |config, setting| config.with_setting(setting).unwrap())
}

/// A PNG of one image.
fn png(pixels: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, SIZE as u32, SIZE as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header().unwrap().write_image_data(pixels).unwrap();
    bytes
}

#[test]
fn from_arrays_to_a_model_in_a_buffer() {
    let (pixels, labels, taxonomy) = arrays();
    let source = ArraySource::images(&pixels[..], [labels.len(), SIZE, SIZE, 3], &labels).unwrap();
    let mut build = BuildConfig { size: SIZE as u32, ..BuildConfig::default() };
    build.assign.per_leaf = 6;
    let benchmark = || Benchmark::from_source(&source, &taxonomy, &build, &()).unwrap().0;

    // Training is stopped from another thread, within a second, and resumed.
    let scratch = tempfile::tempdir().unwrap();
    let (folder, device, config) = (scratch.path().join("run"), Device::cpu(), config());
    let request = StartRequest::new(&config, &device);
    let asked_at = std::sync::Mutex::new(None);
    let stopping = |event: &Event<'_>| match event {
        Event::Episode { done: 7, .. } => {
            *asked_at.lock().unwrap() = Some(Instant::now());
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    };
    let mut run = Run::start(&folder, benchmark(), &request, &Watch::new(&stopping)).unwrap();
    let Trained::Stopped { episode } = run.train(&Watch::new(&stopping)).unwrap() else {
        panic!("the run was not stopped")
    };
    assert_eq!(episode, 7);
    assert!(asked_at.lock().unwrap().unwrap().elapsed() < Duration::from_secs(1));
    drop(run);
    let resume = ResumeRequest { data: None, episodes: None, check: Check::Sampled, device: &device };
    let mut run = Run::resume_on(&folder, benchmark(), &resume, &Watch::default()).unwrap();
    assert!(matches!(run.train(&Watch::default()).unwrap(), Trained::Finished(_)));

    // Evaluation gives plain values that survive JSON.
    let model = TrainedModel::read(&run.directory().model(), &device).unwrap();
    let request = EvaluationRequest { tasks: 20, queries: 5, ..EvaluationRequest::default() };
    let (benchmark, watch) = (benchmark(), Watch::default());
    let tasks = TestTasks::of(&benchmark, &request).unwrap();
    let evaluation = evaluate_model(&model, &benchmark, &tasks, &request, &watch).unwrap();
    let json = serde_json::to_string(&evaluation).unwrap();
    assert_eq!(serde_json::from_str::<gpn::Evaluation>(&json).unwrap().per_task, evaluation.per_task);
    assert!(evaluation.method.mean > 20.0, "{:?}", evaluation.method);

    // Eight threads predict while a ninth teaches: every answer is that of some version.
    let image = |row: usize| png(&pixels[row * SIZE * SIZE * 3..][..SIZE * SIZE * 3]);
    let queries: Vec<Sample> = (0..4).map(|row| Sample::image(format!("q{row}"), image(row * 50))).collect();
    let classifier = Classifier::new(model).unwrap();
    let new = |number: usize| NewClass {
        class: format!("new {number}"),
        parents: Parents::Unknown,
        samples: vec![Sample::image("s", image(number * 31 + 1))],
    };
    let predict = |classifier: &Classifier| -> Vec<Prediction> {
        let predictions = classifier.predict(&queries, &PredictRequest::default(), &watch).unwrap();
        predictions.into_iter().map(Result::unwrap).collect()
    };
    let shadow = Classifier::from_bytes(&classifier.to_bytes().unwrap(), "shadow", &device).unwrap();
    let mut versions = vec![predict(&shadow)];
    for number in 0..3 {
        shadow.teach(&[new(number)], IfTaught::Refuse, &watch).unwrap();
        versions.push(predict(&shadow));
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let found = predict(&classifier);
                    assert!(versions.contains(&found), "an answer of no version");
                }
            });
        }
        scope.spawn(|| {
            for number in 0..3 {
                classifier.teach(&[new(number)], IfTaught::Refuse, &watch).unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
    });

    // Saved to a buffer and opened again it is the same.
    let mut buffer = Vec::new();
    classifier.write(&mut buffer).unwrap();
    let again = Classifier::from_reader(&buffer[..], "buffer", &device).unwrap();
    assert_eq!(predict(&again), *versions.last().unwrap());
    assert_eq!(buffer, shadow.to_bytes().unwrap());
    again.forget("new 2").unwrap();
    assert_eq!(predict(&again), versions[2]);
}

#[test]
fn stopping_during_validation_leaves_a_run_that_ends_the_same() {
    let (pixels, labels, taxonomy) = arrays();
    let source = ArraySource::images(&pixels[..], [labels.len(), SIZE, SIZE, 3], &labels).unwrap();
    let mut build = BuildConfig { size: SIZE as u32, ..BuildConfig::default() };
    build.assign.per_leaf = 6;
    let benchmark = || Benchmark::from_source(&source, &taxonomy, &build, &()).unwrap().0;
    let (device, scratch) = (Device::cpu(), tempfile::tempdir().unwrap());
    let config = [
        "train.episodes=12",
        "train.auxiliary_batch=8",
        "validation.tasks=30",
        "validation.every=6",
        "memory.view=training",
        "memory.norm=training",
    ]
    .iter()
    .fold(Config::default(), |config, setting| config.with_setting(setting).unwrap());
    let finished = |folder: &std::path::Path| std::fs::read(folder.join("model.safetensors")).unwrap();
    let whole = scratch.path().join("whole");
    let request = StartRequest::new(&config, &device);
    Run::start(&whole, benchmark(), &request, &Watch::default()).unwrap().train(&Watch::default()).unwrap();

    // Stopped wherever it happens to be, again and again, from another thread.
    let parts = scratch.path().join("parts");
    // Ever longer pauses, so that a slow machine comes to the end, too.
    for pause in std::iter::successors(Some(3_u64), |pause| Some(pause + pause / 3 + 2)) {
        let watch = Watch::default();
        let mut run = if parts.join("config.toml").is_file() {
            let resume = ResumeRequest { data: None, episodes: None, check: Check::Sampled, device: &device };
            Run::resume_on(&parts, benchmark(), &resume, &watch).unwrap()
        } else {
            Run::start(&parts, benchmark(), &request, &watch).unwrap()
        };
        let stop = watch.stop_handle();
        let timer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(pause));
            stop.stop();
        });
        let outcome = run.train(&watch).unwrap();
        timer.join().unwrap();
        if matches!(outcome, Trained::Finished(_)) {
            break;
        }
    }
    assert!(finished(&whole) == finished(&parts));
}
