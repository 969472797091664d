//! Conv4 as a burn module.

use burn::module::Module;
use burn::tensor::activation::relu;
use burn::tensor::module::max_pool2d;
use burn::tensor::ops::MaxPoolOptions;
use burn::tensor::{Device, Tensor};

use super::layers::{BatchNorm, Convolution};
use super::{Backbone, Pass};
use crate::backbone::Conv4Config;

impl Conv4Config {
    /// Builds the module.
    pub(super) fn init(&self, device: &Device) -> Conv4 {
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
pub(super) struct Conv4 {
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
