//! `gpn forget`, `gpn move` and `gpn rename`: changes to the classes of a model.

use std::path::PathBuf;

use clap::Args;
use gpn::{Classifier, Device, output};

use crate::open::lock;
use crate::{printable, terminal};

/// The model to change and where the changed one goes.
#[derive(Args)]
pub(crate) struct ChangeArguments {
    /// The model file, or its run directory.
    model: PathBuf,
    /// The class, by id or name.
    #[arg(long, value_name = "CLASS")]
    class: String,
    /// The model file to write; it may be the one that is read.
    #[arg(long, value_name = "MODEL")]
    out: PathBuf,
    /// Replace another file at --out.
    #[arg(long)]
    force: bool,
}

#[derive(Args)]
pub(crate) struct MoveArguments {
    #[command(flatten)]
    change: ChangeArguments,
    /// The new parent, by id or name; may be given several times.
    #[arg(long, value_name = "CLASS", required = true)]
    below: Vec<String>,
}

#[derive(Args)]
pub(crate) struct RenameArguments {
    #[command(flatten)]
    change: ChangeArguments,
    /// The new name; the id stays.
    #[arg(long, value_name = "NAME")]
    to: String,
}

pub(crate) fn forget(arguments: &ChangeArguments) -> anyhow::Result<()> {
    arguments.carry_out("forgotten", gpn::Classifier::forget)
}

pub(crate) fn move_class(arguments: &MoveArguments) -> anyhow::Result<()> {
    arguments.change.carry_out("moved", |classifier, class| classifier.move_class(class, &arguments.below))
}

pub(crate) fn rename(arguments: &RenameArguments) -> anyhow::Result<()> {
    arguments.change.carry_out("renamed", |classifier, class| classifier.rename(class, &arguments.to))
}

impl ChangeArguments {
    fn carry_out(
        &self,
        done: &str,
        change: impl FnOnce(&Classifier, &str) -> gpn::Result<()>,
    ) -> anyhow::Result<()> {
        let file = gpn::train::model_file(&self.model)?;
        let in_place = output::same_file(&file, &self.out);
        let may_write = || output::may_write(&self.out, self.force || in_place);
        may_write()?;
        // From here to the end, so that nothing taught to the same file meanwhile is lost.
        let _lock = lock(&self.out)?;
        may_write()?;
        let classifier = Classifier::open(&file, &Device::cpu())?;
        change(&classifier, &self.class)?;
        classifier.save(&self.out)?;
        let (class, out) = (printable::cell(&self.class), self.out.display().to_string());
        terminal::print_text(&format!("{class} is {done} in {}\n", printable::one_line(&out)))
    }
}
