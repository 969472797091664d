//! The whole method on built-in data, in a minute or two.

mod own;
mod page;

use std::path::PathBuf;

use gpn_data::benchmark::{Benchmark, Split};
use gpn_data::task::Task;
use gpn_model::{BackboneKind, Device, Embedder, InputShape};
use gpn_train::{Config, Embeddings, Estimate, Hierarchy, TrainedModel};

use crate::build::build_synthetic;
use crate::error::Result;
use crate::evaluation::{Answering, Evaluation, EvaluationRequest, TestTasks, evaluate_embeddings};
use crate::output;
use crate::run::{Run, StartRequest, Trained};
use crate::watch::Watch;

pub use own::Own;

/// Tasks that each figure is the mean of.
const TASKS: u64 = 600;
/// Labelled samples of each class.
const SHOT: usize = 1;

/// What the demo found out about one kind of test classes.
pub struct Side {
    /// Close or Far.
    pub name: &'static str,
    tasks: TestTasks,
    embeddings: Embeddings,
    /// Accuracies of nearest prototypes on pixels.
    pub pixels: Estimate,
    /// Of the network before propagation.
    pub base: Estimate,
    /// Of GPN: the place of the classes in the graph is not known.
    pub unknown: Estimate,
    /// Of GPN+: it is known.
    pub known: Estimate,
    /// Of all neighbours averaged, with nothing learned.
    pub uniform: Estimate,
    /// Of the graph prior.
    pub prior: Estimate,
    /// GPN+ less the network before propagation, task by task.
    pub gain: Estimate,
    /// The graph prior less the network before propagation, task by task.
    pub prior_gain: Estimate,
}

/// How the demo is run.
#[derive(Clone, Debug)]
pub struct DemoRequest {
    /// Where it writes its files.
    pub out: PathBuf,
    /// Seed of everything random.
    pub seed: u64,
    /// Training steps.
    pub episodes: u64,
}

/// What the demo has found out and written.
pub struct Demo {
    /// Close and Far test classes.
    pub sides: [Side; 2],
    /// The page.
    pub page: PathBuf,
    /// The benchmark directory.
    pub data: PathBuf,
    /// The run directory.
    pub run: PathBuf,
    /// Classes of one's own.
    pub own: Own,
}

/// Draws the built-in data, trains, tests on new classes and writes a page; `None` where it was stopped while it trained.
pub fn demo(request: &DemoRequest, watch: &Watch<'_>) -> Result<Option<Demo>> {
    let (out, data) = (&request.out, request.out.join("data"));
    output::may_fill(out, &["data", "run"], "demo")?;
    output::create_folder(out)?;
    watch.step("1. Drawing images of 120 kinds of things, and building a benchmark from them");
    let benchmark = build_synthetic(&data, request.seed, watch)?;
    let count = |split| benchmark.classes().iter().filter(|class| class.split == split).count();
    watch.note(&format!(
        "   {} classes of all levels: {} to train on, {} Close and {} Far ones that the network never sees",
        benchmark.classes().len(),
        count(Split::Train),
        count(Split::Close),
        count(Split::Far)
    ));

    watch.step("2. Training: a small ResNet and the gated propagation of prototypes");
    let folder = out.join("run");
    let mut config = Config::preset("demo")?;
    config.train.seed = request.seed;
    config.train.episodes = request.episodes;
    let device = Device::cpu();
    let start = StartRequest { data: &data, replace: true, ..StartRequest::new(&config, &device) };
    let mut run = Run::start(&folder, benchmark, &start, watch)?;
    if matches!(run.train(watch)?, Trained::Stopped { .. }) {
        return Ok(None);
    }
    drop(run);

    watch.step(&format!(
        "3. Testing on {TASKS} tasks of each kind: 5 new classes, {SHOT} labelled image each, 15 images to classify"
    ));
    let benchmark = Benchmark::open(&data)?;
    let model = TrainedModel::read(&folder.join("model.safetensors"), &device)?;
    let side = |split| side(&model, &benchmark, split, request.seed, watch);
    let sides = [side(Split::Close)?, side(Split::Far)?];

    watch.step(
        "4. Classes of your own: fit, test, teach and predict with the classes that the network never saw",
    );
    let network = TrainedModel::read(&folder.join("model.safetensors"), &device)?;
    let own = own::own(&benchmark, network, &out.join("own.safetensors"), watch)?;
    let file = out.join("report.html");
    page::report(&sides, &own, &model, &benchmark, &folder)?.write(&file)?;
    Ok(Some(Demo { sides, page: file, data, run: folder, own }))
}

fn side(
    model: &TrainedModel,
    benchmark: &Benchmark,
    split: Split,
    seed: u64,
    watch: &Watch<'_>,
) -> Result<Side> {
    let request = EvaluationRequest { split, shot: SHOT, tasks: TASKS, seed, ..EvaluationRequest::default() };
    let tasks = TestTasks::of(benchmark, &request)?;
    let embeddings = tasks.embed(&model.network.embedder, benchmark, watch)?;
    let evaluated = |hierarchy| -> Result<Evaluation> {
        let request = EvaluationRequest { hierarchy, ..request.clone() };
        evaluate_embeddings(model, &tasks, &embeddings, &request, watch)
    };
    let (known, unknown) = (evaluated(Hierarchy::Known)?, evaluated(Hierarchy::Unknown)?);
    let by_method = |method: &str| -> Result<Evaluation> {
        let request = EvaluationRequest { method: Some(method.into()), ..request.clone() };
        Answering::of(model, benchmark, &tasks, &request, watch)?.evaluate(
            model,
            &tasks,
            &embeddings,
            &request,
            watch,
        )
    };
    let (uniform, prior) = (by_method("uniform")?, by_method("prior")?);
    let gains: Vec<f64> = known.per_task.iter().map(|task| task.mixed - task.base).collect();
    Ok(Side {
        name: split.name(),
        pixels: on_pixels(benchmark, &tasks, model.info.input, watch)?,
        base: known.base,
        unknown: unknown.mixed,
        known: known.mixed,
        uniform: uniform.method,
        prior: prior.method,
        gain: Estimate::of(&gains),
        prior_gain: prior.gain,
        tasks,
        embeddings,
    })
}

/// Nearest prototypes of the pixels themselves, with nothing learned.
fn on_pixels(
    benchmark: &Benchmark,
    tasks: &TestTasks,
    input: InputShape,
    watch: &Watch<'_>,
) -> Result<Estimate> {
    let pixels = Embedder::new(&BackboneKind::Identity.config(), input, &Device::cpu(), 0)?;
    let embeddings = tasks.embed(&pixels, benchmark, watch)?;
    let percent = |task: &Task| embeddings.percent(task, &embeddings.prototypes(task));
    Ok(Estimate::of(&tasks.tasks.iter().map(percent).collect::<Vec<f64>>()))
}

/// A row of the result: what it is, and where its figures stand.
pub type ResultRow = (&'static str, fn(&Side) -> Estimate);

/// The rows of the result.
pub const ROWS: [ResultRow; 6] = [
    ("nearest prototype on pixels", |side| side.pixels),
    ("the network, no propagation", |side| side.base),
    ("GPN: place in the graph unknown", |side| side.unknown),
    ("all neighbours averaged, nothing learned", |side| side.uniform),
    ("GPN+: place in the graph known", |side| side.known),
    ("graph prior: place in the graph known", |side| side.prior),
];
