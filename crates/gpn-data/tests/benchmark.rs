//! From a source to a benchmark directory, and from there to tasks and batches.

mod made;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gpn_data::benchmark::{
    AssignConfig, Benchmark, BuildConfig, BuildReport, Check, Part, Split, SplitConfig, Statistics, Store,
    build,
};
use gpn_data::loader::{Batch, Inputs, Loader, LoaderConfig, Plan, View};
use gpn_data::rng::{Purpose, Stream};
use gpn_data::source::{Source, SourceKind, SourceSpec, SyntheticSource};
use gpn_data::synthetic::SyntheticConfig;
use gpn_data::task::{Sampling, Task, TaskConfig, TaskSampler, read_tasks, write_tasks};
use gpn_data::transform::CropConfig;
use gpn_data::{DataError, ErrorKind, open};
use gpn_taxonomy::{Taxonomy, TaxonomyBuilder};

/// The built-in data set, small: 8x8 pixels, three samples of each leaf for a class.
fn synthetic(seed: u64, out: &Path) -> BuildReport {
    let source = SyntheticSource::new(SyntheticConfig { size: 8, per_leaf: 30, seed });
    let taxonomy = source.taxonomy().unwrap().unwrap().taxonomy;
    let general = BuildConfig::synthetic(seed);
    let assign = AssignConfig { per_leaf: 3, ..general.assign.clone() };
    let config = BuildConfig { size: 8, assign, ..general };
    build(&source, &taxonomy, "built in", &config, out, &()).unwrap()
}

/// root > animal > cat, dog, bird; root > thing > cup, car.
const EDGES: [(&str, &str); 7] = [
    ("root", "animal"),
    ("root", "thing"),
    ("animal", "cat"),
    ("animal", "dog"),
    ("animal", "bird"),
    ("thing", "cup"),
    ("thing", "car"),
];

fn graph(edges: &[(&str, &str)]) -> Taxonomy {
    let mut builder = TaxonomyBuilder::new();
    for (parent, child) in edges {
        let [parent, child] = [parent, child].map(|id| builder.add_class(id));
        builder.add_edge(parent, child, None);
    }
    builder.build().unwrap().taxonomy
}

/// A folder of `count` images of each of the five leaves of [`EDGES`].
fn image_folder(root: &Path, count: u8) -> PathBuf {
    let leaves = ["bird", "car", "cat", "cup", "dog"];
    let files = leaves
        .iter()
        .zip(0..)
        .flat_map(|(leaf, red)| {
            (0..count).map(move |n| (format!("{leaf}/{n}.png"), made::png([red * 40, n, 9])))
        })
        .collect();
    made::directory(root, &files)
}

fn source(kind: SourceKind, path: &Path) -> Box<dyn Source> {
    open(&SourceSpec { kind, path: path.to_owned() }).unwrap()
}

/// Everything is for training, and each class has two samples of each leaf.
fn train_on_all() -> BuildConfig {
    BuildConfig {
        split: SplitConfig { train_share: 1.0, ..SplitConfig::default() },
        assign: AssignConfig { per_leaf: 2, val_share: 0.5, ..AssignConfig::default() },
        size: 8,
        ..BuildConfig::default()
    }
}

fn build_from(
    source: &dyn Source,
    taxonomy: &Taxonomy,
    config: &BuildConfig,
    out: &Path,
) -> Result<BuildReport, DataError> {
    build(source, taxonomy, "edges:test", config, out, &())
}

fn files_of(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(&path).unwrap()))
        .collect()
}

#[test]
fn from_the_built_in_data_to_batches() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("bench");
    let report = synthetic(0, &out);
    assert_eq!((report.warnings.len(), report.broken.len(), report.without_samples.len()), (0, 0, 0));

    let benchmark = Arc::new(Benchmark::open(&out).unwrap());
    assert_eq!(benchmark.manifest(), &report.manifest);
    Benchmark::open_with(&out, Check::All).unwrap();
    let statistics = Statistics::of(&benchmark);
    let [train, close, far] = &statistics.data_sets[..] else { panic!("three data sets") };
    assert_eq!(train.classes + close.classes + far.classes, benchmark.classes().len() + 2);
    assert!(close.classes > 15 && far.classes > 15, "{statistics:?}");
    // Classes of one leaf have three samples here, too few to hold one out.
    assert!(train.val_samples > 0 && train.val_samples * 10 < train.samples, "{statistics:?}");

    for split in [Split::Close, Split::Far] {
        let pool = benchmark.task_pool(split, Part::Test);
        let sampler = TaskSampler::new(&pool, TaskConfig { queries: 2, ..TaskConfig::default() }, 0).unwrap();
        let tasks: Vec<Task> = (0..20).map(|i| sampler.task(i).unwrap()).collect();
        let data_set = benchmark.data_set(split);
        for task in &tasks {
            for (class, samples) in task.classes.iter().zip(&task.support) {
                let row = data_set.rows[*class as usize];
                assert_eq!(benchmark.classes()[row].split, split);
                assert!(samples.iter().all(|s| benchmark.samples(row, Part::Test).contains(s)));
            }
        }
        let file = folder.path().join("tasks.json");
        write_tasks(&file, &tasks).unwrap();
        assert_eq!(read_tasks(&file).unwrap(), tasks);
    }
}

