//! Benchmarks made from arrays, without a directory.

use std::sync::Arc;

use gpn_data::benchmark::{
    AssignConfig, Benchmark, BuildConfig, Check, Part, Split, SplitConfig, Statistics, Store, build,
};
use gpn_data::loader::{Batch, Loader, LoaderConfig, Plan, View};
use gpn_data::source::{ArraySource, Source, SourceKind, SourceSpec};
use gpn_data::task::{Sampling, Task, TaskConfig, TaskSampler};
use gpn_data::transform::CropConfig;
use gpn_taxonomy::{Taxonomy, TaxonomyBuilder};

/// A tree of three levels: the root, six groups, six leaves each.
fn tree() -> (Taxonomy, Vec<String>) {
    tree_with(false)
}

fn tree_with(texts: bool) -> (Taxonomy, Vec<String>) {
    let mut builder = TaxonomyBuilder::new();
    let root = builder.add_class("root");
    let mut leaves = Vec::new();
    for a in 0..6 {
        let above = builder.add_class(&format!("group {a}"));
        builder.set_name(above, &format!("the group, \"{a}\""));
        if texts && a != 2 {
            builder.set_description(above, &format!("all that is \"{a}\",\nand more"));
        }
        builder.add_edge(root, above, None);
        for b in 0..6 {
            let id = format!("leaf {a}{b}");
            let leaf = builder.add_class(&id);
            builder.add_edge(above, leaf, None);
            leaves.push(id);
        }
    }
    (builder.build().unwrap().taxonomy, leaves)
}

fn labels(leaves: &[String], per_leaf: usize) -> Vec<&str> {
    (0..per_leaf).flat_map(|_| leaves.iter().map(String::as_str)).collect()
}

fn config() -> BuildConfig {
    BuildConfig {
        split: SplitConfig { seed: 3, train_share: 0.6, close: 1..=1, far: 2..=9, ..SplitConfig::default() },
        assign: AssignConfig { seed: 3, per_leaf: 4, ..AssignConfig::default() },
        size: 8,
        ..BuildConfig::default()
    }
}

fn batches(benchmark: Benchmark) -> Vec<(Task, Vec<u32>)> {
    let benchmark = Arc::new(benchmark);
    let pool = benchmark.task_pool(Split::Train, Part::Train);
    let sampling = TaskConfig { sampling: Sampling::Both, ..TaskConfig::default() };
    let sampler = TaskSampler::new(&pool, sampling, 5).unwrap();
    let config = LoaderConfig { size: 6, view: View::Train(CropConfig::default()), seed: 7, workers: 2 };
    let mut loader = Loader::start(benchmark, config, 0..8, move |index| {
        let task = sampler.task(index)?;
        let samples = task.support.iter().chain(&task.query).flatten().copied().collect();
        Ok(Plan { samples, tag: task })
    });
    let bits = |batch: Batch<Task>| (batch.tag, batch.inputs.iter().map(|x| x.to_bits()).collect());
    std::iter::from_fn(|| loader.next_batch()).map(|batch| bits(batch.unwrap())).collect()
}

/// The same benchmark twice: in memory, and as a directory that `written` is built to.
fn assert_same(source: &dyn Source, written: &dyn Source, config: &BuildConfig) -> (Benchmark, Benchmark) {
    assert_same_with(&tree().0, source, written, config)
}

