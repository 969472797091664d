//! The parts of GPN changed one by one.

use gpn_data::benchmark::Split;
use gpn_data::task::Sampling;
use gpn_report::{Block, Cell, Column, Report, Table, published, to_markdown};
use gpn_train::{Estimate, Hierarchy, INTERVAL};

use super::lab::{Lab, Setting, Shape};
use super::{LabRequest, Made, describe, write_table};
use crate::error::Result;
use crate::watch::Watch;

/// A change, and the settings that make it.
struct Variant {
    run: &'static str,
    settings: &'static [&'static str],
    /// Its name in the published table.
    published_as: Option<&'static str>,
    title: &'static str,
}

const fn published(run: &'static str, settings: &'static [&'static str], name: &'static str) -> Variant {
    Variant { run, settings, published_as: Some(name), title: "" }
}

const fn own(run: &'static str, settings: &'static [&'static str], title: &'static str) -> Variant {
    Variant { run, settings, published_as: None, title }
}

/// The rows of the published table, the whole method last, then changes that the paper does not report.
const VARIANTS: [Variant; 17] = [
    published("snowball-only", &["task.sampling=snowball"], "S-S"),
    published("random-only", &["task.sampling=random"], "R-S"),
    published("from-parents", &["propagation.order=parents"], "F→C"),
    published("from-children", &["propagation.order=children"], "C→C"),
    published("forward-then-backward", &["propagation.order=forward_then_backward"], "B→P"),
    published("alternating", &["propagation.order=alternating"], "M→P"),
    published("no-auxiliary", &["schedule.auxiliary=false"], "no AUX"),
    published("no-spanning-tree", &["pathways.spanning_tree=off"], "no MST"),
    published("one-head", &["propagation.heads=1"], "no M-H"),
    published("additive", &["propagation.attention=additive"], "A-A"),
    published("gpn-5w1s", &[], "SR-S, N→C, AUX, MST, M-H, M-A"),
    own("raw-cosine", &["propagation.attention=cosine_raw"], "cosine itself as the weight"),
    own("sharp-attention", &["propagation.attention_temperature=10"], "attention ten times as sharp"),
    own("sharp-gate", &["propagation.gate_temperature=10"], "gate ten times as sharp"),
    own("detached", &["train.through_prototypes=false"], "no gradient through prototypes"),
    own("common-moments", &["train.own_moments=false"], "one set of moments for both kinds of steps"),
    own(
        "rare-memory",
        &["memory.refresh_every=0", "memory.share=0.02"],
        "memory refreshed for 2% of the work",
    ),
];
/// The whole method.
const WHOLE: &str = "gpn-5w1s";
const SHAPE: Shape = Shape { way: 5, shot: 1 };
const SAMPLINGS: [Sampling; 2] = [Sampling::Random, Sampling::Snowball];

/// Changes the parts of GPN one by one, as in the published ablation table.
pub fn ablation(request: &LabRequest, watch: &Watch<'_>) -> Result<Made> {
    let lab = Lab::open(request, watch)?;
    let mut reached = Vec::new();
    for variant in &VARIANTS {
        let config = lab.run_config("gpn", SHAPE, variant.settings)?;
        let run = lab.trained(variant.run, &config)?;
        let settings = SAMPLINGS.map(|sampling| Setting {
            split: Split::Close,
            sampling,
            shape: SHAPE,
            hierarchy: Hierarchy::Known,
        });
        reached.push(lab.measured(variant.run, &run, &settings)?);
    }
    let table = table(&lab, &reached)?;
    write_table(&lab, "ablation", &table)?;
    let mut report = Report::new(
        "GPN, part by part",
        "One part changed at a time; all else, tasks included, is the same.",
    );
    let text = to_markdown(&table);
    report.section("Ablation", vec![Block::Table(table)]);
    describe(&mut report, &lab);
    let page = lab.out().join("ablation.html");
    report.write(&page)?;
    Ok(Made { text, page })
}

fn table(lab: &Lab<'_>, reached: &[Vec<Vec<f64>>]) -> Result<Table> {
    let (random, snowball) = ("Close, random tasks", "Close, snowball tasks");
    let columns = vec![
        Column::new("ours").under(random).higher_is_better(),
        Column::new("against the whole").under(random).signed(),
        Column::new("published").under(random).higher_is_better(),
        Column::new("ours").under(snowball).higher_is_better(),
        Column::new("against the whole").under(snowball).signed(),
    ];
    let mut table = Table::new("GPN+ with one part changed, 5-way 1-shot: accuracy, %", "Changed", columns);
    // invariant: the whole method is one of the variants.
    let whole = VARIANTS.iter().position(|variant| variant.run == WHOLE).unwrap();
    for (row, (variant, accuracies)) in VARIANTS.iter().zip(reached).enumerate() {
        let theirs = variant
            .published_as
            .and_then(|name| published::ABLATION.iter().find(|row| row.published_as == name));
        let mut cells = Vec::new();
        for (place, accuracies) in accuracies.iter().enumerate() {
            let ours = Estimate::of(accuracies);
            cells.push(Cell::estimate(ours.mean, ours.half_width).linked(format!("runs/{}", variant.run)));
            let difference = Estimate::of_difference(accuracies, &reached[whole][place]);
            cells.push(if row == whole {
                Cell::empty()
            } else {
                Cell::estimate(difference.mean, difference.half_width)
            });
            if place == 0 {
                cells.push(theirs.map_or_else(Cell::empty, |row| {
                    Cell::estimate(row.accuracy.mean, row.accuracy.half_width)
                }));
            }
        }
        let title = match theirs {
            _ if row == whole => "nothing: the whole method".into(),
            Some(row) => format!("{} ({})", row.variant, row.published_as),
            None => variant.title.to_owned(),
        };
        table.row(title, cells)?;
    }
    table.rows[whole].rule_above = true;
    table.rows[whole + 1].rule_above = true;
    table.mark_best();
    table.notes.push(format!(
        "{} tasks with 15 queries a class; {INTERVAL}. \"Against the whole\" is the difference task by task. Published: \
         tieredImageNet, 350,000 episodes; the last rows are not in the published table.",
        lab.tasks()
    ));
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_row_has_its_variant() {
        for row in published::ABLATION {
            let found = VARIANTS.iter().filter(|variant| variant.published_as == Some(row.published_as));
            assert_eq!(found.count(), 1, "{}", row.published_as);
        }
    }
}
