//! `gpn demo`: the whole method on built-in data, in a few minutes.

use std::path::Path;
use std::time::Instant;

use anyhow::Context as _;
use gpn_data::benchmark::{Benchmark, BuildConfig, DataSet, Part, Split, build};
use gpn_data::source::{Source as _, SyntheticSource};
use gpn_data::synthetic::SyntheticConfig;
use gpn_data::task::{Sampling, Task, TaskConfig, TaskSampler};
use gpn_model::{BackboneKind, Device, Embedder, InputShape};
use gpn_train::{Config, Embeddings, Estimate, Hierarchy, INTERVAL, TrainedModel, evaluate};

use crate::args::DemoArguments;
use crate::demo_report;
use crate::table::Table;
use crate::terminal::{self, Progress};
use crate::{output, train};

/// Tasks that each figure is the mean of.
const TASKS: u64 = 600;
/// Labelled samples of each class.
const SHOT: usize = 1;

/// What the demo found out about one kind of test classes.
pub(crate) struct Side {
    pub(crate) name: &'static str,
    pub(crate) tasks: Vec<Task>,
    pub(crate) data_set: DataSet,
    pub(crate) embeddings: Embeddings,
    /// Accuracies of nearest prototypes on pixels.
    pub(crate) pixels: Estimate,
    /// Of the network before propagation.
    pub(crate) base: Estimate,
    /// Of GPN: the place of the classes in the graph is not known.
    pub(crate) unknown: Estimate,
    /// Of GPN+: it is known.
    pub(crate) known: Estimate,
    /// GPN+ less the network before propagation, task by task.
    pub(crate) gain: Estimate,
}

pub(crate) fn run(arguments: &DemoArguments) -> anyhow::Result<()> {
    let started = Instant::now();
    let (out, data) = (&arguments.out, arguments.out.join("data"));
    output::may_fill(out, &["data", "run"], "demo")?;
    std::fs::create_dir_all(out)
        .with_context(|| format!("{}: cannot create the directory", out.display()))?;
    terminal::step("1. Drawing images of 120 kinds of things, and building a benchmark from them");
    let benchmark = drawn(&data, arguments.seed)?;
    terminal::say(&format!(
        "   {} classes of all levels: {} to train on, {} Close and {} Far ones that the network never sees",
        benchmark.classes().len(),
        count(&benchmark, Split::Train),
        count(&benchmark, Split::Close),
        count(&benchmark, Split::Far)
    ));

    terminal::step("2. Training: a small ResNet and the gated propagation of prototypes");
    let run = out.join("run");
    let config = config(arguments)?;
    if !train::run_new(&config, benchmark, &data, &run, true)? {
        return Ok(());
    }

    terminal::step(&format!(
        "3. Testing on {TASKS} tasks of each kind: 5 new classes, {SHOT} labelled image each, 15 images to classify"
    ));
    let benchmark = Benchmark::open(&data)?;
    let mut model = TrainedModel::read(&run.join("model.safetensors"), &Device::cpu())?;
    let sides = [Split::Close, Split::Far].map(|split| side(&mut model, &benchmark, split, arguments.seed));
    let [close, far] = sides;
    let sides = [close?, far?];
    terminal::print_text(&table(&sides))?;
    let report = out.join("report.html");
    demo_report::report(&sides, &model, &benchmark, &run)?.write(&report)?;
    terminal::say(&format!(
        "done in {:.0} s; open {} to see why",
        started.elapsed().as_secs_f64(),
        report.display()
    ));
    let (run, data) = (run.display(), data.display());
    terminal::say(&format!("next: gpn classes {run}, gpn eval {run} --data {data} --shot 5"));
    Ok(())
}