#[test]
fn within_a_data_set_no_sample_stands_for_two_classes() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("bench");
    synthetic(3, &out);
    let benchmark = Benchmark::open(&out).unwrap();
    for split in [Split::Close, Split::Far] {
        let mut seen = BTreeSet::new();
        for row in benchmark.data_set(split).rows {
            for part in [Part::Train, Part::Val, Part::Test] {
                assert!(benchmark.samples(row, part).iter().all(|&sample| seen.insert(sample)));
            }
        }
    }
}

fn batches(benchmark: &Arc<Benchmark>, workers: usize) -> Vec<Batch<Task>> {
    let pool = benchmark.task_pool(Split::Train, Part::Train);
    let config = TaskConfig { sampling: Sampling::Both, ..TaskConfig::default() };
    let sampler = TaskSampler::new(&pool, config, 5).unwrap();
    let config = LoaderConfig { size: 6, view: View::Train(CropConfig::default()), seed: 7, workers };
    let mut loader = Loader::start(benchmark.clone(), config, 10..27, move |index| {
        let task = sampler.task(index)?;
        let samples = task.support.iter().chain(&task.query).flatten().copied().collect();
        Ok(Plan { samples, tag: task })
    });
    let mut all = Vec::new();
    while let Some(batch) = loader.next_batch() {
        let batch = batch.unwrap();
        all.push(batch.clone());
        loader.recycle(batch);
    }
    all
}

#[test]
fn batches_are_the_same_with_any_number_of_workers() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("bench");
    synthetic(0, &out);
    let benchmark = Arc::new(Benchmark::open(&out).unwrap());
    let one = batches(&benchmark, 1);
    assert_eq!(one.iter().map(|batch| batch.index).collect::<Vec<_>>(), (10..27).collect::<Vec<_>>());
    assert!(one.iter().all(|batch| batch.len == 10 && batch.inputs.len() == 10 * 3 * 6 * 6));
    for workers in [2, 3] {
        for (a, b) in one.iter().zip(batches(&benchmark, workers)) {
            let bits = |batch: &Batch<Task>| batch.inputs.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!((a.index, &a.tag, bits(a)), (b.index, &b.tag, bits(&b)));
        }
    }
}

#[test]
fn a_failing_plan_ends_the_batches_with_its_error() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("bench");
    synthetic(0, &out);
    let benchmark = Arc::new(Benchmark::open(&out).unwrap());
    let config = LoaderConfig { size: 6, view: View::Eval, seed: 0, workers: 2 };
    let mut loader = Loader::start(benchmark, config, 0..9, |index| match index {
        3 => Err(DataError::Malformed { file: "plan".into(), reason: "no batch 3".into() }),
        _ => Ok(Plan { samples: vec![0], tag: () }),
    });
    let results: Vec<_> = std::iter::from_fn(|| loader.next_batch()).collect();
    assert_eq!(results.len(), 4);
    assert_eq!(results[3].as_ref().unwrap_err().to_string(), "plan: no batch 3");
}

#[test]
fn the_same_seed_gives_the_same_bytes_at_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let built = |threads: usize, seed| {
        let out = folder.path().join(format!("{threads}-{seed}"));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| synthetic(seed, &out));
        files_of(&out)
    };
    let one = built(1, 4);
    assert_eq!(
        one.keys().map(String::as_str).collect::<Vec<_>>(),
        [
            "assignments.csv",
            "benchmark.toml",
            "blocks.csv",
            "classes.csv",
            "images.npy",
            "samples.csv",
            "taxonomy.csv"
        ]
    );
    assert!(one == built(2, 4), "one and two threads give the same files");
    let other = built(2, 5);
    assert!(one["images.npy"] != other["images.npy"] && one["classes.csv"] != other["classes.csv"]);
}

