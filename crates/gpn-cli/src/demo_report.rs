//! The page that `gpn demo` writes.

use std::path::Path;

use anyhow::Context as _;
use gpn_data::benchmark::{Benchmark, Store};
use gpn_data::task::Task;
use gpn_report::{
    Answer, Better, Block, Card, Cell, Column, Curve, GraphNode, LearningCurves, Message, MessageGraph,
    Picture, PictureGroup, PictureStrip, Report, Row, Table, Verdict,
};
use gpn_train::{Hierarchy, Host, INTERVAL, Propagated, Trained, TrainedModel, propagate};

use crate::demo::{ROWS, ResultRow, Side};

/// Queries of each class shown for the example.
const SHOWN: usize = 7;

pub(crate) fn report(
    sides: &[Side; 2],
    model: &TrainedModel,
    benchmark: &Benchmark,
    run: &Path,
) -> anyhow::Result<Report> {
    let close = &sides[0];
    let mut report = Report::new(
        "gpn demo",
        "A network saw some classes of a taxonomy in training. Here it meets new classes, with one labelled image each, and \
         lets related classes tell what they know.",
    );
    report
        .card(Card::new("GPN+ on Close classes", format!("{:.1}%", close.known.mean)).accent().detail(
            format!(
                "{:+.1} +- {:.1} points by propagation, task by task",
                close.gain.mean, close.gain.half_width
            ),
        ))
        .card(
            Card::new("GPN+ on Far classes", format!("{:.1}%", sides[1].known.mean))
                .detail(format!("{:+.1} +- {:.1} points", sides[1].gain.mean, sides[1].gain.half_width)),
        )
        .card(
            Card::new("Classes trained on", model.info.classes.len().to_string())
                .detail("of all levels, from single kinds to \u{201c}thing\u{201d}"),
        );
    report.section(
        "Result",
        vec![
            Block::Table(result_table(sides)),
            Block::Text(
                "Close classes are near training classes in the taxonomy, Far ones are not: related classes that were \
                 trained on are what propagation draws on. Lambda, the share of a class's own prototype that is kept \
                 untouched, was chosen on validation tasks."
                    .into(),
            ),
        ],
    );
    let (task, told) = example(close, model)?;
    report.section(
        "One task",
        vec![
            Block::Text(
                "The task of the Close classes that propagation helped most among the first hundred: chosen to show what it \
                 does when it works."
                    .into(),
            ),
            Block::Pictures(pictures(close, task, &told, benchmark, model)?),
            Block::Figure(messages(close, task, &told, benchmark).figure()?),
        ],
    );
    if let Some(curves) = learning_curves(run)? {
        report.section("Training", vec![Block::Figure(curves.figure())]);
    }
    let host = Host::here();
    report
        .environment("program", &model.info.built_by)
        .environment("machine", format!("{}, {} threads, {}", host.system, host.threads, host.simd))
        .environment("seed", model.info.config.train.seed.to_string())
        .environment("benchmark", &model.info.benchmark);
    Ok(report)
}

fn result_table(sides: &[Side; 2]) -> Table {
    let column = |side: &Side| Column {
        group: Some("5 new classes, 1 labelled image each".into()),
        name: format!("{} classes", side.name),
        better: Better::Higher,
        decimals: 1,
        signed: false,
    };
    let row = |(name, of): ResultRow| Row {
        name: name.into(),
        cells: sides.iter().map(|side| Cell::estimate(of(side).mean, of(side).half_width)).collect(),
        rule_above: false,
    };
    let mut table = Table {
        title: "Accuracy on new classes, %".into(),
        stub: String::new(),
        columns: sides.iter().map(column).collect(),
        rows: ROWS.into_iter().map(row).collect(),
        notes: vec![format!("{} tasks each; {INTERVAL}. Guessing gives 20.", sides[0].tasks.len())],
    };
    table.mark_best();
    table
}

