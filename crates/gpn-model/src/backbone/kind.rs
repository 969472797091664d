//! Backbones by name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{BackboneConfig, Conv4Config, MlpConfig, ResNet12Config, ResNet18Config, ResNetConfig};
use crate::error::{ModelError, Result};
use crate::nearest_name;

/// The name of a backbone, as on the command line and in settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BackboneKind {
    /// The backbone of the method: three basic blocks. The default.
    #[default]
    ResNet08,
    /// The same with nine basic blocks.
    ResNet20,
    /// Four convolution blocks of 64 channels.
    Conv4,
    /// Four wide residual blocks.
    ResNet12,
    /// Eight basic blocks, for photos of 224 pixels and smaller ones.
    ResNet18,
    /// Linear layers over given embeddings.
    Mlp,
    /// Given embeddings as they are.
    Identity,
}

impl BackboneKind {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::ResNet08,
        Self::ResNet20,
        Self::Conv4,
        Self::ResNet12,
        Self::ResNet18,
        Self::Mlp,
        Self::Identity,
    ];

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ResNet08 => "resnet08",
            Self::ResNet20 => "resnet20",
            Self::Conv4 => "conv4",
            Self::ResNet12 => "resnet12",
            Self::ResNet18 => "resnet18",
            Self::Mlp => "mlp",
            Self::Identity => "identity",
        }
    }

    /// The kind with its default settings.
    pub fn config(self) -> BackboneConfig {
        match self {
            Self::ResNet08 => BackboneConfig::ResNet(ResNetConfig { blocks_per_stage: 1 }),
            Self::ResNet20 => BackboneConfig::ResNet(ResNetConfig { blocks_per_stage: 3 }),
            Self::Conv4 => BackboneConfig::Conv4(Conv4Config::default()),
            Self::ResNet12 => BackboneConfig::ResNet12(ResNet12Config::default()),
            Self::ResNet18 => BackboneConfig::ResNet18(ResNet18Config::default()),
            Self::Mlp => BackboneConfig::Mlp(MlpConfig::default()),
            Self::Identity => BackboneConfig::Identity,
        }
    }
}

impl fmt::Display for BackboneKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for BackboneKind {
    type Err = ModelError;

    fn from_str(name: &str) -> Result<Self> {
        let names = Self::ALL.map(Self::name);
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| ModelError::UnknownBackbone {
            name: name.into(),
            hint: nearest_name::hint(name, &names),
            known: names.join(", "),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_typos_get_a_hint() {
        for kind in BackboneKind::ALL {
            assert_eq!(kind.name().parse::<BackboneKind>().unwrap(), kind);
            assert_eq!(kind.config().name(), kind.name());
        }
        let message = "resnet8".parse::<BackboneKind>().unwrap_err().to_string();
        assert!(message.contains("did you mean `resnet08`?"), "{message}");
        assert!(message.contains("known: resnet08, resnet20, conv4"), "{message}");
    }
}
