//! The published benchmarks, rebuilt from their leaves and WordNet, against their published classes and graphs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use gpn_data::benchmark::{
    Benchmark, BuildConfig, DataSetStatistics, Generator, Preset, Split, SplitConfig, Statistics, build,
};
use gpn_data::source::{SourceKind, SourceSpec};
use gpn_data::task::{Task, read_tasks};
use gpn_taxonomy::{Taxonomy, find_wordnet, read_wordnet};
use serde::Deserialize;
use tempfile::TempDir;

/// A folder of the published data and WordNet, or `None` and a message where one of them is absent.
fn published(name: &str) -> Option<(PathBuf, Taxonomy)> {
    let folder = gpn_golden::data_folder()?.join(name);
    if !folder.is_dir() {
        eprintln!("skipped: {} is absent; set GPN_DATA_DIR to the published data", folder.display());
        return None;
    }
    match find_wordnet().and_then(|dictionary| read_wordnet(&dictionary)) {
        Ok(wordnet) => Some((folder, wordnet.taxonomy)),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

fn rows<T: for<'de> Deserialize<'de>>(path: &Path) -> Vec<T> {
    csv::Reader::from_path(path).unwrap().deserialize().map(Result::unwrap).collect()
}

fn built(kind: SourceKind, path: PathBuf, wordnet: &Taxonomy, config: BuildConfig) -> (TempDir, Benchmark) {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("bench");
    let source = gpn_data::open(&SourceSpec { kind, path }).unwrap();
    let config = BuildConfig { root_id: Some("root".into()), ..config };
    build(&*source, wordnet, "wordnet", &config, &out, &()).unwrap();
    let benchmark = Benchmark::open(&out).unwrap();
    (folder, benchmark)
}

fn by_side(statistics: &Statistics, number: impl Fn(&DataSetStatistics) -> usize) -> Vec<usize> {
    statistics.data_sets.iter().map(number).collect()
}

fn edges(graph: &Taxonomy, name: impl Fn(u32) -> String) -> BTreeSet<(String, String)> {
    graph.edges().map(|(parent, child)| (name(parent), name(child))).collect()
}

#[derive(Deserialize)]
struct TieredClass {
    wnid: String,
    split: Split,
    n_leaves: usize,
}

#[test]
fn published_tiered_imagenet() {
    let Some((folder, wordnet)) = published("tiered") else { return };
    let config = BuildConfig { classes_only: true, ..Preset::TieredImagenet.config() };
    let (_kept, benchmark) = built(SourceKind::TieredImagenet, folder.clone(), &wordnet, config);
    let statistics = Statistics::of(&benchmark);
    assert_eq!(by_side(&statistics, |side| side.classes), [773, 315, 26]);
    assert_eq!(by_side(&statistics, |side| side.samples), [100_320, 45_640, 12_700]);

    let ours: BTreeMap<String, (Split, usize)> = benchmark
        .classes()
        .iter()
        .map(|class| (class.id.clone(), (class.split, class.samples / 20)))
        .collect();
    let published: Vec<TieredClass> = rows(&folder.join("classes.csv"));
    let published: BTreeMap<String, (Split, usize)> =
        published.into_iter().map(|class| (class.wnid, (class.split, class.n_leaves))).collect();
    assert_eq!(ours, published);
    let graph = benchmark.taxonomy();
    let published: Vec<(String, String)> = rows(&folder.join("edges.csv"));
    let published: BTreeSet<_> = published.into_iter().map(|(child, parent)| (parent, child)).collect();
    assert_eq!(published.len(), 1220);
    assert_eq!(edges(graph, |node| graph.id(node).to_owned()), published);
}

#[derive(Deserialize)]
struct TinyClass {
    wnid: String,
    split: Split,
    idx_close: Option<u32>,
    idx_far: Option<u32>,
    is_leaf: u8,
    dist_to_train: u32,
}

fn tiny_imagenet(folder: &Path, wordnet: &Taxonomy) -> Option<(TempDir, Benchmark)> {
    let archive = folder.with_file_name("tiny-imagenet-200.tar");
    if !archive.is_file() {
        eprintln!("skipped: {} is absent", archive.display());
        return None;
    }
    let split =
        SplitConfig { seed: 111, generator: Generator::Reference, min_distance: 4, ..SplitConfig::default() };
    let config = BuildConfig { split, ..BuildConfig::default() };
    Some(built(SourceKind::TinyImagenet, archive, wordnet, config))
}

#[test]
fn published_tiny_imagenet() {
    let Some((folder, wordnet)) = published("tiny-bench") else { return };
    let Some((_kept, benchmark)) = tiny_imagenet(&folder, &wordnet) else { return };
    assert_eq!((benchmark.manifest().counts.samples, benchmark.manifest().counts.broken), (52_994, 0));
    let statistics = Statistics::of(&benchmark);
    // The root is a training class and stands in each of the three graphs.
    assert_eq!(by_side(&statistics, |side| side.classes), [330, 169 + 1, 44 + 1]);
    assert_eq!(by_side(&statistics, |side| side.samples), [19_500, 30_400, 4_960]);

    let mut ours: Vec<(&str, Split, bool, u32)> = benchmark
        .classes()
        .iter()
        .map(|class| (class.id.as_str(), class.split, class.leaf, class.distance))
        .collect();
    ours.sort_unstable();
    let classes: Vec<TinyClass> = rows(&folder.join("classes.csv"));
    let mut published: Vec<(&str, Split, bool, u32)> = classes
        .iter()
        .map(|class| (class.wnid.as_str(), class.split, class.is_leaf == 1, class.dist_to_train))
        .collect();
    published.sort_unstable();
    assert_eq!(ours, published);

    for (split, side, number) in [
        (Split::Close, "close", (|class| class.idx_close) as fn(&TinyClass) -> Option<u32>),
        (Split::Far, "far", |class| class.idx_far),
    ] {
        let data_set = benchmark.data_set(split);
        for class in &classes {
            let row = benchmark.taxonomy().find(&class.wnid).unwrap() as usize;
            let ours = data_set.rows.iter().position(|&other| other == row);
            assert_eq!(ours, number(class).map(|index| index as usize), "{}", class.wnid);
        }
        let index = |graph: &Taxonomy, node| data_set.graph.find(graph.id(node)).unwrap().to_string();
        let test_graph = benchmark.side_graph(split);
        for (graph, file) in [(&data_set.graph, "all"), (&test_graph, "test")] {
            let published: Vec<(String, String)> = rows(&folder.join(format!("{side}_{file}_edges.csv")));
            let published: BTreeSet<_> = published.into_iter().collect();
            assert_eq!(edges(graph, |node| index(graph, node)), published, "{side}_{file}");
        }
    }
    let graph = benchmark.data_set(Split::Train).graph;
    let published: Vec<(String, String)> = rows(&folder.join("train_edges.csv"));
    assert_eq!(edges(&graph, |node| node.to_string()), published.into_iter().collect());
    let graph = benchmark.taxonomy();
    let published: Vec<(String, String)> = rows(&folder.join("graph_full_edges.csv"));
    assert_eq!(edges(graph, |node| graph.id(node).to_owned()), published.into_iter().collect());
    fixed_tasks_fit(&folder, &benchmark);
}

/// Every fixed task asks for classes of its side, and its samples are of leaves below them.
fn fixed_tasks_fit(folder: &Path, benchmark: &Benchmark) {
    let samples = benchmark.sample_rows().unwrap();
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let Some(side) = name.strip_prefix("tasks_").and_then(|rest| rest.split('_').next()) else {
            continue;
        };
        files += 1;
        let data_set = benchmark.data_set(if side == "close" { Split::Close } else { Split::Far });
        let tasks: Vec<Task> = read_tasks(&path).unwrap();
        assert_eq!(tasks.len(), 600, "{name}");
        for task in &tasks {
            let lists = task.support.iter().zip(&task.query);
            for (&class, (support, query)) in task.classes.iter().zip(lists) {
                assert!((class as usize) >= data_set.training, "{name}: class {class} is for training");
                let node = benchmark.taxonomy().find(data_set.graph.id(class)).unwrap();
                let below: BTreeSet<&str> = gpn_taxonomy::leaves_below(benchmark.taxonomy(), node)
                    .into_iter()
                    .map(|leaf| benchmark.taxonomy().id(leaf))
                    .collect();
                let all: BTreeSet<u32> = support.iter().chain(query).copied().collect();
                assert_eq!(all.len(), support.len() + query.len(), "{name}: a sample stands twice");
                assert!(
                    all.iter().all(|&sample| below.contains(samples[sample as usize].leaf.as_str())),
                    "{name}: a sample of class {class} is of another class"
                );
            }
        }
    }
    eprintln!("{files} task files fit");
    assert!(files > 0);
}
