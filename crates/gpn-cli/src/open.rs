//! What is opened before the work begins: a model with the encoder that it needs, and the file that will be written.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use gpn::files::FileLock;
use gpn::{Classifier, Device, SampleEncoder};

use crate::encoder::EncoderArguments;
use crate::terminal;

/// Waits until nobody else writes the file; holds it until the lock is dropped.
pub(crate) fn lock(out: &Path) -> anyhow::Result<FileLock> {
    if let Some(folder) = out.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists()) {
        bail!("{}: there is no folder {}; make it first", out.display(), folder.display());
    }
    FileLock::wait(out, |holder| {
        terminal::warn(&format!("{holder} is writing {}; waiting for it", out.display()));
    })
    .with_context(|| format!("{}: cannot write", out.display()))
}

/// Refuses two options that name the same file, of which the second would replace the first.
pub(crate) fn different_files(files: &[(&str, Option<&PathBuf>)]) -> anyhow::Result<()> {
    for (at, (option, file)) in files.iter().enumerate() {
        let Some(file) = file else { continue };
        if let Some((other, _)) = files[..at].iter().find(|(_, other)| *other == Some(file)) {
            bail!("{}: {other} and {option} name the same file; name two", file.display());
        }
    }
    Ok(())
}

/// The encoder of a model that was fitted to photos or texts.
#[derive(Args)]
pub(crate) struct ModelEncoder {
    /// The encoder that the model was fitted with [where it was then, or beside the model].
    #[arg(long, value_name = "FILE")]
    pub(crate) encoder: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) settings: EncoderArguments,
}

impl ModelEncoder {
    /// Opens a model, with its encoder where it has one that can be found.
    pub(crate) fn open(&self, model: &Path, device: &str) -> anyhow::Result<Classifier> {
        let classifier = Classifier::open(model, &Device::open(device.parse()?)?)?;
        let encoder = match &self.encoder {
            Some(path) => Some(SampleEncoder::open(path, &self.settings.config(), self.settings.cache())?),
            None => classifier.find_encoder(model, self.settings.cache())?,
        };
        Ok(match encoder {
            Some(encoder) => classifier.with_encoder(encoder)?,
            None => classifier,
        })
    }
}
