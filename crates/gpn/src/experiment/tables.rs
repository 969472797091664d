//! All methods on all kinds of tasks, beside the published numbers.

use gpn_data::benchmark::Split;
use gpn_data::task::Sampling;
use gpn_model::methods::MethodKind;
use gpn_report::{Block, Card, Cell, Column, Report, Table, published, to_markdown};
use gpn_train::{Estimate, Hierarchy, INTERVAL};

use super::contender::{BASELINE, Contender, contenders};
use super::lab::{Lab, Setting, Shape};
use super::{LabRequest, Made, describe, write_table};
use crate::error::Result;
use crate::watch::Watch;

/// What the tables compare.
#[derive(Clone, Debug)]
pub struct TablesRequest {
    /// Where, on what and how long.
    pub lab: LabRequest,
    /// Kinds of tasks.
    pub shapes: Vec<Shape>,
    /// Methods to compare, all if empty; the Prototypical Network is always among them.
    pub methods: Vec<String>,
}

/// The published tables of results, in their order.
const TABLES: [(Split, Sampling, &str, &str); 4] = [
    (Split::Close, Sampling::Random, "close-random", "Close classes, random tasks"),
    (Split::Close, Sampling::Snowball, "close-snowball", "Close classes, snowball tasks"),
    (Split::Far, Sampling::Random, "far-random", "Far classes, random tasks"),
    (Split::Far, Sampling::Snowball, "far-snowball", "Far classes, snowball tasks"),
];

/// What one contender reached with one shape of tasks: where its run is, and the accuracies of each table.
struct Reached {
    run: String,
    accuracies: Vec<Vec<f64>>,
}

/// Trains and tests all methods on all kinds of tasks, and sets the results beside the published tables.
pub fn tables(arguments: &TablesRequest, watch: &Watch<'_>) -> Result<Made> {
    for name in &arguments.methods {
        MethodKind::named(name)?;
    }
    let lab = Lab::open(&arguments.lab, watch)?;
    let wanted = |contender: &Contender| {
        let named = arguments.methods.iter().any(|name| name == contender.method);
        arguments.methods.is_empty() || named || contender.run == BASELINE
    };
    let contenders: Vec<Contender> = contenders().into_iter().filter(wanted).collect();
    let mut reached = Vec::new();
    for contender in &contenders {
        let of_shape = |shape: &Shape| reach(&lab, contender, *shape);
        reached.push(arguments.shapes.iter().map(of_shape).collect::<Result<Vec<Reached>>>()?);
    }

    let mut report = Report::new(
        "Few-shot methods compared",
        "The same backbone, tasks and schedule for every method; test classes were never trained on.",
    );
    cards(&mut report, &contenders, &reached, &arguments.shapes);
    let mut text = String::new();
    for (number, (split, sampling, name, title)) in TABLES.into_iter().enumerate() {
        let table = table(&lab, &contenders, &reached, &arguments.shapes, number, (split, sampling, title))?;
        write_table(&lab, name, &table)?;
        text += &to_markdown(&table);
        text.push('\n');
        report.section(title, vec![Block::Table(table)]);
    }
    report.section("How to read this", vec![Block::Text(notes(&lab))]);
    describe(&mut report, &lab);
    let page = lab.out().join("tables.html");
    report.write(&page)?;
    Ok(Made { text, page })
}

fn reach(lab: &Lab<'_>, contender: &Contender, shape: Shape) -> Result<Reached> {
    let name = format!("{}-{shape}", contender.run);
    let config = lab.run_config(contender.method, shape, contender.settings)?;
    let run = lab.trained(&name, &config)?;
    let settings = TABLES.map(|(split, sampling, ..)| Setting {
        split,
        sampling,
        shape,
        hierarchy: contender.hierarchy,
    });
    Ok(Reached { accuracies: lab.measured(&name, &run, &settings)?, run: format!("runs/{name}") })
}

