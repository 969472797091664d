//! Damaged and hostile files: nothing that was not written is believed.
//!
//! `GPN_FLIPS=1000` looks at as many flipped bits of a model and of a checkpoint; the suite itself at fewer.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use gpn::{Classifier, IfTaught, NewClass, Parents, Sample, Watch};
use gpn_model::{Device, InputShape, Memory, Weights, save_weights};
use gpn_train::{
    Checkpoints, Config, Host, Network, Optimisers, Origin, RunDirectory, TrainedModel, Trainer,
};
use serde_json::{Value, json};

use crate::fixture::{benchmark, config};

/// A run of two checkpoints (10 and 20 of 24 episodes done) and its finished model, made once.
struct Files {
    folder: tempfile::TempDir,
    whole: Vec<u8>,
}

fn files() -> &'static Files {
    static FILES: OnceLock<Files> = OnceLock::new();
    FILES.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let checkpoints = folder.path().join("checkpoints");
        let mut trainer = Trainer::new(&config(), benchmark(), &Device::cpu()).unwrap();
        let stop = |done, _: Option<&gpn_train::Progress>| {
            if done == 20 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        trainer.run(Some(&checkpoints), stop).unwrap();
        let copy = folder.path().join("copy");
        copy_folder(&checkpoints, &copy);
        let whole = finished(&copy).0;
        let model = folder.path().join("model.safetensors");
        std::fs::write(&model, &whole).unwrap();
        // A taught class, so that its part of the file is looked at as well.
        let classifier = Classifier::open(&model, &Device::cpu()).unwrap();
        let samples = vec![Sample::image("grey", bmp())];
        let grey = NewClass { class: "grey".into(), parents: Parents::Unknown, samples };
        classifier.teach(&[grey], IfTaught::Refuse, &Watch::default()).unwrap();
        classifier.save(&model).unwrap();
        Files { folder, whole }
    })
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// Goes on in `folder` to the end: the model's bytes, and the warnings.
fn finished(folder: &Path) -> (Vec<u8>, Vec<String>) {
    let mut trainer = Trainer::new(&config(), benchmark(), &Device::cpu()).unwrap();
    let warnings = trainer.resume(folder).unwrap().warnings;
    trainer.run(Some(folder), |_, _| ControlFlow::Continue(())).unwrap();
    let path = folder.join("model.safetensors");
    trainer.save_model(&path).unwrap();
    (std::fs::read(path).unwrap(), warnings)
}

/// An image of 4x4 grey pixels.
fn bmp() -> Vec<u8> {
    let mut file = b"BM".to_vec();
    for value in [54 + 48_u32, 0, 54, 40, 4, 4, 1 | 24 << 16, 0, 0, 0, 0, 0, 0] {
        file.extend(value.to_le_bytes());
    }
    file.extend([128; 48]);
    file
}

/// Flips single bits of a file, a third of them in its header, and counts those that `read` accepts. `None` from `read` is a
/// refusal; whatever else it returns must be what the whole file gives.
fn accepted_flips<T: PartialEq>(path: &Path, mut read: impl FnMut() -> Option<T>) -> usize {
    let flips: usize = std::env::var("GPN_FLIPS").ok().and_then(|flips| flips.parse().ok()).unwrap_or(90);
    let bytes = std::fs::read(path).unwrap();
    let whole = read().unwrap();
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut accepted = 0;
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for flip in 0..flips {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let range = if flip % 3 == 0 { 0..header } else { header..bytes.len() };
        let at = range.start + (random >> 20) as usize % range.len();
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (random >> 61);
        std::fs::write(path, changed).unwrap();
        if let Some(found) = read() {
            assert!(found == whole, "byte {at} was changed, and what it says is believed");
            accepted += 1;
        }
    }
    eprintln!("{flips} flips, {accepted} of them without effect");
    std::fs::write(path, bytes).unwrap();
    accepted
}

#[test]
fn flipped_bits_of_a_model_are_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("m.safetensors");
    std::fs::copy(files().folder.path().join("model.safetensors"), &path).unwrap();
    let accepted = accepted_flips(&path, || {
        let model = TrainedModel::read(&path, &Device::cpu()).ok()?;
        Some((model.info, model.memory, model.network.state()))
    });
    assert_eq!(accepted, 0);
}

