//! Figures of a model that several commands draw.

use std::path::Path;

use anyhow::Context as _;
use gpn_data::benchmark::{Benchmark, DataSet};
use gpn_data::task::Task;
use gpn_report::{Curve, GraphNode, LearningCurves, Message, MessageGraph};
use gpn_train::{Embeddings, Hierarchy, Propagated, Trained, propagate};

/// Tasks among which an example is looked for.
const LOOKED_AT: usize = 100;

/// The name of a class of a data set.
pub(crate) fn name_of<'a>(data_set: &DataSet, class: u32, benchmark: &'a Benchmark) -> &'a str {
    &benchmark.classes()[data_set.rows[class as usize]].name
}

/// The task among the first hundred that propagation helped most, and how.
pub(crate) fn most_helped<'a>(
    trained: Trained<'_>,
    data_set: &DataSet,
    embeddings: &Embeddings,
    tasks: &'a [Task],
) -> anyhow::Result<Option<(&'a Task, Propagated)>> {
    let mut best: Option<(f64, &Task, Propagated)> = None;
    for task in tasks.iter().take(LOOKED_AT) {
        let told = propagate(trained, data_set, embeddings, task, Hierarchy::Known)?;
        let percent = |prototypes: &[f32]| embeddings.percent(task, prototypes);
        let gain = percent(&told.last) - percent(&told.first);
        if best.as_ref().is_none_or(|(so_far, ..)| gain > *so_far) {
            best = Some((gain, task, told));
        }
    }
    Ok(best.map(|(_, task, told)| (task, told)))
}

/// Who told whom how much in the last step, at the task's classes.
pub(crate) fn messages(
    data_set: &DataSet,
    task: &Task,
    told: &Propagated,
    benchmark: &Benchmark,
) -> MessageGraph {
    let last = told.influences.last().map_or(&[][..], Vec::as_slice);
    let mut shown: Vec<u32> = (0..task.classes.len() as u32).collect();
    for influence in last {
        shown.extend(influence.senders.iter().map(|&(sender, _)| sender));
    }
    shown.sort_unstable();
    shown.dedup();
    // invariant: every sender was collected above.
    let place = |node: u32| shown.binary_search(&node).unwrap();
    let gate = |node: u32| last.iter().find(|influence| influence.receiver == node).map(|i| i.own);
    let nodes = shown
        .iter()
        .map(|&node| GraphNode {
            name: name_of(data_set, told.classes[node as usize], benchmark).to_owned(),
            target: (node as usize) < task.classes.len(),
            gate: gate(node),
        })
        .collect();
    let messages: Vec<Message> = last
        .iter()
        .flat_map(|influence| {
            influence.senders.iter().map(|&(sender, share)| Message {
                from: place(sender),
                to: place(influence.receiver),
                attention: share / (1.0 - influence.own).max(1e-6),
            })
        })
        .collect();
    let told_over = |(parent, child): (usize, usize)| {
        messages.iter().any(|m| (m.from, m.to) == (parent, child) || (m.to, m.from) == (parent, child))
    };
    let edges = told
        .edges
        .iter()
        .filter(|(parent, child)| shown.contains(parent) && shown.contains(child))
        .map(|&(parent, child)| (place(parent), place(child)))
        .filter(|&edge| told_over(edge))
        .collect();
    MessageGraph { title: "Who told whom, in the last step".into(), nodes, edges, messages }
}

/// Accuracy while training, from the metrics of runs: the name of each and its directory. `None` where there is nothing to
/// draw.
pub(crate) fn learning_curves(runs: &[(&str, &Path)]) -> anyhow::Result<Option<LearningCurves>> {
    let mut curves = Vec::new();
    for (run, folder) in runs {
        let path = folder.join("metrics.jsonl");
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("{}: cannot read", path.display()))?;
        let lines: Vec<serde_json::Value> =
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let points = |key: &str, scale: f64| -> Vec<(f32, f32)> {
            let point = |line: &serde_json::Value| {
                Some((line["episode"].as_f64()? as f32, (scale * line[key].as_f64()?) as f32))
            };
            lines.iter().filter_map(point).collect()
        };
        let (before, after) = (points("validation_base", 1.0), points("validation", 1.0));
        // A method that does not propagate has one accuracy.
        let validation = if before == after {
            vec![("validation tasks", after)]
        } else {
            vec![("validation tasks, no propagation", before), ("validation tasks, propagated", after)]
        };
        let training = ("training tasks", points("accuracy", 100.0));
        let separator = if run.is_empty() { "" } else { ": " };
        for (name, points) in std::iter::once(training).chain(validation) {
            if !points.is_empty() {
                curves.push(Curve { name: format!("{run}{separator}{name}"), points });
            }
        }
    }
    let drawn = curves.iter().any(|curve| curve.points.len() > 1);
    Ok(drawn.then(|| LearningCurves {
        title: "Accuracy while training".into(),
        x_label: "Episodes".into(),
        y_label: "Accuracy, %".into(),
        curves,
        window: 5,
    }))
}
