//! `gpn eval`.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, ensure};
use gpn_data::benchmark::{Benchmark, Part, Split};
use gpn_data::task::{LeftOut, Sampling, Task, TaskConfig, TaskSampler, fingerprint_of_list, read_tasks};
use gpn_model::Device;
use gpn_train::{
    Embeddings, Estimate, Hierarchy, INTERVAL, RunDirectory, RunModel, TaskResult, TrainedModel, Trainer,
    evaluate, model_file,
};

use crate::args::{EvalArguments, HierarchyName, SamplingName, TestSplit};
use crate::table::Table;
use crate::{output, terminal};

pub(crate) fn run(arguments: &EvalArguments) -> anyhow::Result<()> {
    if let Some(path) = &arguments.csv {
        output::may_write(path, arguments.force)?;
    }
    let device = Device::open(arguments.device.parse()?)?;
    let benchmark = Benchmark::open_with(&arguments.data, arguments.check())?;
    let mut model = model(arguments, &device)?;
    ensure!(
        benchmark.manifest().fingerprint() == model.info.benchmark,
        "{}: the model was trained on another benchmark; its classes do not fit this one",
        arguments.data.display()
    );
    let split = match arguments.split {
        TestSplit::Close => Split::Close,
        TestSplit::Far => Split::Far,
    };
    let hierarchy = match arguments.hierarchy {
        HierarchyName::Known => Hierarchy::Known,
        HierarchyName::Unknown => Hierarchy::Unknown,
    };
    let tasks = tasks(arguments, &benchmark, split)?;
    let fingerprints = fingerprints(&benchmark, split, &tasks);
    let theirs = arguments.against.as_deref().map(|file| accuracies_of(file, &fingerprints)).transpose()?;
    let embeddings = Embeddings::of_tasks(&mut model.network.embedder, benchmark.store(), &tasks)?;
    let data_set = benchmark.data_set(split);
    let trained = model.trained();
    let lambda = arguments.lambda.map_or_else(|| model.info.lambda(), |lambda| lambda as f32);
    let results = evaluate(trained, &data_set, &embeddings, &tasks, hierarchy, lambda)?;
    if let Some(path) = &arguments.csv {
        gpn_files::write(path, csv(&results, &fingerprints))
            .with_context(|| format!("{}: cannot write", path.display()))?;
    }
    let column = |of: fn(&TaskResult) -> f64| Estimate::of(&results.iter().map(of).collect::<Vec<_>>());
    let [base, method, mixed] =
        [column(|result| result.base), column(|result| result.method), column(|result| result.mixed)];
    let mixed_of_each: Vec<f64> = results.iter().map(|result| result.mixed).collect();
    let against = theirs.map(|theirs| Estimate::of_difference(&mixed_of_each, &theirs));
    let gain = column(|result| result.method - result.base);
    let kind = model.info.method();
    if arguments.json {
        let report = serde_json::json!({
            "name": kind.name, "episode": model.info.episode, "tasks": results.len(),
            "fingerprint": fingerprint_of_list(fingerprints.iter().map(String::as_str)), "hierarchy": hierarchy, "lambda": lambda, "interval": INTERVAL,
            "base": base, "method": method, "mixed": mixed, "gain": gain, "against": against, "per_task": results,
        });
        return terminal::print_json(&format!("{report:#}\n"));
    }
    let mut table = Table::new(["accuracy on tasks, %", "mean", "+-"]);
    let mut rows = vec![("nearest mean of its embeddings".to_owned(), base), (kind.title.to_owned(), method)];
    if kind.tunes_lambda {
        rows.push((format!("before and after propagation mixed, lambda {lambda}"), mixed));
    }
    rows.push(("gain over the nearest mean, task by task".to_owned(), gain));
    rows.extend(against.map(|difference| ("against the other run, task by task".to_owned(), difference)));
    for (name, estimate) in rows {
        table.row([name, two_decimals(estimate.mean), two_decimals(estimate.half_width)]);
    }
    terminal::print_text(&format!("{table}\n{} tasks; {INTERVAL}\n", results.len()))
}

/// A number with two decimals; one that rounds to nothing has no sign.
fn two_decimals(number: f64) -> String {
    let text = format!("{number:.2}");
    if text == "-0.00" { "0.00".into() } else { text }
}

/// The model to evaluate: a file, that of a run, or what a run that is not finished has to show.
fn model(arguments: &EvalArguments, device: &Device) -> anyhow::Result<TrainedModel> {
    let folder = &arguments.run;
    if !folder.join("config.toml").is_file() {
        return Ok(TrainedModel::read(&model_file(folder)?, device)?);
    }
    let (run, config, _) = RunDirectory::open(folder)?;
    let unfinished = |what: &str, episode: u64| {
        let (folder, episodes) = (folder.display(), config.train.episodes);
        terminal::warn(&format!(
            "{folder}: its training is not finished; {what} is evaluated, after episode {episode} of {episodes}"
        ));
    };
    match run.newest_model(&config)? {
        Some(RunModel::Finished(path)) => Ok(TrainedModel::read(&path, device)?),
        Some(RunModel::BestSoFar { path, episode }) => {
            unfinished("the best model so far", episode);
            Ok(TrainedModel::read(&path, device)?)
        }
        Some(RunModel::Checkpoint { episode }) => {
            unfinished("its newest checkpoint", episode);
            let mut trainer = Trainer::new(&config, Benchmark::open(&arguments.data)?, device)?;
            for warning in trainer.load(&run.checkpoints())?.warnings {
                terminal::warn(&warning);
            }
            Ok(trainer.into_model()?)
        }
        None => anyhow::bail!(
            "{}: it has no checkpoint yet; train it with `gpn train --resume {0}`",
            folder.display()
        ),
    }
}