#[test]
fn flipped_bits_of_a_checkpoint_are_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let newest = "0000000020.safetensors";
    let path = scratch.path().join(newest);
    std::fs::copy(files().folder.path().join("checkpoints").join(newest), &path).unwrap();
    let config = Trainer::new(&config(), benchmark(), &Device::cpu()).unwrap().config().clone();
    let classes = benchmark().data_set(gpn_data::benchmark::Split::Train).rows.len();
    let input = InputShape::Image { height: 32, width: 32 };
    let mut network = Network::new(&config, input, classes, &Device::cpu()).unwrap();
    let checkpoints = Checkpoints::new(scratch.path().to_owned(), &config);
    let accepted = accepted_flips(&path, || {
        let mut optimisers = Optimisers::new(config.optimiser, config.train.own_moments);
        let mut memory = Memory::default();
        let resumed = checkpoints.load_newest(&mut network, &mut optimisers, &mut memory).ok()?;
        Some((resumed, memory, network.state()))
    });
    assert_eq!(accepted, 0);
}

#[test]
fn a_damaged_newest_checkpoint_is_put_aside_with_a_warning() {
    let scratch = tempfile::tempdir().unwrap();
    copy_folder(&files().folder.path().join("checkpoints"), scratch.path());
    let newest = scratch.path().join("0000000020.safetensors");
    let mut bytes = std::fs::read(&newest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 16;
    std::fs::write(&newest, &bytes).unwrap();
    let (model, warnings) = finished(scratch.path());
    assert!(model == files().whole, "from the checkpoint before, the run comes to the same end");
    assert_eq!(warnings.len(), 1);
    for part in ["0000000020.safetensors is damaged", "0000000020.safetensors.damaged", "episode 10"] {
        assert!(warnings[0].contains(part), "{}", warnings[0]);
    }
    assert!(std::fs::read(scratch.path().join("0000000020.safetensors.damaged")).unwrap() == bytes);
    assert!(finished(scratch.path()).1.is_empty());
}

#[test]
fn a_run_without_a_sound_checkpoint_does_not_begin_anew() {
    let scratch = tempfile::tempdir().unwrap();
    copy_folder(&files().folder.path().join("checkpoints"), scratch.path());
    for episode in ["10", "20"] {
        let path = scratch.path().join(format!("00000000{episode}.safetensors"));
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() / 3]).unwrap();
    }
    let mut trainer = Trainer::new(&config(), benchmark(), &Device::cpu()).unwrap();
    let message = trainer.resume(scratch.path()).unwrap_err().to_string();
    assert!(message.contains("no checkpoint of the run is sound"), "{message}");
    assert!(scratch.path().join("0000000020.safetensors").exists(), "nothing is put aside");
}

#[test]
fn a_checkpoint_belongs_to_its_settings() {
    let checkpoints = files().folder.path().join("checkpoints");
    let resumed = |assignment: &str| {
        let config = config().with_setting(assignment).unwrap();
        Trainer::new(&config, benchmark(), &Device::cpu()).unwrap().resume(&checkpoints)
    };
    for assignment in ["train.seed=1", "rate.initial=0.01", "task.shot=2", "memory.samples=4"] {
        let message = resumed(assignment).unwrap_err().to_string();
        assert!(message.contains("other settings than config.toml has"), "{assignment}: {message}");
    }
    for assignment in ["train.episodes=30", "train.workers=1", "train.log_every=3"] {
        assert_eq!(resumed(assignment).unwrap().position.unwrap().episode, 20, "{assignment}");
    }
}

#[test]
fn a_truncated_config_is_not_believed() {
    let scratch = tempfile::tempdir().unwrap();
    let run = scratch.path().join("run");
    let origin = Origin {
        program: "gpn".into(),
        commit: None,
        data: "data".into(),
        benchmark: "x".into(),
        seed: 0,
        host: Host::here(),
    };
    let config = Config::default().with_setting("train.seed=7").unwrap();
    drop(RunDirectory::create(&run, &config, &origin, false).unwrap());
    assert_eq!(RunDirectory::open(&run).unwrap().1, config);
    let path = run.join("config.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    for kept in [0, 1, 12, text.lines().count() - 1] {
        let cut: String = text.lines().take(kept).flat_map(|line| [line, "\n"]).collect();
        std::fs::write(&path, cut).unwrap();
        let message = RunDirectory::open(&run).err().unwrap().to_string();
        assert!(message.contains("config.toml: setting `") && message.contains("missing"), "{message}");
    }
}

