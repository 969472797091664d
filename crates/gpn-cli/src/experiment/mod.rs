//! `gpn experiment`: the paper's tables, its ablation and its figures, each in one command.
//!
//! Everything goes to one directory: `runs/` holds the trained networks, `results/` the accuracy of every task, and beside
//! them stand the tables, figures and pages made of these. What is there is not made again, so that an experiment that was
//! stopped goes on with the same command.

mod ablation;
mod contender;
mod figures;
mod lab;
mod scale;
mod tables;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use gpn_report::{Report, Table, to_csv, to_json, to_latex, to_markdown, write_file};
use gpn_train::Host;

use self::lab::{Interrupted, Lab, Shape};
use self::scale::ScaleName;
use crate::args::at_least_one;
use crate::terminal;

#[derive(Subcommand)]
pub(crate) enum ExperimentCommand {
    /// Train and test all methods on all kinds of tasks, and set the results beside the published tables.
    Tables(TablesArguments),
    /// Change the parts of GPN one by one, as in the published ablation table.
    Ablation(LabArguments),
    /// Draw prototypes, messages, accuracies by distance and learning curves of a trained GPN.
    Figures(FiguresArguments),
}

#[derive(Args)]
pub(crate) struct LabArguments {
    /// The directory of the experiment; what it holds already is not done again.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// The benchmark directory [built-in data, for the quick scale].
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// How much work.
    #[arg(long, default_value = "quick")]
    scale: ScaleName,
    /// Training steps of each run [those of the scale].
    #[arg(long, value_parser = at_least_one)]
    episodes: Option<u64>,
    /// Test tasks for each figure [those of the scale].
    #[arg(long, value_parser = clap::value_parser!(u64).range(2..))]
    tasks: Option<u64>,
    /// Seed of training and of the test tasks.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// A setting for every run, such as model.image_size=64; may be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

#[derive(Args)]
pub(crate) struct TablesArguments {
    #[command(flatten)]
    lab: LabArguments,
    /// Kinds of tasks, such as 5w1s: classes and labelled samples of each.
    #[arg(long, value_delimiter = ',', default_values = ["5w1s", "5w5s", "10w1s", "10w5s"])]
    shapes: Vec<Shape>,
    /// Methods to compare [all]; protonet is always among them.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    methods: Vec<String>,
}

#[derive(Args)]
pub(crate) struct FiguresArguments {
    #[command(flatten)]
    lab: LabArguments,
    /// A run of GPN to draw [that of the tables, trained if need be].
    #[arg(long, value_name = "RUN")]
    run: Option<PathBuf>,
    /// The class whose descendants stand out on the map of prototypes, by id or name [one of middling size].
    #[arg(long, value_name = "CLASS")]
    subtree: Option<String>,
}

pub(crate) fn run(command: &ExperimentCommand) -> anyhow::Result<()> {
    let done = match command {
        ExperimentCommand::Tables(arguments) => tables::run(arguments),
        ExperimentCommand::Ablation(arguments) => ablation::run(arguments),
        ExperimentCommand::Figures(arguments) => figures::run(arguments),
    };
    match done {
        Err(error) if error.is::<Interrupted>() => {
            terminal::say("stopped; the same command goes on from here");
            Ok(())
        }
        done => done,
    }
}

/// Writes a table in every format, as `OUT/name.*`.
fn write_table(lab: &Lab, name: &str, table: &Table) -> anyhow::Result<()> {
    for (extension, text) in [
        ("md", to_markdown(table)),
        ("csv", to_csv(table)),
        ("json", to_json(table)),
        ("tex", to_latex(table)),
    ] {
        write_file(lab.out().join(format!("{name}.{extension}")), text)?;
    }
    Ok(())
}

/// The foot of a page: what made it.
fn describe(report: &mut Report, lab: &Lab) {
    let host = Host::here();
    let config = lab.config();
    report
        .environment("program", concat!("gpn ", env!("CARGO_PKG_VERSION")))
        .environment("machine", format!("{}, {} threads, {}", host.system, host.threads, host.simd))
        .environment("data", lab.data_name())
        .environment(
            "training",
            format!("{} episodes a run, seed {}", config.train.episodes, config.train.seed),
        )
        .environment(
            "network",
            format!("{}, {1} x {1} pixels", config.model.backbone, config.model.image_size),
        );
}