#[test]
fn broken_images_are_named_and_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let images = image_folder(&folder.path().join("images"), 9);
    fs::write(images.join("cat/4.png"), &made::png([1, 2, 3])[..40]).unwrap();
    fs::write(images.join("dog/0.png"), b"not an image").unwrap();
    let source = source(SourceKind::ImageFolder, &images);
    let out = folder.path().join("bench");
    let report = build_from(&*source, &graph(&EDGES), &train_on_all(), &out).unwrap();
    assert_eq!((report.manifest.counts.samples, report.manifest.counts.broken), (43, 2));
    assert!(report.broken[0].starts_with("cat/4.png: broken image: "), "{:?}", report.broken);
    assert!(report.broken[1].starts_with("dog/0.png: broken image: "), "{:?}", report.broken);
    let rows = Benchmark::open(&out).unwrap().sample_rows().unwrap();
    assert!(rows.iter().all(|row| row.file != "cat/4.png" && row.file != "dog/0.png"));

    let strict = BuildConfig { strict: true, ..train_on_all() };
    let out = folder.path().join("strict");
    let error = build_from(&*source, &graph(&EDGES), &strict, &out).unwrap_err().to_string();
    assert!(error.starts_with("cat/4.png: broken image: "), "{error}");
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "a failed build leaves nothing: {left:?}");
}

#[test]
fn an_image_too_thin_for_a_square_is_named_and_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let images = image_folder(&folder.path().join("images"), 9);
    fs::write(images.join("cat/4.png"), made::png_of(1, 20_000, &vec![7; 60_000])).unwrap();
    let source = source(SourceKind::ImageFolder, &images);
    let report = build_from(&*source, &graph(&EDGES), &train_on_all(), &folder.path().join("bench")).unwrap();
    assert_eq!((report.manifest.counts.samples, report.manifest.counts.broken), (44, 1));
    assert!(report.broken[0].starts_with("cat/4.png: broken image: "), "{:?}", report.broken);

    let strict = BuildConfig { strict: true, ..train_on_all() };
    let out = folder.path().join("strict");
    let error = build_from(&*source, &graph(&EDGES), &strict, &out).unwrap_err().to_string();
    assert!(error.starts_with("cat/4.png: broken image: "), "{error}");
}

#[test]
fn a_benchmark_is_replaced_only_when_told_and_only_by_a_complete_one() {
    let folder = tempfile::tempdir().unwrap();
    let source = source(SourceKind::ImageFolder, &image_folder(&folder.path().join("images"), 9));
    let out = folder.path().join("bench");
    build_from(&*source, &graph(&EDGES), &train_on_all(), &out).unwrap();
    let before = files_of(&out);

    let error = build_from(&*source, &graph(&EDGES), &train_on_all(), &out).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().ends_with("bench: it holds a benchmark already"), "{error}");
    let replace = BuildConfig { replace: true, ..train_on_all() };
    let error = build_from(&*source, &graph(&EDGES[..4]), &replace, &out).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BadInput);
    let error = error.to_string();
    assert!(error.contains("`bird`") && error.contains("`car`"), "{error}");
    assert!(files_of(&out) == before, "a failed build leaves the old benchmark alone");

    let replace = BuildConfig { size: 16, ..replace };
    build_from(&*source, &graph(&EDGES), &replace, &out).unwrap();
    assert!(files_of(&out)["images.npy"].len() > before["images.npy"].len());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn classes_without_samples_are_left_out_and_listed() {
    let folder = tempfile::tempdir().unwrap();
    let source = source(SourceKind::ImageFolder, &image_folder(&folder.path().join("images"), 9));
    let edges = [&EDGES[..], &[("root", "plant"), ("plant", "oak"), ("animal", "fish")]].concat();
    let out = folder.path().join("bench");
    let report = build_from(&*source, &graph(&edges), &train_on_all(), &out).unwrap();
    assert_eq!(report.without_samples, ["fish", "oak", "plant"]);
    assert_eq!(Benchmark::open(&out).unwrap().classes().len(), 8);
}

#[test]
fn a_leaf_with_few_samples_is_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let source = source(SourceKind::ImageFolder, &image_folder(&folder.path().join("images"), 5));
    let out = folder.path().join("bench");
    let report = build_from(&*source, &graph(&EDGES), &train_on_all(), &out).unwrap();
    let expected = "leaf bird has 5 samples for the 3 classes that draw from it: each gets 1 instead of 2 (and 4 \
                    more such leaves)";
    assert_eq!(report.warnings, [expected]);
}

