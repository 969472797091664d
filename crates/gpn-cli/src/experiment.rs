//! `gpn experiment`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use gpn::ErrorKind;
use gpn::experiment::{
    FiguresRequest, LabRequest, Made, Scale, Shape, TablesRequest, ablation, figures, tables,
};

use crate::args::at_least_one;
use crate::terminal;
use crate::watching::watched;

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

#[derive(Clone, Copy, ValueEnum)]
enum ScaleName {
    /// Minutes, on built-in data: every part of the experiment, too short to tell methods apart well.
    Quick,
    /// Hours on a CPU, for Tiny-ImageNet: 8,000 episodes a run at 32x32, 600 test tasks.
    Standard,
    /// The paper's: 350,000 episodes a run at 84x84, for tieredImageNet on a GPU.
    Paper,
}

impl LabArguments {
    fn request(&self) -> LabRequest {
        LabRequest {
            out: self.out.clone(),
            data: self.data.clone(),
            scale: match self.scale {
                ScaleName::Quick => Scale::Quick,
                ScaleName::Standard => Scale::Standard,
                ScaleName::Paper => Scale::Paper,
            },
            episodes: self.episodes,
            tasks: self.tasks,
            seed: self.seed,
            set: self.set.clone(),
        }
    }
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
    let made = watched(|watch| match command {
        ExperimentCommand::Tables(arguments) => {
            let TablesArguments { lab, shapes, methods } = arguments;
            let request =
                TablesRequest { lab: lab.request(), shapes: shapes.clone(), methods: methods.clone() };
            tables(&request, watch)
        }
        ExperimentCommand::Ablation(arguments) => ablation(&arguments.request(), watch),
        ExperimentCommand::Figures(arguments) => {
            let FiguresArguments { lab, run, subtree } = arguments;
            let request = FiguresRequest { lab: lab.request(), run: run.clone(), subtree: subtree.clone() };
            figures(&request, watch)
        }
    })?;
    let Made { text, page } = match made {
        Err(error) if error.kind() == ErrorKind::Interrupted => {
            terminal::say("stopped; the same command goes on from here");
            return Ok(());
        }
        made => made?,
    };
    let beside = match command {
        ExperimentCommand::Figures(_) => "each figure as .svg and .png",
        _ => "the tables beside it as .md, .csv, .json and .tex",
    };
    terminal::print_text(&text)?;
    terminal::say(&format!("written: {}; {beside}", page.display()));
    Ok(())
}
