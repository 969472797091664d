//! ResNet-12, the field's strong backbone.

use serde::{Deserialize, Serialize};

/// Settings of ResNet-12.
///
/// Four residual blocks, each three 3x3 convolutions with batch norm and leaky ReLU (slope 0.1), a 1x1 convolution
/// as shortcut and 2x2 max pooling; the mean over the remaining pixels is the embedding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResNet12Config {
    /// Channels of the four blocks; the last is the length of an embedding. Default: 64, 160, 320, 640.
    pub channels: [usize; 4],
}

impl Default for ResNet12Config {
    fn default() -> Self {
        Self { channels: [64, 160, 320, 640] }
    }
}

impl ResNet12Config {
    /// Smallest image side: four halvings must leave one pixel.
    pub(super) const LEAST_SIZE: usize = 16;

    /// Length of an embedding, whatever the image size.
    pub fn embedding_len(&self) -> usize {
        self.channels[3]
    }
}
