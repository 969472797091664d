//! What a user can type.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand, ValueEnum};
use gpn::data::benchmark::{Check, Generator, Preset};
use gpn::data::source::SourceKind;
use gpn::taxonomy::TaxonomyKind;

use crate::change::{ChangeArguments, MoveArguments, RenameArguments};
use crate::classes::ClassesArguments;
use crate::embed::EmbedArguments;
use crate::experiment::ExperimentCommand;
use crate::fit::FitArguments;
use crate::predict::PredictArguments;
#[cfg(feature = "server")]
use crate::serve::ServeArguments;
use crate::teach::TeachArguments;
use crate::test::TestArguments;

const EXIT_CODES: &str = "Exit code 0: done; 1: failed, with one message; 2: wrong usage; 101: a fault of gpn itself, please report it.";

/// Few-shot classification that knows how classes are related.
#[derive(Parser)]
#[command(name = "gpn", version, arg_required_else_help = true, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// See the whole method at work on built-in data: train, test on new classes, write a report.
    Demo(DemoArguments),
    /// Fit a model to your own classes: every class, every sample.
    Fit(Box<FitArguments>),
    /// Test a model on labelled samples.
    Test(Box<TestArguments>),
    /// Make and inspect benchmark directories.
    #[command(subcommand)]
    Data(DataCommand),
    /// Train a network on a benchmark directory, or go on with a run.
    Train(TrainArguments),
    /// Evaluate a trained run on few-shot tasks of test classes.
    Eval(EvalArguments),
    /// Carry out the paper's experiments: tables, ablation, figures.
    #[command(subcommand)]
    Experiment(Box<ExperimentCommand>),
    /// Measure the speed of training and inference on this machine.
    Bench(BenchArguments),
    /// Teach a trained model new classes from a few samples each.
    Teach(Box<TeachArguments>),
    /// Tell which class samples belong to.
    Predict(Box<PredictArguments>),
    /// Write embeddings of photos or texts to a file.
    Embed(Box<EmbedArguments>),
    /// Forget the samples of a class.
    Forget(ChangeArguments),
    /// Move a class below another.
    Move(MoveArguments),
    /// Give a class another name.
    Rename(RenameArguments),
    /// List or search the classes of a model.
    Classes(ClassesArguments),
    /// Serve models over HTTP: an API, the Open Inference Protocol, and a page.
    #[cfg(feature = "server")]
    Serve(Box<ServeArguments>),
    /// Print a completion script for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

#[derive(Subcommand)]
pub(crate) enum DataCommand {
    /// Turn samples and a taxonomy into a benchmark directory.
    Build(Box<BuildArguments>),
    /// Print the statistics of a benchmark directory.
    Info(InfoArguments),
}

#[derive(Args)]
pub(crate) struct DemoArguments {
    /// Where the demo writes its files.
    #[arg(long, value_name = "DIR", default_value = "gpn-demo")]
    pub(crate) out: PathBuf,
    /// Seed of everything random.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Training steps; fewer are quicker, and worse.
    #[arg(long, default_value_t = 3000, value_parser = at_least_one)]
    pub(crate) episodes: u64,
}

#[derive(Args)]
pub(crate) struct BenchArguments {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Time for each of the seven workloads, after its warm-up.
    #[arg(long, default_value_t = 1.0)]
    pub(crate) seconds: f64,
}

#[derive(Args)]
pub(crate) struct InfoArguments {
    /// The benchmark directory.
    pub(crate) folder: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Read every file and compare it with the hash in benchmark.toml.
    #[arg(long)]
    pub(crate) verify: bool,
}

/// Every kind of source that the library reads.
fn source_help() -> String {
    let kinds = SourceKind::ALL.map(|(_, word)| word);
    format!("Samples, of one of the kinds {}; synthetic has no path", kinds.join(", "))
}

/// Every kind of class graph that the library reads.
fn taxonomy_help() -> String {
    let kinds = TaxonomyKind::ALL.map(TaxonomyKind::as_str);
    format!(
        "Class graph, of one of the kinds {}; not needed where the source brings its own (synthetic, cifar100)",
        kinds.join(", ")
    )
}