#[test]
fn embeddings_from_table_to_batch() {
    let folder = tempfile::tempdir().unwrap();
    let leaves = ["bird", "car", "cat", "cup", "dog"];
    let values: Vec<f32> = (0..50 * 4).map(|i| i as f32 / 8.0).collect();
    let labels = (leaves.join("\n") + "\n").repeat(10);
    let table = folder.path().join("table.npy");
    fs::write(&table, made::npy("<f4", "(50, 4)", &made::floats(&values))).unwrap();
    fs::write(folder.path().join("table_labels.txt"), &labels).unwrap();
    let out = folder.path().join("bench");
    let table_source = source(SourceKind::Embeddings, &table);
    build_from(&*table_source, &graph(&EDGES), &train_on_all(), &out).unwrap();

    let benchmark = Benchmark::open(&out).unwrap();
    assert!(matches!(benchmark.store(), Store::Embeddings { dim: 4, .. }));
    let rows = benchmark.sample_rows().unwrap();
    assert_eq!((rows[7].leaf.as_str(), rows[7].file.as_str()), ("cat", "row 7"));
    let mut stream = Stream::new(0, Purpose::Augmentation, 0);
    let mut inputs = Vec::new();
    Inputs::new(8, &View::Eval).unwrap().fill(benchmark.store(), &[7, 0], &mut stream, &mut inputs).unwrap();
    assert_eq!(inputs, [&values[28..32], &values[..4]].concat());

    let mut hostile = values;
    hostile[4 * 11 + 2] = f32::NAN;
    fs::write(&table, made::npy("<f4", "(50, 4)", &made::floats(&hostile))).unwrap();
    let out = folder.path().join("nan");
    let table_source = source(SourceKind::Embeddings, &table);
    let error = build_from(&*table_source, &graph(&EDGES), &train_on_all(), &out).unwrap_err().to_string();
    assert!(error.contains("row 11 (class car), column 2 is NaN"), "{error}");
    assert!(!out.exists());
}

#[test]
fn assignments_can_be_given() {
    let folder = tempfile::tempdir().unwrap();
    let source = source(SourceKind::ImageFolder, &image_folder(&folder.path().join("images"), 3));
    let given = folder.path().join("given.csv");
    fs::write(&given, "class,sample,part\nanimal,0,train\nanimal,7,val\ncup,9,train\n").unwrap();
    let config = BuildConfig { assignments: Some(given.clone()), ..train_on_all() };
    let out = folder.path().join("bench");
    build_from(&*source, &graph(&EDGES), &config, &out).unwrap();
    let benchmark = Benchmark::open(&out).unwrap();
    let row = |id: &str| benchmark.classes().iter().position(|class| class.id == id).unwrap();
    assert_eq!(benchmark.samples(row("animal"), Part::Train), [0]);
    assert_eq!(benchmark.samples(row("animal"), Part::Val), [7]);
    assert_eq!(benchmark.samples(row("cup"), Part::Train), [9]);
    assert_eq!(benchmark.classes().iter().map(|class| class.samples).sum::<usize>(), 3);

    fs::write(&given, "class,sample\nanimals,0\n").unwrap();
    let error = build_from(&*source, &graph(&EDGES), &config, &folder.path().join("bad")).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("given.csv: line 2: class `animals`") && error.contains("did you mean `animal`?"),
        "{error}"
    );
}

#[test]
fn chains_are_reported_and_can_be_collapsed() {
    let folder = tempfile::tempdir().unwrap();
    let source = source(SourceKind::ImageFolder, &image_folder(&folder.path().join("images"), 9));
    let mut edges = EDGES.to_vec();
    edges.retain(|&edge| edge != ("animal", "bird"));
    edges.extend([("animal", "flier"), ("flier", "feathered"), ("feathered", "bird")]);
    let built = |collapse_chains: bool| {
        let out = folder.path().join(if collapse_chains { "collapsed" } else { "whole" });
        let config = BuildConfig { collapse_chains, ..train_on_all() };
        build_from(&*source, &graph(&edges), &config, &out).unwrap();
        let benchmark = Benchmark::open(&out).unwrap();
        let statistics = Statistics::of(&benchmark);
        (benchmark.classes().len(), statistics.chains, statistics.classes_in_chains)
    };
    assert_eq!(built(false), (10, 1, 3));
    assert_eq!(built(true), (8, 0, 0));
}