fn assert_same_with(
    graph: &Taxonomy,
    source: &dyn Source,
    written: &dyn Source,
    config: &BuildConfig,
) -> (Benchmark, Benchmark) {
    let (made, report) = Benchmark::from_source(source, graph, config, &()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("bench");
    let built = build(written, graph, "edges:tree.csv", config, &out, &()).unwrap();
    let opened = Benchmark::open_with(&out, Check::All).unwrap();
    assert_eq!(made.folder(), None);
    assert_eq!(opened.folder(), Some(out.as_path()));
    assert_eq!(made.manifest(), &report.manifest);
    assert_eq!(made.manifest().fingerprint(), opened.manifest().fingerprint());
    assert_eq!(made.classes(), opened.classes());
    assert_eq!(made.root(), opened.root());
    if !config.classes_only {
        assert_eq!(made.sample_rows().unwrap(), opened.sample_rows().unwrap());
    }
    assert_eq!(
        (&report.warnings, &report.broken, &report.without_samples),
        (&built.warnings, &built.broken, &built.without_samples)
    );
    for row in 0..made.classes().len() {
        for part in [Part::Train, Part::Val, Part::Test] {
            assert_eq!(made.samples(row, part), opened.samples(row, part));
            assert_eq!(made.sample_count(row, part), opened.sample_count(row, part));
        }
    }
    assert_eq!(format!("{:?}", Statistics::of(&made)), format!("{:?}", Statistics::of(&opened)));
    assert!(made.taxonomy().edges().eq(opened.taxonomy().edges()));
    for split in [Split::Close, Split::Far] {
        assert!(!made.rows_of(split).is_empty(), "{split:?}");
        assert_eq!(made.data_set(split).rows, opened.data_set(split).rows);
    }
    let header = std::fs::read_to_string(out.join("classes.csv")).unwrap();
    let described = graph.nodes().any(|node| graph.description(node).is_some());
    let expected = if described {
        "id,name,split,leaf,samples,distance,description"
    } else {
        "id,name,split,leaf,samples,distance"
    };
    assert_eq!(header.lines().next(), Some(expected));
    (made, opened)
}

#[test]
fn images_in_memory_make_the_benchmark_that_a_directory_holds() {
    let (_, leaves) = tree();
    let labels = labels(&leaves, 25);
    // Wider than high, so that they are cut to squares as images of a folder are.
    let pixels: Vec<u8> = (0..labels.len() * 10 * 12 * 3).map(|at| (at * 7 % 251) as u8).collect();
    let source = ArraySource::images(pixels, [labels.len(), 10, 12, 3], &labels).unwrap();
    let (made, opened) = assert_same(&source, &source, &config());
    let (Store::Images { size: 8, array: a }, Store::Images { size: 8, array: b }) =
        (made.store(), opened.store())
    else {
        panic!("both hold images of 8 pixels");
    };
    assert!(a.bytes() == b.bytes() && a.header().shape == b.header().shape);
    let drawn = batches(made);
    assert_eq!(drawn.len(), 8);
    assert!(drawn == batches(opened), "tasks and batches are the same");
}

#[test]
fn embeddings_in_memory_make_the_benchmark_of_the_same_table_on_disk() {
    let (_, leaves) = tree();
    let labels = labels(&leaves, 20);
    let values: Vec<f32> = (0..labels.len() * 3).map(|at| at as f32 / 16.0).collect();
    let source = ArraySource::embeddings(&values[..], 3, &labels).unwrap();

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.npy");
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let mut file =
        gpn_data::format::npy::RowWriter::create(&path, gpn_data::format::element::Element::F32, &[3])
            .unwrap();
    file.write(&bytes).unwrap();
    file.finish().unwrap();
    std::fs::write(folder.path().join("labels.txt"), labels.join("\n")).unwrap();
    let table = gpn_data::open(&SourceSpec { kind: SourceKind::Embeddings, path }).unwrap();

    let (made, opened) = assert_same(&source, table.as_ref(), &config());
    assert!(matches!(made.store(), Store::Embeddings { dim: 3, .. }));
    assert!(batches(made) == batches(opened));
}

#[test]
fn classes_without_samples_stay_in_memory_too() {
    let (_, leaves) = tree();
    let source = ArraySource::embeddings(vec![0.0; leaves.len()], 1, &leaves).unwrap();
    let (made, _) = assert_same(&source, &source, &BuildConfig { classes_only: true, ..config() });
    assert!(made.store().is_empty() && made.sample_rows().unwrap().is_empty());
    assert!(made.sample_count(made.root(), Part::Train) > 0);
}

#[test]
fn descriptions_are_kept_with_the_classes() {
    let (graph, leaves) = tree_with(true);
    let labels = labels(&leaves, 20);
    let source = ArraySource::embeddings(vec![0.0; labels.len()], 1, &labels).unwrap();
    let (made, opened) = assert_same_with(&graph, &source, &source, &config());
    let plain = Benchmark::from_source(&source, &tree().0, &config(), &()).unwrap().0;
    assert_ne!(plain.manifest().fingerprint(), made.manifest().fingerprint());
    for benchmark in [&made, &opened] {
        let described = |graph: &Taxonomy, id: &str| {
            graph.find(id).map(|node| graph.description(node).map(str::to_owned))
        };
        let text = Some("all that is \"4\",\nand more".to_owned());
        assert_eq!(described(benchmark.taxonomy(), "group 4"), Some(text.clone()));
        assert_eq!(described(benchmark.taxonomy(), "group 2"), Some(None));
        // Contraction to one side keeps the texts of the classes that stay.
        let mut kept = 0;
        for split in [Split::Train, Split::Close, Split::Far] {
            kept += usize::from(described(&benchmark.data_set(split).graph, "group 4") == Some(text.clone()));
        }
        assert!(kept > 0);
    }
}