/// Settings left out are those of the preset, or the defaults in brackets. The synthetic source has its own: size 32,
/// training share 0.7, Close 1..3, Far 4..10.
#[derive(Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch that a user types")]
pub(crate) struct BuildArguments {
    #[arg(long, value_name = "KIND:PATH", help = source_help())]
    pub(crate) source: String,
    #[arg(long, value_name = "KIND:PATH", help = taxonomy_help())]
    pub(crate) taxonomy: Option<String>,
    /// Rebuild a published benchmark with its own settings.
    #[arg(long)]
    pub(crate) preset: Option<PresetName>,
    /// The directory to create.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Seed of the choice of classes and samples [0].
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Height and width at which images are stored [64].
    #[arg(long, value_name = "PIXELS", value_parser = clap::value_parser!(u32).range(8..=1024))]
    pub(crate) size: Option<u32>,
    /// Samples of each leaf below a class [20].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) images_per_leaf: Option<u32>,
    /// Share of classes to train on, 0 to 1; 1 trains on all [0.8].
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) train_share: Option<f64>,
    /// Share of each training class's samples kept for validation [0.1].
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) val_share: Option<f64>,
    /// Fewest hops between a drawn training class and a drawn held-out class [3].
    #[arg(long, value_name = "HOPS")]
    pub(crate) min_distance: Option<u32>,
    /// Hops to the nearest training class that make a class Close [1..4].
    #[arg(long, value_name = "FROM..TO")]
    pub(crate) close: Option<Hops>,
    /// Hops to the nearest training class that make a class Far [5..10].
    #[arg(long, value_name = "FROM..TO")]
    pub(crate) far: Option<Hops>,
    /// Who draws the classes: this project's generator, or CPython's as in the published splits [gpn].
    #[arg(long)]
    pub(crate) generator: Option<GeneratorName>,
    /// Assign samples as this CSV file says (class,sample[,part]) instead of drawing them.
    #[arg(long, value_name = "FILE")]
    pub(crate) assignments: Option<PathBuf>,
    /// Merge classes that have the same leaves below them.
    #[arg(long)]
    pub(crate) collapse_chains: bool,
    /// Divide the classes and count, but store no samples.
    #[arg(long)]
    pub(crate) classes_only: bool,
    /// Fail on the first image that cannot be read, instead of leaving it out.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Replace a benchmark already at the target.
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Args)]
pub(crate) struct TrainArguments {
    /// The benchmark directory.
    #[arg(long, value_name = "DIR", required_unless_present = "resume")]
    pub(crate) data: Option<PathBuf>,
    /// The run directory to create.
    #[arg(long, value_name = "RUN", required_unless_present = "resume")]
    pub(crate) out: Option<PathBuf>,
    /// Go on with this run from its last checkpoint; with --episodes N, until N in all.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["out", "config", "preset", "method", "set", "init", "force"])]
    pub(crate) resume: Option<PathBuf>,
    /// A named set of settings: default, paper, reference or quick.
    #[arg(long, default_value = "default")]
    pub(crate) preset: String,
    /// The few-shot method: gpn, prior, uniform, protonet, ppn, gnn, baseline++ or nearest [gpn].
    #[arg(long, value_name = "NAME")]
    pub(crate) method: Option<String>,
    /// A TOML file of settings, such as config.toml of another run.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Training steps in all [those of the settings].
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) episodes: Option<u64>,
    /// One setting, such as task.way=10; may be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Begin with the backbone of this weight file (safetensors with PyTorch's names).
    #[arg(long, value_name = "FILE")]
    pub(crate) init: Option<PathBuf>,
    /// Train anew in place of a run already at --out.
    #[arg(long)]
    pub(crate) force: bool,
    /// Compare every byte of the benchmark with its hashes, not just tables and a sample of the images.
    #[arg(long)]
    pub(crate) verify: bool,
    /// Where to compute: cpu, or cuda, rocm, wgpu where built in.
    #[arg(long, default_value = "cpu")]
    pub(crate) device: String,
    /// Train with all processes that mpirun or srun has started, at most train.shards of them (a build with MPI).
    #[arg(long)]
    pub(crate) distributed: bool,
}

