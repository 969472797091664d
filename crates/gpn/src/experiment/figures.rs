//! What a trained GPN knows and does, drawn.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gpn_data::benchmark::{Benchmark, Part, Split};
use gpn_data::task::{Sampling, Task, TaskConfig, TaskSampler};
use gpn_model::Device;
use gpn_report::{
    AccuracyByDistance, Block, DistancePoint, DistanceSeries, Figure, PrototypeMap, Report, TaskClass,
    TaskMap, TaskPrototypes, TsneSettings, tsne, write_file,
};
use gpn_train::{Embeddings, Estimate, Hierarchy, TrainedModel, answers, propagate};

use super::contender::BASELINE;
use super::lab::{Lab, Setting, Shape};
use super::{LabRequest, Made, describe};
use crate::drawings::{learning_curves, messages, most_helped, name_of};
use crate::error::{Error, Result};
use crate::evaluation::TestTasks;
use crate::watch::Watch;

/// What is drawn.
#[derive(Clone, Debug, Default)]
pub struct FiguresRequest {
    /// Where, on what and how long.
    pub lab: LabRequest,
    /// A run of GPN to draw, where not that of the tables.
    pub run: Option<PathBuf>,
    /// The class whose descendants stand out on the map of prototypes, by id or name; otherwise one of middling size.
    pub subtree: Option<String>,
}

const SHAPE: Shape = Shape { way: 5, shot: 1 };
/// Tasks on the map of tasks, which share classes.
const MAPPED_TASKS: usize = 4;
/// Descendants of a class that make a clear map of a subtree.
const CLEAR_SUBTREE: std::ops::RangeInclusive<usize> = 12..=45;
/// Pixels of a PNG for each unit of a figure: enough for print.
const RESOLUTION: f32 = 3.0;

/// Draws prototypes, messages, accuracies by distance and learning curves of a trained GPN.
pub fn figures(arguments: &FiguresRequest, watch: &Watch<'_>) -> Result<Made> {
    let lab = Lab::open(&arguments.lab, watch)?;
    let runs = runs(&lab, arguments)?;
    let (_, run) = &runs[0];
    let model = TrainedModel::read(&run.join("model.safetensors"), &Device::cpu())?;
    let benchmark = lab.benchmark()?;
    if benchmark.manifest().fingerprint() != model.info.benchmark {
        return Err(Error::input(run.display(), "it was trained on another benchmark than the one given"));
    }
    if model.network.method.hops().is_none() {
        let reason = format!(
            "it is a run of {}, which does not use the class graph; these figures show propagation",
            model.info.method().name
        );
        return Err(Error::input(run.display(), reason));
    }
    watch.step("Drawing");
    let close = Side::new(&lab, &model, &benchmark, Split::Close, watch)?;
    let far = Side::new(&lab, &model, &benchmark, Split::Far, watch)?;
    let mut figures = vec![
        ("1-prototypes", prototypes(&model, arguments.subtree.as_deref())?),
        ("2-tasks", task_map(&model, &benchmark, watch)?),
        ("3-distance", by_distance(&model, &benchmark, &[&close, &far], watch)?),
    ];
    if let Some((task, propagated)) = most_helped(&model, &close.tasks, &close.embeddings)? {
        let graph = messages(&close.tasks.data_set, task, &propagated, &benchmark);
        figures.push(("4-messages", graph.figure()?));
    }
    let named: Vec<(&str, &Path)> = runs.iter().map(|(name, run)| (*name, run.as_path())).collect();
    if let Some(curves) = learning_curves(&named)? {
        figures.push(("5-learning-curves", curves.figure()));
    }
    let mut report = Report::new(
        "GPN in figures",
        "What a trained network knows of its classes, and what it does with it.",
    );
    let mut written = Vec::new();
    for (name, figure) in figures {
        let path = lab.out().join("figures").join(name);
        write_file(path.with_extension("svg"), figure.to_svg())?;
        write_file(path.with_extension("png"), figure.to_png(RESOLUTION)?)?;
        written.push(path.with_extension("svg").display().to_string());
        report.section(figure.title.clone(), vec![Block::Figure(figure)]);
    }
    describe(&mut report, &lab);
    let page = lab.out().join("figures.html");
    report.write(&page)?;
    Ok(Made { text: format!("{}\n", written.join("\n")), page })
}

