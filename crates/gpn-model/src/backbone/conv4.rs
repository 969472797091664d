//! Conv4: four plain convolution blocks, the standard small network of few-shot learning.

use serde::{Deserialize, Serialize};

/// Settings of Conv4.
///
/// Four blocks of 3x3 convolution, batch norm, ReLU and 2x2 max pooling, flattened channel by channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Conv4Config {
    /// Channels of each block. Default: 64.
    pub width: usize,
}

impl Default for Conv4Config {
    fn default() -> Self {
        Self { width: 64 }
    }
}

impl Conv4Config {
    /// Smallest image side: four halvings must leave one pixel.
    pub(super) const LEAST_SIZE: usize = 16;

    /// Length of an embedding for images of `height` x `width`: 256 at 32, 1024 at 64, 1600 at 84.
    pub fn embedding_len(&self, height: usize, width: usize) -> usize {
        self.width * (height / 16) * (width / 16)
    }
}
