//! Where the time of training on embeddings goes, and how often it allocates:
//! `cargo run --release -p gpn-train --example embedding_episodes -- [METHOD] [BACKBONE] [EPISODES]`
//!
//! 20,000 embeddings of 384 numbers, 1,000 classes in 50 groups; five-way one-shot tasks with 15 queries a class, no auxiliary batches,
//! no validation. METHOD is `protonet` and BACKBONE `mlp` unless they are given.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use gpn_data::benchmark::{Benchmark, BuildConfig};
use gpn_data::rng::{Purpose, Stream};
use gpn_data::source::ArraySource;
use gpn_model::Device;
use gpn_taxonomy::TaxonomyBuilder;
use gpn_train::{Config, StepTime, Trainer};

const DIM: usize = 384;
const CLASSES: usize = 1_000;
const GROUPS: usize = 50;
const SAMPLES: usize = 20;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: passed on.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let method = arguments.next().unwrap_or_else(|| "protonet".into());
    let backbone = arguments.next().unwrap_or_else(|| "mlp".into());
    let episodes = arguments.next().map_or(2_000, |text| text.parse().expect("EPISODES is a number"));
    let mut config = Config::default().with_method(&method).expect("METHOD is a method");
    for setting in [
        &format!("model.backbone={backbone}"),
        "task.queries=15",
        "validation.tasks=0",
        "schedule.auxiliary=false",
    ] {
        config = config.with_setting(setting).expect("a setting");
    }
    config.train.episodes = episodes;
    let mut trainer = Trainer::new(&config, benchmark(), &Device::cpu()).expect("tasks can be drawn");
    let mut time = None;
    // The first episodes make the buffers that all others use.
    let (mut started, mut counted) = (Instant::now(), 0);
    let warm = episodes / 10;
    let outcome = trainer.run(None, |done, report| {
        if done == warm {
            (started, counted) = (Instant::now(), ALLOCATIONS.load(Ordering::Relaxed));
        }
        time = report.map(|report| report.time).or(time);
        ControlFlow::Continue(())
    });
    outcome.expect("training succeeds");
    let count = (episodes - warm) as f64;
    let allocations = (ALLOCATIONS.load(Ordering::Relaxed) - counted) as f64 / count;
    println!("{method} on {backbone}: {:.1} us an episode", started.elapsed().as_secs_f64() * 1e6 / count);
    println!("{allocations:.1} allocations an episode");
    let each = |of: std::time::Duration| of.as_secs_f64() * 1e6 / episodes as f64;
    if let Some(time) = time {
        let StepTime { backbone, method, other } = time.steps;
        println!(
            "waiting {:.1}, backbone {:.1}, method {:.1}, optimiser {:.1}, memory {:.1}, upkeep {:.1} us",
            each(time.data),
            each(backbone),
            each(method),
            each(other),
            each(time.memory),
            each(time.upkeep)
        );
    }
}

/// Embeddings around a mean for each class, near those of its group.
fn benchmark() -> Benchmark {
    let mut stream = Stream::new(1, Purpose::Split, 0);
    let mut noise = |scale: f32| -> Vec<f32> {
        (0..DIM / 2)
            .flat_map(|_| {
                let (a, b) = stream.normal_pair();
                [scale * a, scale * b]
            })
            .collect()
    };
    let mut builder = TaxonomyBuilder::new();
    let root = builder.add_class("root");
    let groups: Vec<_> = (0..GROUPS)
        .map(|group| {
            let node = builder.add_class(&format!("g{group}"));
            builder.add_edge(root, node, None);
            (node, noise(1.0))
        })
        .collect();
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    for class in 0..CLASSES {
        let (group, centre) = &groups[class % GROUPS];
        let name = format!("c{class}");
        let node = builder.add_class(&name);
        builder.add_edge(*group, node, None);
        let mean: Vec<f32> = centre.iter().zip(noise(0.7)).map(|(centre, own)| centre + own).collect();
        for _ in 0..SAMPLES {
            values.extend(mean.iter().zip(noise(1.5)).map(|(mean, own)| (mean + own) / 30.0));
            labels.push(name.clone());
        }
    }
    let graph = builder.build().expect("no cycle").taxonomy;
    let source = ArraySource::embeddings(&values[..], DIM, &labels).expect("labels and rows agree");
    let mut config = BuildConfig::default();
    config.assign.per_leaf = SAMPLES;
    Benchmark::from_source(&source, &graph, &config, &()).expect("a benchmark").0
}