#[derive(Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch that a user types")]
pub(crate) struct EvalArguments {
    /// The run directory, or a model file; of a run that is not finished, the best model so far is taken.
    pub(crate) run: PathBuf,
    /// The benchmark directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// Which test classes.
    #[arg(long, default_value = "close")]
    pub(crate) split: TestSplit,
    /// How the classes of a task are chosen.
    #[arg(long, default_value = "random")]
    pub(crate) sampling: SamplingName,
    /// Whether the place of the test classes in the graph is known.
    #[arg(long, default_value = "known")]
    pub(crate) hierarchy: HierarchyName,
    /// Classes of a task.
    #[arg(long, default_value_t = 5)]
    pub(crate) way: usize,
    /// Labelled samples of each class.
    #[arg(long, default_value_t = 1)]
    pub(crate) shot: usize,
    /// Queries of each class.
    #[arg(long, default_value_t = 15)]
    pub(crate) queries: usize,
    /// Number of tasks.
    #[arg(long, default_value_t = 600, value_parser = at_least_one)]
    pub(crate) tasks: u64,
    /// Seed of the tasks.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Evaluate the fixed tasks of this file instead of drawing them.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["sampling", "way", "shot", "queries", "tasks", "seed", "rest"])]
    pub(crate) tasks_file: Option<PathBuf>,
    /// One more answer, "other": labelled samples for it, from classes outside the task.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) rest: usize,
    /// Weight of the prototype before propagation in the mixed result [the best on the validation tasks].
    #[arg(long, value_parser = share)]
    pub(crate) lambda: Option<f64>,
    /// All leaf classes at once: known ones with all their samples, new ones with --shot; for the prior.
    #[arg(long, conflicts_with_all = ["tasks_file", "sampling", "way", "tasks", "rest", "lambda", "csv", "against"])]
    pub(crate) all: bool,
    /// Another method on the same network: prior, uniform or nearest [the one it was trained with].
    #[arg(long, value_name = "NAME")]
    pub(crate) method: Option<String>,
    /// Embeddings of class names or descriptions, for the prior: a table whose labels are class ids.
    #[arg(long, value_name = "FILE")]
    pub(crate) names: Option<PathBuf>,
    /// Write the accuracies of every task to this CSV file.
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Replace a file already at --csv.
    #[arg(long)]
    pub(crate) force: bool,
    /// Compare, task by task, with another run on the same tasks, by the file that its --csv wrote.
    #[arg(long, value_name = "FILE")]
    pub(crate) against: Option<PathBuf>,
    /// Compare every byte of the benchmark with its hashes, not just tables and a sample of the images.
    #[arg(long)]
    pub(crate) verify: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Where to compute: cpu, or cuda, rocm, wgpu where built in.
    #[arg(long, default_value = "cpu")]
    pub(crate) device: String,
}

impl TrainArguments {
    pub(crate) fn check(&self) -> Check {
        check(self.verify)
    }
}

impl EvalArguments {
    pub(crate) fn check(&self) -> Check {
        check(self.verify)
    }
}

impl InfoArguments {
    pub(crate) fn check(&self) -> Check {
        check(self.verify)
    }
}

/// How closely a benchmark is looked at.
fn check(verify: bool) -> Check {
    if verify { Check::All } else { Check::Sampled }
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum TestSplit {
    /// Test classes near the training classes.
    Close,
    /// Test classes far from the training classes.
    Far,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum SamplingName {
    /// Any classes.
    Random,
    /// Classes near each other.
    Snowball,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum HierarchyName {
    /// GPN+: parents and children of the test classes are known.
    Known,
    /// GPN: test classes are linked to the nearest training classes.
    Unknown,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum PresetName {
    /// tieredImageNet-Close and -Far, as published.
    TieredImagenet,
    /// tinyImageNet-Close and -Far: the same procedure on Tiny-ImageNet.
    TinyImagenet,
}

impl From<PresetName> for Preset {
    fn from(name: PresetName) -> Self {
        match name {
            PresetName::TieredImagenet => Self::TieredImagenet,
            PresetName::TinyImagenet => Self::TinyImagenet,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum GeneratorName {
    /// This project's own random streams.
    Gpn,
    /// CPython's `random`.
    Reference,
}

impl From<GeneratorName> for Generator {
    fn from(name: GeneratorName) -> Self {
        match name {
            GeneratorName::Gpn => Self::Gpn,
            GeneratorName::Reference => Self::Reference,
        }
    }
}

/// A range of hops, both ends included.
#[derive(Clone)]
pub(crate) struct Hops(pub(crate) RangeInclusive<u32>);

impl FromStr for Hops {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once("..").and_then(|(from, to)| {
            let to = to.strip_prefix('=').unwrap_or(to);
            Some(from.parse().ok()?..=to.parse().ok()?)
        });
        match parsed {
            Some(range) if !range.is_empty() && *range.start() >= 1 => Ok(Self(range)),
            _ => Err("give two numbers of hops, the smaller first and at least 1, such as 1..4".into()),
        }
    }
}

pub(crate) fn at_least_one(text: &str) -> Result<u64, String> {
    text.parse().ok().filter(|&count| count > 0).ok_or_else(|| "give a whole number of at least 1".into())
}

pub(crate) fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("give a share between 0 and 1, such as 0.1".into()),
    }
}
