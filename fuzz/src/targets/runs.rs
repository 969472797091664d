//! What `gpn` itself writes and reads again: benchmark directories, settings, runs with their checkpoints, and models.
//!
//! Checksums are put right by the program's own writers: an input holds what they are given.

use std::fs;
use std::path::Path;

use gpn::{Among, Classifier};
use gpn_data::benchmark::{Benchmark, Check, Part, Split, Statistics};
use gpn_data::task::{TaskConfig, TaskSampler};
use gpn_model::{BackboneKind, Device, InputShape, Memory, NamedTensor, Weights, save_weights};
use gpn_train::{Checkpoints, Config, Network, Optimisers, Position, RunDirectory, TrainedModel};

use super::{parts, written};

/// `benchmark.toml` (without its last line), the tables and the samples.
pub(super) fn benchmark(data: &[u8], folder: &Path) -> bool {
    let mut parts = parts(data);
    let mut manifest = parts.next().unwrap_or_default().to_vec();
    let seal = blake3::hash(&manifest).to_hex();
    manifest.extend(format!("# blake3 of all above: {seal}\n").as_bytes());
    written(folder, "benchmark.toml", &manifest);
    for name in
        ["taxonomy.csv", "classes.csv", "samples.csv", "assignments.csv", "blocks.csv", "embeddings.npy"]
    {
        written(folder, name, parts.next().unwrap_or_default());
    }
    let _ = Benchmark::open_with(folder, Check::All);
    let Ok(benchmark) = Benchmark::open_with(folder, Check::Nothing) else { return false };
    let _ = benchmark.sample_rows();
    let _ = Statistics::of(&benchmark);
    let mut tasks = 0;
    for (split, part) in [(Split::Train, Part::Train), (Split::Close, Part::Test), (Split::Far, Part::Test)] {
        let _ = benchmark.data_set(split);
        let pool = benchmark.task_pool(split, part);
        if let Ok(sampler) = TaskSampler::new(&pool, TaskConfig { way: 2, ..TaskConfig::default() }, 0) {
            tasks += u32::from(sampler.task(0).is_ok());
        }
    }
    tasks > 0
}

/// As a file of settings, and each line as one setting.
pub(super) fn config(data: &[u8], _: &Path) -> bool {
    let Ok(text) = std::str::from_utf8(data) else { return false };
    let whole = Config::default().with_toml(text, Path::new("config.toml"));
    let lines = text.lines().take(8).filter(|line| Config::default().with_setting(line).is_ok()).count();
    whole.is_ok() || lines > 0
}

/// Any safetensors file.
pub(super) fn weights(data: &[u8], folder: &Path) -> bool {
    Weights::read(&written(folder, "x.safetensors", data)).is_ok()
}

/// Tensors as lines `NAME 2x3 VALUE`, all of whose values are that value.
fn save(path: &Path, metadata: &[u8], tensors: &[u8]) -> Option<()> {
    const MOST: usize = 1 << 16;
    let mut list = Vec::new();
    for line in std::str::from_utf8(tensors).ok()?.lines() {
        let mut words = line.split(' ');
        let name = words.next()?;
        let shape: Option<Vec<usize>> = words.next()?.split('x').map(|length| length.parse().ok()).collect();
        let shape = shape?;
        let count = shape.iter().try_fold(1_usize, |count, &length| count.checked_mul(length))?;
        let value: f32 = words.next()?.parse().ok()?;
        if count > MOST {
            return None;
        }
        list.push((name, shape, vec![value; count]));
    }
    let tensors = list.iter().map(|(name, shape, values)| NamedTensor { name, shape, values });
    save_weights(path, tensors, Some(std::str::from_utf8(metadata).ok()?)).ok()
}

/// Description and tensors of a model.
pub(super) fn model(data: &[u8], folder: &Path) -> bool {
    let mut parts = parts(data);
    let path = folder.join("model.safetensors");
    let saved = save(&path, parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    if saved.is_none() {
        return false;
    }
    let Ok(model) = TrainedModel::read(&path, &Device::cpu()) else { return false };
    let Ok(classifier) = Classifier::new(model) else { return false };
    let _ = classifier.classes();
    let _ = classifier.search("a");
    classifier.candidates(&Among::All, 0.5).is_ok()
}

/// Settings, origin and metrics of a run, description and tensors of a checkpoint.
pub(super) fn checkpoint(data: &[u8], folder: &Path) -> bool {
    let mut parts = parts(data);
    for name in ["config.toml", "run.json", "metrics.jsonl"] {
        written(folder, name, parts.next().unwrap_or_default());
    }
    let Ok((run, config, _)) = RunDirectory::open(folder) else { return false };
    let _ = run.cut_metrics(1);
    // Settings for images do not fit, and take their time.
    if config.model.backbone != BackboneKind::Identity {
        return false;
    }
    let input = InputShape::Embedding { len: 2 };
    let Ok(mut network) = Network::new(&config, input, CLASSES, &Device::cpu()) else { return false };
    let mut optimisers = Optimisers::new(config.optimiser, config.train.own_moments);
    let mut memory = Memory::default();
    let folder = run.checkpoints();
    // One that an input before left is no part of this one.
    let _ = fs::remove_dir_all(&folder);
    let checkpoints = Checkpoints::new(folder.clone(), &config);
    // A checkpoint holds a hash of the settings: the program's own tells it.
    if checkpoints.save(&Position::default(), &network, &optimisers, &memory).is_err() {
        return false;
    }
    let own = Weights::read(&folder.join("0000000000.safetensors")).expect("a checkpoint just written");
    let hash = own.metadata().and_then(|text| text.split('"').find(|word| word.len() == 64));
    let metadata = String::from_utf8_lossy(parts.next().unwrap_or_default());
    let metadata = metadata.replace("SETTINGS", hash.expect("a hash of the settings"));
    let path = folder.join("0000000002.safetensors");
    if save(&path, metadata.as_bytes(), parts.next().unwrap_or_default()).is_none() {
        return false;
    }
    let loaded = checkpoints.load_newest(&mut network, &mut optimisers, &mut memory);
    // A seed says that it was rounded once; where instructions round twice, going on warns, and that is no damage.
    loaded.is_ok_and(|resumed| resumed.warnings.iter().all(|warning| warning.contains("rounding")))
}

/// Training classes of the seed's run.
const CLASSES: usize = 6;
