//! `gpn demo`.

use std::time::Instant;

use gpn::demo::{DemoRequest, Own, ROWS, Side, demo};
use gpn::train::{Estimate, INTERVAL};

use crate::args::DemoArguments;
use crate::table::Table;
use crate::terminal;
use crate::watching::watched;

pub(crate) fn run(arguments: &DemoArguments) -> anyhow::Result<()> {
    let started = Instant::now();
    let request =
        DemoRequest { out: arguments.out.clone(), seed: arguments.seed, episodes: arguments.episodes };
    let Some(demo) = watched(|watch| demo(&request, watch))?? else {
        let run = arguments.out.join("run");
        terminal::say(&format!("stopped; go on with `gpn train --resume {}`", run.display()));
        return Ok(());
    };
    terminal::print_text(&table(&demo.sides))?;
    terminal::print_text(&own(&demo.own))?;
    terminal::say(&format!(
        "done in {:.0} s; open {} to see why",
        started.elapsed().as_secs_f64(),
        demo.page.display()
    ));
    let (run, data) = (demo.run.display(), demo.data.display());
    terminal::say(&format!(
        "next: gpn classes {run}, gpn eval {run} --data {data} --shot 5, gpn classes {}",
        demo.own.model.display()
    ));
    Ok(())
}

/// What came of the classes of one's own.
fn own(own: &Own) -> String {
    let percent = |share: f64| format!("{:.1}", 100.0 * share);
    let head = format!("{} classes of your own, % right", own.classes);
    let mut table = Table::new([head.as_str(), ""]);
    table.row(["nearest mean".into(), percent(own.nearest_mean)]);
    table.row(["gpn fit, on other images".into(), percent(own.accuracy)]);
    table.row(["as deep as sure".into(), percent(own.sure)]);
    let taught = format!("{} new classes, taught with {} images each", own.taught.len(), own.taught_with);
    table.row([taught, percent(own.new)]);
    table.row(["the other classes after that".into(), percent(own.known)]);
    format!("\n{table}")
}

fn table(sides: &[Side; 2]) -> String {
    let cell = |estimate: Estimate| format!("{:.1} +- {:.1}", estimate.mean, estimate.half_width);
    let mut table = Table::new(["accuracy, % (guessing gives 20)", "Close", "Far"]);
    for (name, of) in ROWS {
        table.row([name.to_owned(), cell(of(&sides[0])), cell(of(&sides[1]))]);
    }
    let gain = |estimate: Estimate| format!("{:+.1} +- {:.1}", estimate.mean, estimate.half_width);
    for (name, of) in [
        ("gain by propagation (GPN+), task by task", (|side| side.gain) as fn(&Side) -> Estimate),
        ("gain by the graph prior, task by task", |side| side.prior_gain),
    ] {
        table.row([name.to_owned(), gain(of(&sides[0])), gain(of(&sides[1]))]);
    }
    format!("{table}{INTERVAL}\n")
}
