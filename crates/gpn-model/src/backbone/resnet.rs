//! ResNet-08 and ResNet-20, the CIFAR style of residual network.

use serde::{Deserialize, Serialize};

/// Side of the last average pooling.
pub(crate) const POOL: usize = 8;
/// Channels of the last stage.
pub(crate) const LAST: usize = 64;

/// Settings of ResNet-08, ResNet-20 and their family.
///
/// A 3x3 convolution to 16 channels, three stages of basic blocks with 16, 32 and 64 channels (the second and third
/// halve the image), shortcuts without parameters, average pooling over 8x8, flattened channel by channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResNetConfig {
    /// Basic blocks in each of the three stages: 1 is ResNet-08, 3 is ResNet-20. Default: 1.
    pub blocks_per_stage: usize,
}

impl Default for ResNetConfig {
    fn default() -> Self {
        Self { blocks_per_stage: 1 }
    }
}

impl ResNetConfig {
    /// Smallest image side: two halvings must leave one pooling window.
    pub(super) const LEAST_SIZE: usize = 4 * POOL - 3;

    /// Length of an embedding for images of `height` x `width`: 64 at 32, 256 at 64 and 84, 576 at 112.
    pub fn embedding_len(&self, height: usize, width: usize) -> usize {
        LAST * (height.div_ceil(4) / POOL) * (width.div_ceil(4) / POOL)
    }
}
