//! `gpn classes`.

use std::path::PathBuf;

use anyhow::ensure;
use clap::Args;
use gpn::{ClassEntry, ClassKind, Classifier, Device};

use crate::table::Table;
use crate::terminal;

#[derive(Args)]
pub(crate) struct ClassesArguments {
    /// The model file, or its run directory.
    model: PathBuf,
    /// Only classes whose id or name contains this.
    query: Option<String>,
    /// Only taught classes.
    #[arg(long)]
    taught: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &ClassesArguments) -> anyhow::Result<()> {
    let classifier = Classifier::open(&arguments.model, &Device::cpu())?;
    let mut classes = match &arguments.query {
        Some(query) => classifier.search(query)?,
        None => classifier.classes(),
    };
    if arguments.taught {
        classes.retain(|class| class.kind == ClassKind::Taught);
        ensure!(
            !classes.is_empty(),
            "{}: no such class is taught; teach one with `gpn teach`",
            arguments.model.display()
        );
    }
    if arguments.json {
        return terminal::print_json(&format!("{:#}\n", serde_json::to_value(&classes)?));
    }
    let mut table = Table::of_words(["id", "name", "kind", "samples", "parents"]);
    for class in &classes {
        table.row(row(class));
    }
    terminal::print_text(&table.to_string())
}

fn row(class: &ClassEntry) -> [String; 5] {
    let kind = match class.kind {
        ClassKind::Training => "training",
        ClassKind::Taught => "taught",
        ClassKind::Untaught => "untaught",
    };
    let parents = match &class.nearest[..] {
        [] => class.parents.join(" "),
        nearest => format!("(near {})", nearest.join(" ")),
    };
    let samples = if class.kind == ClassKind::Untaught { "-".into() } else { class.samples.to_string() };
    [class.id.clone(), class.name.clone(), kind.into(), samples, parents]
}