/// Draws the built-in data into a benchmark directory.
pub(crate) fn drawn(folder: &Path, seed: u64) -> anyhow::Result<Benchmark> {
    let source = SyntheticSource::new(SyntheticConfig { seed, ..SyntheticConfig::default() });
    // invariant: the built-in data set brings its class graph.
    let taxonomy = source.taxonomy().unwrap()?.taxonomy;
    let config = BuildConfig { replace: true, ..BuildConfig::synthetic(seed) };
    let progress = Progress::new("drawing images");
    build(&source, &taxonomy, "built in", &config, folder, &|done, total| progress.update(done, total))?;
    Ok(Benchmark::open(folder)?)
}

fn count(benchmark: &Benchmark, split: Split) -> usize {
    benchmark.classes().iter().filter(|class| class.split == split).count()
}

fn config(arguments: &DemoArguments) -> anyhow::Result<Config> {
    let mut config = Config::preset("demo")?;
    config.train.seed = arguments.seed;
    config.train.episodes = arguments.episodes;
    Ok(config)
}

fn side(model: &mut TrainedModel, benchmark: &Benchmark, split: Split, seed: u64) -> anyhow::Result<Side> {
    let config = TaskConfig { shot: SHOT, queries: 15, sampling: Sampling::Random, ..TaskConfig::default() };
    let sampler = TaskSampler::new(&benchmark.task_pool(split, Part::Test), config, seed)?;
    let tasks = (0..TASKS).map(|index| sampler.task(index)).collect::<Result<Vec<Task>, _>>()?;
    let data_set = benchmark.data_set(split);
    let embeddings = Embeddings::of_tasks(&mut model.network.embedder, benchmark.store(), &tasks)?;
    let results =
        |hierarchy| evaluate(model.trained(), &data_set, &embeddings, &tasks, hierarchy, model.info.lambda());
    let (known, unknown) = (results(Hierarchy::Known)?, results(Hierarchy::Unknown)?);
    let column = |values: Vec<f64>| Estimate::of(&values);
    Ok(Side {
        name: split.name(),
        pixels: on_pixels(benchmark, &tasks, model.info.input)?,
        base: column(known.iter().map(|task| task.base).collect()),
        unknown: column(unknown.iter().map(|task| task.mixed).collect()),
        known: column(known.iter().map(|task| task.mixed).collect()),
        gain: column(known.iter().map(|task| task.mixed - task.base).collect()),
        tasks,
        data_set,
        embeddings,
    })
}

/// Nearest prototypes of the pixels themselves, with nothing learned.
fn on_pixels(benchmark: &Benchmark, tasks: &[Task], input: InputShape) -> anyhow::Result<Estimate> {
    let mut pixels = Embedder::new(&BackboneKind::Identity.config(), input, &Device::cpu(), 0)?;
    let embeddings = Embeddings::of_tasks(&mut pixels, benchmark.store(), tasks)?;
    let percent = |task: &Task| embeddings.percent(task, &embeddings.prototypes(task));
    Ok(Estimate::of(&tasks.iter().map(percent).collect::<Vec<f64>>()))
}

/// A row of the result: what it is, and where its figures stand.
pub(crate) type ResultRow = (&'static str, fn(&Side) -> Estimate);

pub(crate) const ROWS: [ResultRow; 4] = [
    ("nearest prototype on pixels", |side| side.pixels),
    ("the network, no propagation", |side| side.base),
    ("GPN: place in the graph unknown", |side| side.unknown),
    ("GPN+: place in the graph known", |side| side.known),
];

fn table(sides: &[Side; 2]) -> String {
    let cell = |estimate: Estimate| format!("{:.1} +- {:.1}", estimate.mean, estimate.half_width);
    let mut table = Table::new(["accuracy, % (guessing gives 20)", "Close", "Far"]);
    for (name, of) in ROWS {
        table.row([name.to_owned(), cell(of(&sides[0])), cell(of(&sides[1]))]);
    }
    let gain = |side: &Side| format!("{:+.1} +- {:.1}", side.gain.mean, side.gain.half_width);
    table.row(["gain by propagation (GPN+), task by task".to_owned(), gain(&sides[0]), gain(&sides[1])]);
    format!("{table}{INTERVAL}\n")
}
