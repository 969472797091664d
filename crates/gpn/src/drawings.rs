//! Figures of a model that both the demo and the experiments draw.

use std::path::Path;

use gpn_data::benchmark::{Benchmark, DataSet};
use gpn_data::task::Task;
use gpn_report::{Curve, GraphNode, LearningCurves, Message, MessageGraph};
use gpn_train::{Embeddings, Hierarchy, MetricsLine, Propagated, TrainedModel, propagate, read_metrics};

use crate::error::Result;
use crate::evaluation::TestTasks;

/// Tasks among which an example is looked for.
const LOOKED_AT: usize = 100;

/// The name of a class of a data set.
pub(crate) fn name_of<'a>(data_set: &DataSet, class: u32, benchmark: &'a Benchmark) -> &'a str {
    &benchmark.classes()[data_set.rows[class as usize]].name
}

/// The task among the first hundred that propagation helped most, and how.
pub(crate) fn most_helped<'a>(
    model: &TrainedModel,
    tasks: &'a TestTasks,
    embeddings: &Embeddings,
) -> Result<Option<(&'a Task, Propagated)>> {
    let mut best: Option<(f64, &Task, Propagated)> = None;
    for task in tasks.tasks.iter().take(LOOKED_AT) {
        let propagated = propagate(model.trained(), &tasks.data_set, embeddings, task, Hierarchy::Known)?;
        let percent = |prototypes: &[f32]| embeddings.percent(task, prototypes);
        let gain = percent(&propagated.last) - percent(&propagated.first);
        if best.as_ref().is_none_or(|(so_far, ..)| gain > *so_far) {
            best = Some((gain, task, propagated));
        }
    }
    Ok(best.map(|(_, task, propagated)| (task, propagated)))
}

/// Messages of the last step to the task's classes.
pub(crate) fn messages(
    data_set: &DataSet,
    task: &Task,
    propagated: &Propagated,
    benchmark: &Benchmark,
) -> MessageGraph {
    let last = propagated.influences.last().map_or(&[][..], Vec::as_slice);
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
            name: name_of(data_set, propagated.classes[node as usize], benchmark).to_owned(),
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
    let carries_message = |(parent, child): (usize, usize)| {
        messages.iter().any(|m| (m.from, m.to) == (parent, child) || (m.to, m.from) == (parent, child))
    };
    let edges = propagated
        .edges
        .iter()
        .filter(|(parent, child)| shown.contains(parent) && shown.contains(child))
        .map(|&(parent, child)| (place(parent), place(child)))
        .filter(|&edge| carries_message(edge))
        .collect();
    MessageGraph { title: "Who told whom, in the last step".into(), nodes, edges, messages }
}

/// Accuracy while training, from the metrics of runs: the name of each and its directory. `None` where there is nothing to
/// draw.
pub(crate) fn learning_curves(runs: &[(&str, &Path)]) -> Result<Option<LearningCurves>> {
    let mut curves = Vec::new();
    for (run, folder) in runs {
        let lines = read_metrics(folder)?;
        let points = |of: fn(&MetricsLine) -> Option<f64>| -> Vec<(f32, f32)> {
            lines.iter().filter_map(|line| Some((line.episode as f32, of(line)? as f32))).collect()
        };
        let (before, after) = (points(|line| line.validation_base), points(|line| line.validation));
        // A method that does not propagate has one accuracy.
        let validation = if before == after {
            vec![("validation tasks", after)]
        } else {
            vec![("validation tasks, no propagation", before), ("validation tasks, propagated", after)]
        };
        let training = ("training tasks", points(|line| line.accuracy.map(|share| 100.0 * f64::from(share))));
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