/// The run to draw, and with it that of the Prototypical Network where it is of the same experiment.
fn runs(lab: &Lab<'_>, arguments: &FiguresRequest) -> Result<Vec<(&'static str, PathBuf)>> {
    if let Some(run) = &arguments.run {
        return Ok(vec![("", run.clone())]);
    }
    let mut runs = vec![("GPN", lab.trained(&format!("gpn-{SHAPE}"), &lab.run_config("gpn", SHAPE, &[])?)?)];
    let baseline = lab.out().join("runs").join(format!("{BASELINE}-{SHAPE}"));
    if baseline.join("model.safetensors").is_file() {
        runs.push(("Prototypical Network", baseline));
    }
    Ok(runs)
}

/// Tasks of one kind of test classes.
struct Side {
    tasks: TestTasks,
    embeddings: Embeddings,
}

impl Side {
    fn new(
        lab: &Lab<'_>,
        model: &TrainedModel,
        benchmark: &Benchmark,
        split: Split,
        watch: &Watch<'_>,
    ) -> Result<Self> {
        let setting =
            Setting { split, sampling: Sampling::Random, shape: SHAPE, hierarchy: Hierarchy::Known };
        let tasks = TestTasks::of(benchmark, &lab.request(&setting))?;
        let embeddings = tasks.embed(&model.network.embedder, benchmark, watch)?;
        Ok(Self { tasks, embeddings })
    }
}

/// Figure 1: the memory on a map, with the class graph between the prototypes.
fn prototypes(model: &TrainedModel, subtree: Option<&str>) -> Result<Figure> {
    let classes = &model.info.classes;
    let edges: Vec<(usize, usize)> = model
        .info
        .edges
        .iter()
        .map(|&(parent, child)| (parent as usize, child as usize))
        .filter(|&(parent, child)| parent.max(child) < classes.len())
        .collect();
    let subtree = match subtree {
        Some(name) => Some(
            classes.iter().position(|class| class.id == name || class.name == name).ok_or_else(|| {
                let near = gpn_taxonomy::nearest_name(name, classes.iter().map(|class| class.name.as_str()));
                let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
                Error::Class {
                    class: name.to_owned(),
                    reason: format!("no training class has this id or name{hint}"),
                }
            })?,
        ),
        None => clear_subtree(classes.len(), &edges),
    };
    let positions = tsne(model.memory.prototypes(), model.memory.dim, &TsneSettings::default())?;
    let map = PrototypeMap {
        title: "Prototypes of the training classes and the class graph".into(),
        names: classes.iter().map(|class| class.name.clone()).collect(),
        positions,
        edges,
        subtree,
    };
    Ok(map.figure()?)
}

/// The class with the most descendants that still make a clear map.
fn clear_subtree(classes: usize, edges: &[(usize, usize)]) -> Option<usize> {
    let mut children = vec![Vec::new(); classes];
    for &(parent, child) in edges {
        children[parent].push(child);
    }
    let descendants = |class: usize| {
        let (mut seen, mut open) = (vec![false; classes], vec![class]);
        while let Some(class) = open.pop() {
            for &child in &children[class] {
                if !std::mem::replace(&mut seen[child], true) {
                    open.push(child);
                }
            }
        }
        seen.into_iter().filter(|&seen| seen).count()
    };
    (0..classes)
        .map(|class| (descendants(class), class))
        .filter(|(count, _)| CLEAR_SUBTREE.contains(count))
        .max_by_key(|&(count, class)| (count, std::cmp::Reverse(class)))
        .map(|(_, class)| class)
}

