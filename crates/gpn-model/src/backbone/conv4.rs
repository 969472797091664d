//! Conv4: four plain convolution blocks, the standard small network of few-shot learning.

use burn::module::Module;
use burn::tensor::activation::relu;
use burn::tensor::module::max_pool2d;
use burn::tensor::ops::MaxPoolOptions;
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use super::layers::{BatchNorm, Convolution};
use super::{Backbone, Pass};

/// Settings of [`Conv4`].
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

    /// Builds the module.
    pub fn init(&self, device: &Device) -> Conv4 {
        Conv4 {
            block_1: Block::new(3, self.width, device),
            block_2: Block::new(self.width, self.width, device),
            block_3: Block::new(self.width, self.width, device),
            block_4: Block::new(self.width, self.width, device),
        }
    }
}

/// Convolutional network built by [`Conv4Config`].
#[derive(Module, Debug)]
#[expect(clippy::struct_field_names, reason = "field names are parameter names")]
pub struct Conv4 {
    block_1: Block,
    block_2: Block,
    block_3: Block,
    block_4: Block,
}

impl Backbone for Conv4 {
    fn forward(&mut self, images: Tensor<4>, pass: Pass) -> Tensor<2> {
        let mut x = images;
        for block in [&mut self.block_1, &mut self.block_2, &mut self.block_3, &mut self.block_4] {
            x = block.forward(x, pass);
        }
        x.flatten(1, 3)
    }
}

/// Convolution, batch norm, ReLU, max pooling.
#[derive(Module, Debug)]
struct Block {
    conv: Convolution,
    bn: BatchNorm,
}

impl Block {
    fn new(inputs: usize, outputs: usize, device: &Device) -> Self {
        Self { conv: Convolution::new(inputs, outputs, 3, 1, device), bn: BatchNorm::new(outputs, device) }
    }

    fn forward(&mut self, x: Tensor<4>, pass: Pass) -> Tensor<4> {
        let x = relu(self.bn.forward(self.conv.forward(x, pass), pass));
        max_pool2d(x, MaxPoolOptions::new([2, 2]).with_stride([2, 2]))
    }
}
