//! `gpn eval`.

use anyhow::Context as _;
use gpn::data::benchmark::{Benchmark, Split};
use gpn::data::task::{LeftOut, Sampling};
use gpn::train::{Estimate, Hierarchy, INTERVAL};
use gpn::{
    CatalogueAccuracy, CatalogueEvaluation, Device, EvaluationRequest, TestTasks, evaluate_all,
    evaluate_model, newest_model, output,
};

use crate::args::{EvalArguments, HierarchyName, SamplingName, TestSplit};
use crate::table::Table;
use crate::terminal;
use crate::watching::watched;

pub(crate) fn run(arguments: &EvalArguments) -> anyhow::Result<()> {
    watched(|watch| {
        if let Some(path) = &arguments.csv {
            output::may_write(path, arguments.force)?;
        }
        let device = Device::open(arguments.device.parse()?)?;
        let benchmark = Benchmark::open_with(&arguments.data, arguments.check())?;
        let model = newest_model(&arguments.run, &arguments.data, &device, watch)?;
        let request = request(arguments);
        if arguments.all {
            return print_all(&evaluate_all(&model, &benchmark, &request, watch)?, arguments.json);
        }
        let tasks = TestTasks::of(&benchmark, &request)?;
        warn_of_left_out(&tasks.left_out, request.shot + request.queries);
        let mut evaluation = evaluate_model(&model, &benchmark, &tasks, &request, watch)?;
        if let Some(file) = &arguments.against {
            evaluation.compare(file, &tasks)?;
        }
        if let Some(path) = &arguments.csv {
            gpn::files::write(path, evaluation.csv(&tasks))
                .with_context(|| format!("{}: cannot write", path.display()))?;
        }
        if arguments.json {
            return terminal::print_json(&format!("{:#}\n", serde_json::to_value(&evaluation)?));
        }
        let mut rows = vec![
            ("nearest mean of its embeddings".to_owned(), evaluation.base),
            (evaluation.title.clone(), evaluation.method),
        ];
        if evaluation.name == model.info.method().name && model.info.method().tunes_lambda {
            let lambda = evaluation.lambda;
            rows.push((format!("before and after propagation mixed, lambda {lambda}"), evaluation.mixed));
        }
        rows.push(("gain over the nearest mean, task by task".to_owned(), evaluation.gain));
        let against = evaluation.against;
        rows.extend(against.map(|difference| ("against the other run, task by task".to_owned(), difference)));
        let mut table = Table::new(["accuracy on tasks, %", "mean", "+-"]);
        for (name, estimate) in rows {
            table.row([name, two_decimals(estimate.mean), two_decimals(estimate.half_width)]);
        }
        let calibration = evaluation
            .calibration_error
            .map_or(String::new(), |error| format!("calibration error of its probabilities: {error:.1}%\n"));
        terminal::print_text(&format!("{table}\n{} tasks; {INTERVAL}\n{calibration}", evaluation.tasks))
    })?
}

/// Prints how a method does when all classes are answers at once.
fn print_all(evaluation: &CatalogueEvaluation, json: bool) -> anyhow::Result<()> {
    if json {
        return terminal::print_json(&format!("{:#}\n", serde_json::to_value(evaluation)?));
    }
    let mut table = Table::new(["accuracy on queries, %", "new", "known", "all", "harmonic mean"]);
    let rows = [("nearest mean of its embeddings", evaluation.base), (&evaluation.title, evaluation.method)];
    for (name, CatalogueAccuracy { new, known, all, harmonic }) in rows {
        let cell = |estimate: Estimate| format!("{:.1} +- {:.1}", estimate.mean, estimate.half_width);
        table.row([name.to_owned(), cell(new), cell(known), cell(all), cell(harmonic)]);
    }
    let CatalogueEvaluation { shot, new_classes, known_classes, .. } = evaluation;
    terminal::print_text(&format!(
        "{table}\nall leaf classes at once: {known_classes} known with all their samples, {new_classes} new with {shot}; ten draws; {INTERVAL}\n"
    ))
}

fn request(arguments: &EvalArguments) -> EvaluationRequest {
    let EvalArguments { way, shot, queries, rest, tasks, seed, .. } = *arguments;
    EvaluationRequest {
        split: match arguments.split {
            TestSplit::Close => Split::Close,
            TestSplit::Far => Split::Far,
        },
        sampling: match arguments.sampling {
            SamplingName::Random => Sampling::Random,
            SamplingName::Snowball => Sampling::Snowball,
        },
        hierarchy: match arguments.hierarchy {
            HierarchyName::Known => Hierarchy::Known,
            HierarchyName::Unknown => Hierarchy::Unknown,
        },
        way,
        shot,
        queries,
        rest,
        tasks,
        seed,
        tasks_file: arguments.tasks_file.clone(),
        lambda: arguments.lambda.map(|lambda| lambda as f32),
        method: arguments.method.clone(),
        names: arguments.names.clone(),
    }
}

/// A number with two decimals; one that rounds to nothing has no sign.
fn two_decimals(number: f64) -> String {
    let text = format!("{number:.2}");
    if text == "-0.00" { "0.00".into() } else { text }
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
