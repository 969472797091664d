//! Backbones: networks that turn a sample into an embedding.
//!
//! Each has a settings struct; the engines compute it. [`BackboneConfig`] is one of them with its settings,
//! [`BackboneKind`] the name a user gives.

mod conv4;
mod kind;
mod mlp;
mod resnet;
mod resnet12;
mod resnet18;

use serde::{Deserialize, Serialize};

pub use conv4::Conv4Config;
pub use gpn_kernels::Mode;
pub use kind::BackboneKind;
pub use mlp::MlpConfig;
pub use resnet::ResNetConfig;
#[cfg(feature = "burn")]
pub(crate) use resnet::{LAST, POOL};
pub use resnet12::ResNet12Config;
pub use resnet18::ResNet18Config;

use crate::error::{ModelError, Result};

/// What one sample is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InputShape {
    /// An RGB image, channel by channel: `[3, height, width]`.
    Image {
        /// Rows.
        height: usize,
        /// Columns.
        width: usize,
    },
    /// An embedding from elsewhere.
    Embedding {
        /// Length.
        len: usize,
    },
}

impl InputShape {
    /// Number of values of a sample.
    pub fn len(self) -> usize {
        self.dims().iter().product()
    }

    /// Whether a sample has no values.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// `[channels, height, width]`; an embedding counts as channels of one pixel.
    pub(crate) fn dims(self) -> [usize; 3] {
        match self {
            Self::Image { height, width } => [3, height, width],
            Self::Embedding { len } => [len, 1, 1],
        }
    }
}

/// A backbone with its settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BackboneConfig {
    /// ResNet-08, ResNet-20 and others of their family.
    ResNet(ResNetConfig),
    /// Four convolution blocks.
    Conv4(Conv4Config),
    /// Wide residual network.
    ResNet12(ResNet12Config),
    /// Residual network for photos.
    ResNet18(ResNet18Config),
    /// Linear layers over given embeddings.
    Mlp(MlpConfig),
    /// Given embeddings as they are; nothing is learned.
    Identity,
}

impl Default for BackboneConfig {
    fn default() -> Self {
        BackboneKind::default().config()
    }
}

impl BackboneConfig {
    /// Name for messages: the kind, or the family where the settings are no kind of their own.
    pub fn name(&self) -> String {
        match self {
            Self::ResNet(config) => format!("resnet{:02}", 6 * config.blocks_per_stage + 2),
            Self::Conv4(_) => "conv4".into(),
            Self::ResNet12(_) => "resnet12".into(),
            Self::ResNet18(_) => "resnet18".into(),
            Self::Mlp(_) => "mlp".into(),
            Self::Identity => "identity".into(),
        }
    }

    /// Length of an embedding for samples of a shape; an error where settings or shape cannot be.
    pub fn embedding_len(&self, input: InputShape) -> Result<usize> {
        match (self, input) {
            (Self::ResNet(config), InputShape::Image { height, width }) => {
                positive("blocks_per_stage of the ResNet", config.blocks_per_stage)?;
                self.check_size(height, width, ResNetConfig::LEAST_SIZE)?;
                Ok(config.embedding_len(height, width))
            }
            (Self::Conv4(config), InputShape::Image { height, width }) => {
                positive("width of Conv4", config.width)?;
                self.check_size(height, width, Conv4Config::LEAST_SIZE)?;
                Ok(config.embedding_len(height, width))
            }
            (Self::ResNet12(config), InputShape::Image { height, width }) => {
                config.channels.iter().try_for_each(|&c| positive("each of the channels of ResNet-12", c))?;
                self.check_size(height, width, ResNet12Config::LEAST_SIZE)?;
                Ok(config.embedding_len())
            }
            (Self::ResNet18(config), InputShape::Image { height, width }) => {
                config.channels.iter().try_for_each(|&c| positive("each of the channels of ResNet-18", c))?;
                self.check_size(height, width, ResNet18Config::LEAST_SIZE)?;
                Ok(config.embedding_len())
            }
            (Self::Mlp(config), InputShape::Embedding { len }) => {
                positive("length of the given embeddings", len)?;
                config.layers.iter().try_for_each(|&outputs| positive("each layer of the MLP", outputs))?;
                config.layers.last().copied().ok_or(ModelError::Zero { what: "number of layers of the MLP" })
            }
            (Self::Identity, InputShape::Embedding { len }) => {
                positive("length of the given embeddings", len)?;
                Ok(len)
            }
            (Self::Identity, InputShape::Image { height, width }) => {
                positive("height of the images", height)?;
                positive("width of the images", width)?;
                Ok(3 * height * width)
            }
            (Self::Mlp(_), InputShape::Image { height, width }) => Err(ModelError::WrongInput {
                backbone: self.name(),
                takes: "embeddings",
                given: format!("images of {height}x{width}"),
            }),
            (_, InputShape::Embedding { len }) => Err(ModelError::WrongInput {
                backbone: self.name(),
                takes: "images",
                given: format!("embeddings of length {len}"),
            }),
        }
    }

    fn check_size(&self, height: usize, width: usize, least: usize) -> Result<()> {
        if height.min(width) < least {
            return Err(ModelError::ImageTooSmall { backbone: self.name(), least, height, width });
        }
        Ok(())
    }
}

fn positive(what: &'static str, value: usize) -> Result<()> {
    if value == 0 { Err(ModelError::Zero { what }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embedding_lengths_are_those_of_the_method() {
        let len = |kind: BackboneKind, size| {
            kind.config().embedding_len(InputShape::Image { height: size, width: size }).unwrap()
        };
        assert_eq!([32, 64, 84, 112].map(|size| len(BackboneKind::ResNet08, size)), [64, 256, 256, 576]);
        assert_eq!([32, 64, 84].map(|size| len(BackboneKind::Conv4, size)), [256, 1024, 1600]);
        assert_eq!(len(BackboneKind::ResNet12, 84), 640);
        assert_eq!([32, 224].map(|size| len(BackboneKind::ResNet18, size)), [512, 512]);
        assert_eq!(len(BackboneKind::Identity, 8), 192, "the pixels themselves");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let error = |kind: BackboneKind, input| kind.config().embedding_len(input).unwrap_err().to_string();
        let small = InputShape::Image { height: 28, width: 64 };
        assert!(error(BackboneKind::ResNet20, small).contains("at least 29x29, got 28x64"));
        assert!(error(BackboneKind::Conv4, InputShape::Embedding { len: 8 }).contains("takes images"));
        assert!(error(BackboneKind::Mlp, small).contains("takes embeddings"));
        let none = BackboneConfig::Mlp(MlpConfig { layers: vec![] });
        assert!(none.embedding_len(InputShape::Embedding { len: 8 }).is_err());
    }
}