/// The task among the first hundred that propagation helped most.
fn example<'a>(side: &'a Side, model: &TrainedModel) -> anyhow::Result<(&'a Task, Propagated)> {
    let trained = Trained {
        propagator: &model.network.propagator,
        memory: &model.memory,
        pathways: &model.info.config.pathways,
    };
    let mut best: Option<(f64, &Task, Propagated)> = None;
    for task in side.tasks.iter().take(100) {
        let told = propagate(trained, &side.data_set, &side.embeddings, task, Hierarchy::Known)?;
        let percent = |prototypes: &[f32]| side.embeddings.percent(task, prototypes);
        let gain = percent(&told.last) - percent(&told.first);
        if best.as_ref().is_none_or(|(so_far, ..)| gain > *so_far) {
            best = Some((gain, task, told));
        }
    }
    best.map(|(_, task, told)| (task, told)).context("the demo has no task to show")
}

fn name_of<'a>(side: &Side, class: u32, benchmark: &'a Benchmark) -> &'a str {
    &benchmark.classes()[side.data_set.rows[class as usize]].name
}

fn pictures(
    side: &Side,
    task: &Task,
    told: &Propagated,
    benchmark: &Benchmark,
    model: &TrainedModel,
) -> anyhow::Result<PictureStrip> {
    let name = |answer: usize| name_of(side, task.classes[answer], benchmark).to_owned();
    let [before, after] =
        [&told.first, &told.last].map(|prototypes| side.embeddings.nearest(task, prototypes));
    let labelled = task
        .support
        .iter()
        .enumerate()
        .map(|(answer, support)| {
            Ok(Picture {
                bytes: png(benchmark.store(), support[0])?,
                name: name(answer),
                answers: Vec::new(),
            })
        })
        .collect::<anyhow::Result<_>>()?;
    let mut groups = vec![PictureGroup { title: "The labelled images".into(), pictures: labelled }];
    let mut place = 0;
    for (answer, of_answer) in task.query.iter().enumerate() {
        let said = |label: &str, given: usize| Answer {
            label: label.into(),
            text: name(given),
            verdict: if given == answer { Verdict::Right } else { Verdict::Wrong },
        };
        let mut pictures = Vec::new();
        for (&sample, query) in of_answer.iter().zip(place..).take(SHOWN) {
            pictures.push(Picture {
                bytes: png(benchmark.store(), sample)?,
                name: name(answer),
                answers: vec![said("before", before[query]), said("after", after[query])],
            });
        }
        place += of_answer.len();
        groups.push(PictureGroup { title: format!("Queries: {}", name(answer)), pictures });
    }
    let percent = |prototypes: &[f32]| side.embeddings.percent(task, prototypes);
    let size = model.info.config.model.image_size;
    Ok(PictureStrip {
        groups,
        caption: format!(
            "Answers before and after propagation: {:.0}% and {:.0}% of all queries are right. The network sees {size} x \
             {size} pixels.",
            percent(&told.first),
            percent(&told.last)
        ),
    })
}

fn png(store: &Store, sample: u32) -> anyhow::Result<Vec<u8>> {
    let Store::Images { size, array } = store else { anyhow::bail!("the benchmark holds no images") };
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, *size, *size);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(array.row(sample as usize))?;
    writer.finish()?;
    Ok(bytes)
}

/// Who told whom how much in the last step, at the task's classes.
fn messages(side: &Side, task: &Task, told: &Propagated, benchmark: &Benchmark) -> MessageGraph {
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
            name: name_of(side, told.classes[node as usize], benchmark).to_owned(),
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

/// Accuracy while training, from the run's metrics.
fn learning_curves(run: &Path) -> anyhow::Result<Option<LearningCurves>> {
    let path = run.join("metrics.jsonl");
    let text = std::fs::read_to_string(&path).with_context(|| format!("{}: cannot read", path.display()))?;
    let lines: Vec<serde_json::Value> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let curve = |name: &str, key: &str, scale: f64| Curve {
        name: name.into(),
        points: lines
            .iter()
            .filter_map(|line| Some((line["episode"].as_f64()? as f32, (scale * line[key].as_f64()?) as f32)))
            .collect(),
    };
    let curves = vec![
        curve("training tasks", "accuracy", 100.0),
        curve("validation tasks, no propagation", "validation_base", 1.0),
        curve("validation tasks, propagated", "validation", 1.0),
    ];
    let drawn = curves.iter().any(|curve| curve.points.len() > 1);
    Ok(drawn.then(|| LearningCurves {
        title: "Accuracy while training".into(),
        x_label: "Episodes".into(),
        y_label: "Accuracy, %".into(),
        curves,
        window: 5,
    }))
}