/// Writes the model with a changed description and a checksum that fits it; why it is refused.
fn refusal(change: impl FnOnce(&mut Value)) -> String {
    let scratch = tempfile::tempdir().unwrap();
    let weights = Weights::read(&files().folder.path().join("model.safetensors")).unwrap();
    let mut info: Value = serde_json::from_str(weights.metadata().unwrap()).unwrap();
    change(&mut info);
    let path: PathBuf = scratch.path().join("hostile.safetensors");
    save_weights(&path, weights.iter(), Some(&info.to_string())).unwrap();
    let read = TrainedModel::read(&path, &Device::cpu());
    read.err().expect("a hostile description was believed").to_string()
}

#[test]
fn hostile_descriptions_are_refused_before_memory_is_taken() {
    let changes: [(&str, Value); 25] = [
        ("/config/propagation/steps", json!(1_u64 << 31)),
        ("/config/propagation/heads", json!(1_u64 << 40)),
        ("/config/propagation/heads", json!(1000)),
        ("/config/propagation/hidden", json!(1_u64 << 40)),
        ("/config/propagation/hidden", json!(60_000)),
        ("/config/propagation/keep", json!(1e300)),
        ("/config/schedule/lambda", json!(1e300)),
        ("/config/schedule/lambda", json!(null)),
        ("/config/model/image_size", json!(1_u64 << 31)),
        ("/config/model/backbone", json!("resnet99")),
        ("/config/train/method", json!("magic")),
        ("/config/pathways/nearest", json!(1_u64 << 50)),
        ("/config/memory/share", json!(7)),
        ("/input/image/height", json!(1_u64 << 40)),
        ("/input/image/width", json!(0)),
        ("/input", json!({"embedding": {"len": 1_u64 << 40}})),
        ("/stored_size", json!(null)),
        ("/stored_size", json!(1_u64 << 30)),
        ("/root", json!(1 << 20)),
        ("/edges/0", json!([0, 1 << 20])),
        ("/edges/0", json!([3, 3])),
        ("/classes/1/id", json!("")),
        ("/validation/by_lambda", json!([])),
        ("/taught/0/samples", json!([])),
        ("/taught/0/place", json!({"below": ["nowhere"]})),
    ];
    for (place, value) in changes {
        let message = refusal(|info| *info.pointer_mut(place).unwrap() = value.clone());
        assert!(message.contains("hostile.safetensors"), "{place} = {value}: {message}");
    }
    let message = refusal(|info| info["classes"][2]["id"] = info["classes"][1]["id"].clone());
    assert!(message.contains("is listed twice"), "{message}");
    let message = refusal(|info| info["held_out"][0]["id"] = info["classes"][1]["id"].clone());
    assert!(message.contains("is listed twice"), "{message}");
    let message = refusal(|info| {
        let first = info["edges"][0].clone();
        info["edges"].as_array_mut().unwrap().push(json!([first[1], first[0]]));
    });
    assert!(message.contains("cycle"), "{message}");
    let message = refusal(|info| {
        let taught = info["taught"][0].clone();
        info["taught"].as_array_mut().unwrap().push(taught);
    });
    assert!(message.contains("out of order or listed twice"), "{message}");
    let message = refusal(|info| info["taught"][0]["id"] = info["classes"][1]["id"].clone());
    assert!(message.contains("has no place"), "{message}");
    let message = refusal(|info| {
        info["config"]["train"]["method"] = json!("gnn");
        info["config"]["gnn"]["hidden"] = json!(60_000);
    });
    assert!(message.contains("its method needs"), "{message}");
    let message = refusal(|info| {
        info["config"]["model"]["backbone"] = json!("mlp");
        info["input"] = json!({"embedding": {"len": 1_u64 << 60}});
    });
    assert!(message.contains("its backbone needs"), "{message}");
}