fn table(
    lab: &Lab<'_>,
    contenders: &[Contender],
    reached: &[Vec<Reached>],
    shapes: &[Shape],
    number: usize,
    (split, sampling, title): (Split, Sampling, &str),
) -> Result<Table> {
    let mut columns = Vec::new();
    for shape in shapes {
        let group = format!("{}-way {}-shot", shape.way, shape.shot);
        columns.push(Column::new("ours").under(&group).higher_is_better());
        columns.push(Column::new("over Prot. Net").under(&group).signed());
        columns.push(Column::new("published").under(&group).higher_is_better());
    }
    let mut table = Table::new(format!("{title}: accuracy, %"), "Method", columns);
    let baseline = contenders.iter().position(|contender| contender.run == BASELINE);
    for (contender, of_shapes) in contenders.iter().zip(reached) {
        let mut cells = Vec::new();
        for (place, (shape, of_shape)) in shapes.iter().zip(of_shapes).enumerate() {
            let accuracies = &of_shape.accuracies[number];
            let ours = Estimate::of(accuracies);
            cells.push(Cell::estimate(ours.mean, ours.half_width).linked(&of_shape.run));
            cells.push(match baseline.map(|row| &reached[row][place].accuracies[number]) {
                Some(theirs) if contender.run != BASELINE => {
                    let difference = Estimate::of_difference(accuracies, theirs);
                    Cell::estimate(difference.mean, difference.half_width)
                }
                _ => Cell::empty(),
            });
            let theirs = contender.published.and_then(|name| {
                let split = match split {
                    Split::Far => published::Split::Far,
                    _ => published::Split::Close,
                };
                let sampling = match sampling {
                    Sampling::Snowball => published::Sampling::Snowball,
                    _ => published::Sampling::Random,
                };
                published::accuracy(split, sampling, name, shape.way, shape.shot)
            });
            cells.push(
                theirs.map_or_else(Cell::empty, |theirs| Cell::estimate(theirs.mean, theirs.half_width)),
            );
        }
        table.row(&contender.title, cells)?;
    }
    table.mark_best();
    table.notes.push(format!(
        "{} tasks with 15 queries a class; {INTERVAL}. \"Over Prot. Net\" is the difference task by task. Published: \
         tieredImageNet, 350,000 episodes.",
        lab.tasks()
    ));
    Ok(table)
}

/// The gain of GPN+ over the Prototypical Network on Close classes, for the first shape of tasks.
fn cards(report: &mut Report, contenders: &[Contender], reached: &[Vec<Reached>], shapes: &[Shape]) {
    let row = |wanted: &dyn Fn(&Contender) -> bool| contenders.iter().position(wanted);
    let plus = row(&|contender| contender.method == "gpn" && contender.hierarchy == Hierarchy::Known);
    let baseline = row(&|contender| contender.run == BASELINE);
    let (Some(plus), Some(baseline)) = (plus, baseline) else { return };
    for (number, (_, _, _, title)) in TABLES.into_iter().enumerate().take(2) {
        let [ours, theirs] = [plus, baseline].map(|row| &reached[row][0].accuracies[number]);
        let difference = Estimate::of_difference(ours, theirs);
        let card = Card::new(
            format!("GPN+ over the Prototypical Network: {title}"),
            format!("{:+.1}", difference.mean),
        );
        let card =
            card.detail(format!("\u{b1} {:.1} points, {}, task by task", difference.half_width, shapes[0]));
        report.card(if number == 0 { card.accent() } else { card });
    }
}

fn notes(lab: &Lab<'_>) -> String {
    format!(
        "Every cell is the mean over {} test tasks and links the run behind it; in bold the best of a column, in italics those \
         whose interval overlaps it. GPN+ and PPN know the place of the test classes in the class graph; GPN does not, and links \
         them to the nearest training classes. Where lambda, the share of the prototype before propagation, is mixed in, it was \
         chosen on validation tasks. The published numbers are of another data set and a far longer training: they show the \
         order of methods, not what to reach here.",
        lab.tasks()
    )
}