/// Figure 2: prototypes of tasks that share classes, before and after propagation.
fn task_map(model: &TrainedModel, benchmark: &Benchmark, watch: &Watch<'_>) -> Result<Figure> {
    let config = TaskConfig {
        way: SHAPE.way,
        shot: SHAPE.shot,
        queries: 1,
        sampling: Sampling::Snowball,
        ..TaskConfig::default()
    };
    let sampler = TaskSampler::new(&benchmark.task_pool(Split::Close, Part::Test), config, 0)?;
    let mut tasks: Vec<Task> = vec![sampler.task(0)?];
    for index in 1..5_000 {
        let task = sampler.task(index)?;
        let shared = task.classes.iter().filter(|class| tasks[0].classes.contains(class)).count();
        if shared >= 2 && tasks.len() < MAPPED_TASKS {
            tasks.push(task);
        }
    }
    let embeddings = Embeddings::of_tasks(&model.network.embedder, benchmark.store(), &tasks, watch.stop())?;
    let data_set = benchmark.data_set(Split::Close);
    let propagated = tasks
        .iter()
        .map(|task| propagate(model.trained(), &data_set, &embeddings, task, Hierarchy::Known))
        .collect::<Result<Vec<_>, _>>()?;
    let points: Vec<f32> =
        propagated.iter().flat_map(|of_task| of_task.first.iter().chain(&of_task.last)).copied().collect();
    let settings = TsneSettings { perplexity: 8.0, ..TsneSettings::default() };
    let places = tsne(&points, model.memory.dim, &settings)?;
    let tasks = tasks.iter().enumerate().map(|(number, task)| {
        let begin = 2 * number * SHAPE.way;
        let class = |(place, &class): (usize, &u32)| TaskClass {
            class: name_of(&data_set, class, benchmark).to_owned(),
            before: places[begin + place],
            after: places[begin + SHAPE.way + place],
        };
        TaskPrototypes {
            name: format!("task {}", number + 1),
            classes: task.classes.iter().enumerate().map(class).collect(),
        }
    });
    let map = TaskMap {
        title: "Prototypes of several tasks, before and after propagation".into(),
        tasks: tasks.collect(),
    };
    Ok(map.figure()?)
}

/// Figure 3: accuracy on test classes by their distance to the nearest training class.
fn by_distance(
    model: &TrainedModel,
    benchmark: &Benchmark,
    sides: &[&Side],
    watch: &Watch<'_>,
) -> Result<Figure> {
    let lambdas = [1.0, model.info.lambda()];
    // For each distance the accuracy of every class of every task, before and after propagation.
    let mut by_distance: BTreeMap<u32, [Vec<f64>; 2]> = BTreeMap::new();
    for side in sides {
        let Side { tasks: TestTasks { tasks, data_set, .. }, embeddings } = side;
        let answered =
            answers(model.trained(), data_set, embeddings, tasks, Hierarchy::Known, &lambdas, watch.stop())?;
        for (task, of_task) in tasks.iter().zip(answered) {
            let mut begin = 0;
            for (answer, (&class, queries)) in task.classes.iter().zip(&task.query).enumerate() {
                let distance = benchmark.classes()[data_set.rows[class as usize]].distance;
                let accuracies = by_distance.entry(distance).or_default();
                for (accuracies, answers) in accuracies.iter_mut().zip(&of_task) {
                    let right =
                        answers[begin..][..queries.len()].iter().filter(|&&given| given == answer).count();
                    accuracies.push(100.0 * right as f64 / queries.len().max(1) as f64);
                }
                begin += queries.len();
            }
        }
    }
    let kind = model.info.method();
    let method = if kind.name == "gpn" { "GPN+" } else { kind.title };
    let series = ["the network, no propagation", method].into_iter().enumerate().map(|(place, name)| {
        let point = |(&distance, accuracies): (&u32, &[Vec<f64>; 2])| {
            let Estimate { mean, half_width } = Estimate::of(&accuracies[place]);
            DistancePoint { distance: distance as f32, accuracy: mean as f32, half_width: half_width as f32 }
        };
        DistanceSeries { name: name.into(), points: by_distance.iter().map(point).collect() }
    });
    let figure = AccuracyByDistance {
        title: "Accuracy by distance to the training classes".into(),
        series: series.collect(),
    };
    Ok(figure.figure())
}