/// The fingerprint of each task, over the classes and samples of a split.
pub(crate) fn fingerprints(benchmark: &Benchmark, split: Split, tasks: &[Task]) -> Vec<String> {
    let data_set = format!("{} {}", benchmark.manifest().fingerprint(), split.name());
    tasks.iter().map(|task| task.fingerprint(&data_set)).collect()
}

/// One warning of all classes that are too small for the tasks.
fn warn_of_left_out(left_out: &[LeftOut], needed: usize) {
    match left_out {
        [] => {}
        [class] => terminal::warn(&format!(
            "class {} has only {} of the {needed} samples that these tasks take and is left out",
            class.id, class.samples
        )),
        _ => {
            let named = left_out.iter().map(|class| format!("{} ({})", class.id, class.samples));
            terminal::warn(&format!(
                "{} classes have fewer than the {needed} samples that these tasks take and are left out: {}",
                left_out.len(),
                terminal::first_few(named)
            ));
        }
    }
}

fn tasks(arguments: &EvalArguments, benchmark: &Benchmark, split: Split) -> anyhow::Result<Vec<Task>> {
    if let Some(file) = &arguments.tasks_file {
        let tasks = read_tasks(file)?;
        let classes = benchmark.data_set(split).rows.len() as u32;
        for (number, task) in tasks.iter().enumerate() {
            if let Some(class) = task.classes.iter().find(|&&class| class >= classes) {
                anyhow::bail!(
                    "{}: task {number} asks for class {class}, but {} has {classes} classes of this split",
                    file.display(),
                    arguments.data.display()
                );
            }
        }
        return Ok(tasks);
    }
    let sampling = match arguments.sampling {
        SamplingName::Random => Sampling::Random,
        SamplingName::Snowball => Sampling::Snowball,
    };
    let EvalArguments { way, shot, queries, rest, .. } = *arguments;
    let config = TaskConfig { way, shot, queries, sampling, rest, ..TaskConfig::default() };
    let sampler = TaskSampler::new(&benchmark.task_pool(split, Part::Test), config, arguments.seed)?;
    warn_of_left_out(sampler.left_out(), shot + queries);
    (0..arguments.tasks).map(|index| Ok(sampler.task(index)?)).collect()
}

/// The accuracies of another run on these very tasks.
fn accuracies_of(file: &Path, fingerprints: &[String]) -> anyhow::Result<Vec<f64>> {
    let shown = file.display();
    let theirs = read_accuracies(file)?;
    ensure!(
        theirs.len() == fingerprints.len(),
        "{shown}: it holds {} tasks, but {} are evaluated here; evaluate both runs on the same tasks",
        theirs.len(),
        fingerprints.len()
    );
    for (number, (line, fingerprint)) in theirs.iter().zip(fingerprints).enumerate() {
        let other = line.fingerprint.as_ref().with_context(|| {
            format!("{shown}: it does not say which tasks it holds; write it anew with this version's `gpn eval --csv`")
        })?;
        ensure!(
            other == fingerprint,
            "{shown}: its task {number} is not the one that is evaluated here; evaluate both runs on the same tasks (the \
             same --data, --split, --sampling, --way, --shot, --queries and --seed, or the same --tasks-file)"
        );
    }
    Ok(theirs.iter().map(|line| line.accuracy).collect())
}

/// A line of a file of accuracies.
pub(crate) struct AccuracyLine {
    /// Which task it is; files of the first version do not say.
    fingerprint: Option<String>,
    /// What the method is used with.
    pub(crate) accuracy: f64,
}

/// Reads a file of accuracies.
pub(crate) fn read_accuracies(file: &Path) -> anyhow::Result<Vec<AccuracyLine>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("{}: cannot read", file.display()))?;
    let place =
        |name: &str| text.lines().next().unwrap_or_default().split(',').position(|title| title == name);
    let (fingerprint, accuracy) = (place(FINGERPRINT), place(ACCURACY));
    text.lines()
        .enumerate()
        .skip(1)
        .map(|(number, line)| {
            let cells: Vec<&str> = line.split(',').collect();
            let cell = |place: Option<usize>| place.and_then(|place| cells.get(place).copied());
            let accuracy: Option<f64> = cell(accuracy).and_then(|cell| cell.parse().ok());
            let accuracy = accuracy.filter(|accuracy| accuracy.is_finite()).with_context(|| {
                format!(
                    "{}, line {}: no accuracy; give a file that `gpn eval --csv` wrote",
                    file.display(),
                    number + 1
                )
            })?;
            Ok(AccuracyLine { fingerprint: cell(fingerprint).map(str::to_owned), accuracy })
        })
        .collect()
}

const FINGERPRINT: &str = "fingerprint";
/// The column of what the method is used with.
const ACCURACY: &str = "mixed";

/// The accuracies of every task.
pub(crate) fn csv(results: &[TaskResult], fingerprints: &[String]) -> String {
    let mut text = format!("task,{FINGERPRINT},base,method,{ACCURACY}\n");
    for (number, (result, fingerprint)) in results.iter().zip(fingerprints).enumerate() {
        let TaskResult { base, method, mixed } = result;
        // invariant: writing to a string does not fail.
        writeln!(text, "{number},{fingerprint},{base:.4},{method:.4},{mixed:.4}").unwrap();
    }
    text
}
