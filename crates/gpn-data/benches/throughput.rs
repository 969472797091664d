//! Tasks and episodes per second: `cargo bench -p gpn-data`.
//!
//! Tasks are drawn on one thread from the training classes of tinyImageNet-Close where `GPN_BENCH_DIR` names its benchmark
//! directory, else from those of the built-in data set. Episodes are 5-way 1-shot tasks with one query per class, cropped
//! at random from stored 64x64 images to 32x32 by two workers.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use gpn_data::benchmark::{Benchmark, BuildConfig, Part, Split, build};
use gpn_data::loader::{Loader, LoaderConfig, Plan, View};
use gpn_data::source::{Source as _, SyntheticSource};
use gpn_data::synthetic::SyntheticConfig;
use gpn_data::task::{Sampling, TaskConfig, TaskSampler};
use gpn_data::transform::CropConfig;

const ROUNDS: usize = 5;
const TASKS: u64 = 100_000;
const EPISODES: u64 = 4_000;
const WORKERS: usize = 2;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let path = std::env::var_os("GPN_BENCH_DIR")
        .map_or_else(|| synthetic(&folder.path().join("bench")), PathBuf::from);
    let benchmark = Arc::new(Benchmark::open(&path).unwrap());
    let manifest = benchmark.manifest();
    println!("{}: {} classes, {} samples", manifest.source, manifest.counts.classes, manifest.counts.samples);
    for sampling in [Sampling::Random, Sampling::Snowball, Sampling::Both] {
        let sampler = sampler(&benchmark, sampling);
        report(&format!("{sampling:?} tasks per second, one thread"), TASKS, || {
            for index in 0..TASKS {
                black_box(sampler.task(index).unwrap());
            }
        });
    }
    report(&format!("episodes per second, {WORKERS} workers"), EPISODES, || episodes(&benchmark));
}

/// The built-in data set at the size of Tiny-ImageNet's images.
fn synthetic(out: &Path) -> PathBuf {
    let source = SyntheticSource::new(SyntheticConfig { size: 64, ..SyntheticConfig::default() });
    // invariant: the built-in data set brings its class graph.
    let taxonomy = source.taxonomy().unwrap().unwrap().taxonomy;
    let config = BuildConfig { size: 64, ..BuildConfig::synthetic(0) };
    build(&source, &taxonomy, "built in", &config, out, &()).unwrap();
    out.to_owned()
}

fn sampler(benchmark: &Benchmark, sampling: Sampling) -> TaskSampler {
    let pool = benchmark.task_pool(Split::Train, Part::Train);
    TaskSampler::new(&pool, TaskConfig { sampling, ..TaskConfig::default() }, 0).unwrap()
}

fn episodes(benchmark: &Arc<Benchmark>) {
    let sampler = sampler(benchmark, Sampling::Both);
    let config =
        LoaderConfig { size: 32, view: View::Train(CropConfig::default()), seed: 0, workers: WORKERS };
    let mut loader = Loader::start(benchmark.clone(), config, 0..EPISODES, move |index| {
        let task = sampler.task(index)?;
        let samples = task.support.iter().chain(&task.query).flatten().copied().collect();
        Ok(Plan { samples, tag: task })
    });
    while let Some(batch) = loader.next_batch() {
        let batch = batch.unwrap();
        black_box(&batch.inputs);
        loader.recycle(batch);
    }
}

/// Prints the median rate of the rounds and their range.
fn report(what: &str, count: u64, mut run: impl FnMut()) {
    let mut rates: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            run();
            count as f64 / start.elapsed().as_secs_f64()
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    println!("{what:<40} {:>9.0}  ({:.0} to {:.0})", rates[ROUNDS / 2], rates[0], rates[ROUNDS - 1]);
}
