//! The page that the demo writes.

use std::path::Path;

use gpn_data::benchmark::{Benchmark, Store};
use gpn_data::task::Task;
use gpn_report::{
    Answer, Better, Block, Card, Cell, Column, Picture, PictureGroup, PictureStrip, Report, Row, Table,
    Verdict,
};
use gpn_train::{Host, INTERVAL, Propagated, TrainedModel};

use super::{ROWS, ResultRow, Side};
use crate::drawings::{learning_curves, messages, most_helped, name_of};
use crate::error::{Error, Result};

/// Queries of each class shown for the example.
const SHOWN: usize = 7;

pub(super) fn report(
    sides: &[Side; 2],
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
