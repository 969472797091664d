//! The page that the demo writes.

use std::path::Path;

use gpn_data::benchmark::{Benchmark, Store};
use gpn_data::task::Task;
use gpn_report::{
    Answer, Better, Block, Card, Cell, Column, Picture, PictureGroup, PictureStrip, Report, Row, Table,
    Verdict,
};
use gpn_train::{Host, INTERVAL, Propagated, TrainedModel};

use super::own::{CONFIDENCE, Own, Shown};
use super::{ROWS, ResultRow, Side};
use crate::drawings::{learning_curves, messages, most_helped, name_of};
use crate::error::{Error, Result};

/// Queries of each class shown for the example.
const SHOWN: usize = 7;

pub(super) fn report(
    sides: &[Side; 2],
    own: &Own,
    model: &TrainedModel,
    benchmark: &Benchmark,
    run: &Path,
) -> Result<Report> {
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
        .card(Card::new("Graph prior on Close classes", format!("{:.1}%", close.prior.mean)).detail(format!(
            "{:+.1} +- {:.1} points over the nearest mean, task by task",
            close.prior_gain.mean, close.prior_gain.half_width
        )))
        .card(
            Card::new("GPN+ on Far classes", format!("{:.1}%", sides[1].known.mean))
                .detail(format!("{:+.1} +- {:.1} points", sides[1].gain.mean, sides[1].gain.half_width)),
        )
        .card(Card::new("Classes of your own", format!("{:.1}%", 100.0 * own.accuracy)).detail(format!(
            "{} classes; the nearest mean gives {:.1}%",
            own.classes,
            100.0 * own.nearest_mean
        )))
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
                 untouched, was chosen on validation tasks. The graph prior answers with the same network: it expects a new class \
                 where its relatives are, and trusts its samples the more the more there are."
                    .into(),
            ),
        ],
    );
    let (task, propagated) = most_helped(model, &close.tasks, &close.embeddings)?
        .ok_or_else(|| Error::input("the demo", "it has no task to show"))?;
    report.section(
        "One task",
        vec![
            Block::Text(
                "The task of the Close classes that propagation helped most among the first hundred: chosen to show what it \
                 does when it works."
                    .into(),
            ),
            Block::Pictures(pictures(close, task, &propagated, benchmark, model)?),
            Block::Figure(messages(&close.tasks.data_set, task, &propagated, benchmark).figure()?),
        ],
    );
    report.section("Classes of your own", own_classes(own, benchmark)?);
    if let Some(curves) = learning_curves(&[("", run)])? {
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

/// The journey with classes of one's own.
fn own_classes(own: &Own, benchmark: &Benchmark) -> Result<Vec<Block>> {
    let column =
        Column { group: None, name: "Share, %".into(), better: Better::Higher, decimals: 1, signed: false };
    let row =
        |name: String, share: f64| Row { name, cells: vec![Cell::number(100.0 * share)], rule_above: false };
    let table = Table {
        title: format!(
            "{} images of {} classes fitted, {} others tested",
            own.images[0], own.classes, own.images[1]
        ),
        stub: String::new(),
        columns: vec![column],
        rows: vec![
            row("nearest mean: right".into(), own.nearest_mean),
            row("fit: right".into(), own.accuracy),
            row(format!("fit, as deep as sure ({CONFIDENCE}): right, a class or one above it"), own.sure),
            row("fit, as deep as sure: the answer is a leaf".into(), own.leaves),
            row(
                format!(
                    "{} new classes, taught with {} images each: their other images right",
                    own.taught.len(),
                    own.taught_with
                ),
                own.new,
            ),
            row("the other classes, after that: right".into(), own.known),
        ],
        notes: vec![format!("Guessing gives {:.1}.", 100.0 / own.classes as f64)],
    };
    let pictures = |shown: &[Shown]| -> Result<Vec<Picture>> {
        let picture = |shown: &Shown| {
            Ok(Picture {
                bytes: png(benchmark.store(), shown.sample)?,
                name: shown.class.clone(),
                answers: shown
                    .answers
                    .iter()
                    .map(|(label, text, is_right)| Answer {
                        label: (*label).into(),
                        text: text.clone(),
                        verdict: if *is_right { Verdict::Right } else { Verdict::Wrong },
                    })
                    .collect(),
            })
        };
        shown.iter().map(picture).collect()
    };
    let groups = vec![
        PictureGroup { title: "Some of the images tested".into(), pictures: pictures(&own.shown[0])? },
        PictureGroup {
            title: "Images of new classes, before and after they were taught".into(),
            pictures: pictures(&own.shown[1])?,
        },
    ];
    Ok(vec![
        Block::Text(
            "The same network as a frozen encoder, on leaf classes that it never saw: `gpn fit` makes a model of them, `gpn test` measures \
             it on other images, `gpn teach` adds a class, `gpn predict` answers, with `--confidence` as deep as it is sure."
                .into(),
        ),
        Block::Table(table),
        Block::Pictures(PictureStrip {
            groups,
            caption: "Sure: the answer that is as deep as sure, right if it is the class or one above it.".into(),
        }),
    ])
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
        notes: vec![format!("{} tasks each; {INTERVAL}. Guessing gives 20.", sides[0].tasks.tasks.len())],
    };
    table.mark_best();
    table
}

fn pictures(
    side: &Side,
    task: &Task,
    propagated: &Propagated,
    benchmark: &Benchmark,
    model: &TrainedModel,
) -> Result<PictureStrip> {
    let name = |answer: usize| name_of(&side.tasks.data_set, task.classes[answer], benchmark).to_owned();
    let [before, after] =
        [&propagated.first, &propagated.last].map(|prototypes| side.embeddings.nearest(task, prototypes));
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
        .collect::<Result<_>>()?;
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
            percent(&propagated.first),
            percent(&propagated.last)
        ),
    })
}

fn png(store: &Store, sample: u32) -> Result<Vec<u8>> {
    let Store::Images { size, array } = store else {
        return Err(Error::input("the benchmark", "it holds no images"));
    };
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, *size, *size);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let written = encoder.write_header().and_then(|mut writer| {
        writer.write_image_data(array.row(sample as usize))?;
        writer.finish()
    });
    written.map_err(|error| Error::input("a picture of the demo", error.to_string()))?;
    Ok(bytes)
}