#[test]
fn a_changed_or_foreign_directory_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let error = Benchmark::open(folder.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("no benchmark directory"), "{error}");

    let out = folder.path().join("bench");
    synthetic(0, &out);
    let message = |check| Benchmark::open_with(&out, check).unwrap_err().to_string();
    let classes = out.join("classes.csv");
    let text = fs::read_to_string(&classes).unwrap();
    fs::write(&classes, text.replacen("train", "close", 1)).unwrap();
    assert_eq!(Benchmark::open(&out).unwrap_err().kind(), ErrorKind::Damaged);
    assert!(message(Check::Sampled).contains("bench: not as built: classes.csv; build the benchmark anew"));
    fs::write(&classes, text.lines().take(20).collect::<Vec<_>>().join("\n")).unwrap();
    let error = message(Check::Nothing);
    assert!(error.contains("taxonomy.csv") && error.contains("not in classes.csv"), "{error}");
    let last = text.lines().last().unwrap();
    fs::write(&classes, format!("{text}{last}\n")).unwrap();
    let error = message(Check::Nothing);
    assert!(error.contains("classes.csv: class") && error.contains("is listed twice"), "{error}");
    fs::write(&classes, text).unwrap();
    let images = fs::read(out.join("images.npy")).unwrap();
    fs::write(out.join("images.npy"), &images[..images.len() - 1]).unwrap();
    for check in [Check::Nothing, Check::Sampled, Check::All] {
        let error = message(check);
        assert!(error.contains("images.npy"), "{error}");
    }
}

#[test]
fn manifests_of_other_versions_and_cut_ones_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("bench");
    synthetic(0, &out);
    let path = out.join("benchmark.toml");
    let text = fs::read_to_string(&path).unwrap();
    let message = |text: &str| {
        fs::write(&path, text).unwrap();
        Benchmark::open_with(&out, Check::Nothing).unwrap_err().to_string()
    };
    let (above, seal) = text.trim_end().rsplit_once('\n').unwrap();
    assert!(seal.starts_with("# blake3 of all above: "), "{seal}");
    assert!(message(above).contains("its last line is missing; build the benchmark anew"));
    assert!(
        message(&above.replace("format = 2", "format = 1")).contains("layout version 1 is not version 2")
    );
    assert!(message(&text.replace("seed = 0", "seed = 1")).contains("it has changed since it was built"));
    assert!(message("").contains("benchmark.toml"));
}

/// Flips one bit at a place of a file, given as a share of its length, and puts it right again afterwards.
fn with_flipped_bit<T>(path: &Path, place: f64, bit: u8, look: impl FnOnce() -> T) -> T {
    let length = fs::metadata(path).unwrap().len();
    let at = ((length - 1) as f64 * place) as u64;
    let flip = || {
        let mut file = fs::File::options().read(true).write(true).open(path).unwrap();
        let mut byte = [0];
        file.seek(SeekFrom::Start(at)).unwrap();
        file.read_exact(&mut byte).unwrap();
        file.seek(SeekFrom::Start(at)).unwrap();
        file.write_all(&[byte[0] ^ 1 << bit]).unwrap();
    };
    flip();
    let seen = look();
    flip();
    seen
}

#[test]
fn every_flipped_bit_of_a_benchmark_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("bench");
    synthetic(0, &out);
    let mut files: Vec<PathBuf> = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert_eq!(files.len(), 7, "{files:?}");
    for path in files {
        for step in 0..40_u8 {
            let place = f64::from(step) / 39.0;
            let opened = with_flipped_bit(&path, place, step % 8, || Benchmark::open(&out).map(drop));
            // The line feed at the end of the manifest is the one byte that nothing depends on.
            let is_last = path.ends_with("benchmark.toml") && step == 39;
            assert!(opened.is_err() || is_last, "{} {place}", path.display());
        }
    }
    Benchmark::open_with(&out, Check::All).unwrap();
}

#[test]
fn large_files_are_checked_by_sample_or_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let images = image_folder(&folder.path().join("images"), 12);
    let out = folder.path().join("bench");
    let config = BuildConfig { size: 512, ..train_on_all() };
    build_from(&*source(SourceKind::ImageFolder, &images), &graph(&EDGES), &config, &out).unwrap();
    let stored = out.join("images.npy");
    let blocks = fs::metadata(&stored).unwrap().len().div_ceil(1 << 20);
    assert_eq!(blocks, 46);
    let noticed = |place: f64, check| {
        with_flipped_bit(&stored, place, 3, || Benchmark::open_with(&out, check).is_err())
    };
    for place in [0.0, 1.0] {
        assert!(noticed(place, Check::Sampled));
    }
    // The fourth block is not among the 32 looked at.
    let fourth = 3.5 / blocks as f64;
    assert!(!noticed(fourth, Check::Sampled) && noticed(fourth, Check::All));
}
