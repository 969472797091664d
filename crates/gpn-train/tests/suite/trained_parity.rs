//! Evaluation against golden vectors: a small case always; where it is there, a network trained by the authors' code, end
//! to end on fixed tasks, JPEG files to accuracies.

use std::path::Path;

use gpn_data::benchmark::{Benchmark, Preset, Split, build};
use gpn_data::source;
use gpn_data::task::{Task, read_tasks};
use gpn_golden::{data_folder, golden_folder, json_cases};
use gpn_model::{Device, InputShape, Memory, Weights};
use gpn_train::{
    Config, Embeddings, Estimate, Hierarchy, Network, PathwayConfig, StopHandle, TaskResult, Trained,
    evaluate,
};

use crate::evaluation_case;

/// The benchmark of the fixed tasks, built from the archive of images.
fn tiny_bench(data: &Path, out: &Path) -> Option<Benchmark> {
    let archive = data.join("tiny-imagenet-200.tar");
    let Ok(wordnet) = gpn_taxonomy::find_wordnet() else {
        eprintln!("skipped: WordNet is not installed (set GPN_WORDNET_DIR)");
        return None;
    };
    let source = source::open(&format!("tiny-imagenet:{}", archive.display()).parse().unwrap()).unwrap();
    let taxonomy = gpn_taxonomy::read_wordnet(&wordnet).unwrap().taxonomy;
    let config =
        gpn_data::benchmark::BuildConfig { root_id: Some("root".into()), ..Preset::TinyImagenet.config() };
    build(source.as_ref(), &taxonomy, "wordnet", &config, out, &()).unwrap();
    Some(Benchmark::open(out).unwrap())
}

/// The rows of an accuracy file: base, gpn_plus, gpn, gpn_plus_lambda05.
fn accuracies(path: &Path) -> Vec<[f64; 4]> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let columns = ["base", "gpn_plus", "gpn", "gpn_plus_lambda05"]
        .map(|name| header.iter().position(|column| *column == name).unwrap());
    lines
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            columns.map(|column| cells[column].parse().unwrap())
        })
        .collect()
}

#[test]
fn trained_network_parity() {
    json_cases("h_evaluation").iter().for_each(evaluation_case::check);
    let (Some(golden), Some(data)) = (golden_folder(), data_folder()) else { return };
    if golden.join("h_trained/network.safetensors").is_file() {
        check_trained_network(&golden, &data);
    }
}

fn check_trained_network(golden: &Path, data: &Path) {
    let network_file = golden.join("h_trained/network.safetensors");
    let scratch = tempfile::tempdir().unwrap();
    let Some(benchmark) = tiny_bench(data, &scratch.path().join("tiny")) else { return };

    let weights = Weights::read(&network_file).unwrap();
    let memory = weights.iter().find(|tensor| tensor.name == "memory").unwrap();
    let memory = Memory::new(memory.shape[1], memory.values.to_vec());
    let input = InputShape::Image { height: 32, width: 32 };
    let mut network = Network::new(&Config::default(), input, memory.classes(), &Device::cpu()).unwrap();
    weights.load(&mut network.embedder).unwrap();
    network.method.load(&weights).unwrap();

    let mut files: Vec<_> = std::fs::read_dir(golden.join("h_trained"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "csv"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no accuracy files");
    for file in files {
        let setting =
            file.file_stem().unwrap().to_str().unwrap().strip_prefix("accuracy_").unwrap().to_owned();
        let task_file = data.join(format!("tiny-bench/tasks_{setting}.json"));
        if !task_file.exists() {
            eprintln!("skipped: no {}", task_file.display());
            continue;
        }
        let split = if setting.starts_with("close") { Split::Close } else { Split::Far };
        let expected = accuracies(&file);
        let tasks = read_tasks(&task_file).unwrap();
        let got = evaluated(&network, &memory, &benchmark, split, &tasks);
        let queries: usize = tasks[0].query.iter().map(Vec::len).sum();
        for (column, name) in ["base", "gpn_plus", "gpn", "gpn_plus_lambda05"].iter().enumerate() {
            let [ours, theirs] =
                [&got, &expected].map(|rows| rows.iter().map(|row| row[column]).collect::<Vec<f64>>());
            let [mean, reference] = [&ours, &theirs].map(|values| Estimate::of(values).mean);
            let near = ours
                .iter()
                .zip(&theirs)
                .filter(|(a, b)| (*a - *b).abs() <= 100.0 / queries as f64 + 1e-6)
                .count();
            let share = near as f64 / tasks.len() as f64;
            eprintln!(
                "{setting} {name}: {mean:.3} against {reference:.3}, {:.1}% of tasks within one query",
                100.0 * share
            );
            assert!((mean - reference).abs() <= 0.15, "{setting} {name}: mean {mean} against {reference}");
            assert!(share >= 0.95, "{setting} {name}: {share} of tasks within one query");
        }
    }
}

/// Accuracies of each task: base, GPN+, GPN, GPN+ with lambda 0.5.
fn evaluated(
    network: &Network,
    memory: &Memory,
    benchmark: &Benchmark,
    split: Split,
    tasks: &[Task],
) -> Vec<[f64; 4]> {
    let stop = StopHandle::default();
    let embeddings = Embeddings::of_tasks(&network.embedder, benchmark.store(), tasks, &stop).unwrap();
    let data_set = benchmark.data_set(split);
    let nearest = PathwayConfig::default().nearest;
    let trained = Trained { method: network.method.as_ref(), memory, nearest, texts: &[] };
    let run = |hierarchy| -> Vec<TaskResult> {
        evaluate(trained, &data_set, &embeddings, tasks, hierarchy, 0.5, &stop).unwrap()
    };
    let (known, unknown) = (run(Hierarchy::Known), run(Hierarchy::Unknown));
    known.iter().zip(unknown).map(|(k, u)| [k.base, k.method, u.method, k.mixed]).collect()
}
