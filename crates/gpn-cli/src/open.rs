//! Opens a model with the encoder that it needs.

use std::path::{Path, PathBuf};

use clap::Args;
use gpn::{Classifier, Device, SampleEncoder};

use crate::encoder::EncoderArguments;

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
