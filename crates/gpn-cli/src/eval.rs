//! `gpn eval`.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;
use gpn_data::benchmark::{Benchmark, Part, Split};
use gpn_data::task::{Sampling, Task, TaskConfig, TaskSampler, read_tasks};
use gpn_model::Device;
use gpn_train::{Embeddings, Estimate, Hierarchy, INTERVAL, TaskResult, TrainedModel, evaluate};

use crate::args::{EvalArguments, HierarchyName, SamplingName, TestSplit};
use crate::terminal::{self, Table};

pub(crate) fn run(arguments: &EvalArguments) -> anyhow::Result<()> {
    let device = Device::open(arguments.device.parse()?)?;
    let file =
        if arguments.run.is_dir() { arguments.run.join("model.safetensors") } else { arguments.run.clone() };
    let mut model = TrainedModel::read(&file, &device)?;
    let benchmark = Benchmark::open_with(&arguments.data, arguments.check())?;
    anyhow::ensure!(
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
    let embeddings = Embeddings::of_tasks(&mut model.network.embedder, benchmark.store(), &tasks)?;
    let data_set = benchmark.data_set(split);
    let trained = model.trained();
    let lambda = arguments.lambda.map_or_else(|| model.info.lambda(), |lambda| lambda as f32);
    let results = evaluate(trained, &data_set, &embeddings, &tasks, hierarchy, lambda)?;
    if let Some(path) = &arguments.csv {
        gpn_files::write(path, csv(&results)).with_context(|| format!("{}: cannot write", path.display()))?;
    }
    let column = |of: fn(&TaskResult) -> f64| Estimate::of(&results.iter().map(of).collect::<Vec<_>>());
    let [base, method, mixed] =
        [column(|result| result.base), column(|result| result.method), column(|result| result.mixed)];
    let gain = column(|result| result.method - result.base);
    let kind = model.info.method();
    let against = arguments.against.as_deref().map(|file| compare(&results, file)).transpose()?;
    if arguments.json {
        let report = serde_json::json!({
            "name": kind.name, "tasks": results.len(), "hierarchy": hierarchy, "lambda": lambda, "interval": INTERVAL,
            "base": base, "method": method, "mixed": mixed, "gain": gain, "against": against, "per_task": results,
        });
        return terminal::print_result(&format!("{report:#}\n"));
    }
    let mut table = Table::new(["accuracy on tasks, %", "mean", "+-"]);
    let mut rows = vec![("nearest mean of its embeddings".to_owned(), base), (kind.title.to_owned(), method)];
    if kind.tunes_lambda {
        rows.push((format!("before and after propagation mixed, lambda {lambda}"), mixed));
    }
    rows.push(("gain over the nearest mean, task by task".to_owned(), gain));
    rows.extend(against.map(|difference| ("against the other run, task by task".to_owned(), difference)));
    for (name, estimate) in rows {
        table.row([name, format!("{:.2}", estimate.mean), format!("{:.2}", estimate.half_width)]);
    }
    terminal::print_result(&format!("{table}\n{} tasks; {INTERVAL}\n", results.len()))
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
    for class in sampler.left_out() {
        terminal::warn(&format!("class {} has only {} samples and is left out", class.id, class.samples));
    }
    (0..arguments.tasks).map(|index| Ok(sampler.task(index)?)).collect()
}

/// The mean difference to another run, task by task.
fn compare(results: &[TaskResult], file: &Path) -> anyhow::Result<Estimate> {
    let theirs = read_accuracies(file)?;
    anyhow::ensure!(
        theirs.len() == results.len(),
        "{}: it holds {} tasks, but {} were evaluated here; evaluate both runs on the same tasks",
        file.display(),
        theirs.len(),
        results.len()
    );
    let ours: Vec<f64> = results.iter().map(|result| result.mixed).collect();
    Ok(Estimate::of_difference(&ours, &theirs))
}

/// The last column of a file of accuracies: what the method is used with.
pub(crate) fn read_accuracies(file: &Path) -> anyhow::Result<Vec<f64>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("{}: cannot read", file.display()))?;
    text.lines()
        .enumerate()
        .skip(1)
        .map(|(number, line)| {
            line.rsplit(',').next().and_then(|cell| cell.parse().ok()).with_context(|| {
                format!(
                    "{}, line {}: no accuracy; give a file that `gpn eval --csv` wrote",
                    file.display(),
                    number + 1
                )
            })
        })
        .collect()
}

/// The accuracies of every task; the last column is what the method is used with.
pub(crate) fn csv(results: &[TaskResult]) -> String {
    let mut text = String::from("task,base,method,mixed\n");
    for (number, result) in results.iter().enumerate() {
        // invariant: writing to a string does not fail.
        writeln!(text, "{number},{:.4},{:.4},{:.4}", result.base, result.method, result.mixed).unwrap();
    }
    text
}
