//! The paper's tables, its ablation and its figures, each in one call.
//!
//! Everything goes to one directory: `runs/` holds the trained networks, `results/` the accuracy of every task, and beside
//! them stand the tables, figures and pages made of these. What is there is not made again, so that an experiment that was
//! stopped goes on with the same call.

mod ablation;
mod contender;
mod figures;
mod lab;
mod scale;
mod tables;

use std::path::PathBuf;

use gpn_report::{Report, Table, write_file};
use gpn_train::Host;

pub use self::ablation::ablation;
pub use self::figures::{FiguresRequest, figures};
use self::lab::Lab;
pub use self::lab::Shape;
pub use self::scale::Scale;
pub use self::tables::{TablesRequest, tables};
use crate::error::Result;

/// What all experiments have in common.
#[derive(Clone, Debug, Default)]
pub struct LabRequest {
    /// The directory of the experiment; what it holds already is not done again.
    pub out: PathBuf,
    /// The benchmark directory; the quick scale has built-in data.
    pub data: Option<PathBuf>,
    /// How much work.
    pub scale: Scale,
    /// Training steps of each run, where not those of the scale.
    pub episodes: Option<u64>,
    /// Test tasks for each figure, where not those of the scale.
    pub tasks: Option<u64>,
    /// Seed of training and of the test tasks.
    pub seed: u64,
    /// Settings for every run, as `group.name=value`.
    pub set: Vec<String>,
}

/// What an experiment has made.
#[derive(Clone, Debug)]
pub struct Made {
    /// Tables as Markdown, or the paths of figures.
    pub text: String,
    /// The page with everything.
    pub page: PathBuf,
}

/// Writes a table in every format, as `OUT/name.*`.
fn write_table(lab: &Lab<'_>, name: &str, table: &Table) -> Result<()> {
    for (extension, write) in Table::FORMATS {
        write_file(lab.out().join(format!("{name}.{extension}")), write(table))?;
    }
    Ok(())
}

/// The foot of a page: what made it.
fn describe(report: &mut Report, lab: &Lab<'_>) {
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
