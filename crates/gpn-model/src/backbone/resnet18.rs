//! ResNet-18, for photos of 224 pixels and smaller ones.

use serde::{Deserialize, Serialize};

/// Settings of ResNet-18.
///
/// torchvision's network without its classifier: a 7x7 convolution of stride 2, 3x3 max pooling of stride 2, four stages of
/// two basic blocks (the second to fourth halve the image, with a 1x1 convolution as shortcut); the mean over the remaining
/// pixels is the embedding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResNet18Config {
    /// Channels of the four stages; the last is the length of an embedding. Default: 64, 128, 256, 512.
    pub channels: [usize; 4],
}

impl Default for ResNet18Config {
    fn default() -> Self {
        Self { channels: [64, 128, 256, 512] }
    }
}

impl ResNet18Config {
    /// Smallest image side: five halvings leave one pixel.
    pub(super) const LEAST_SIZE: usize = 32;

    /// Length of an embedding, whatever the image size.
    pub fn embedding_len(&self) -> usize {
        self.channels[3]
    }
}
