//! ResNet-08 and ResNet-20 as burn modules.

use burn::module::Module;
use burn::tensor::activation::relu;
use burn::tensor::module::avg_pool2d;
use burn::tensor::ops::AvgPoolOptions;
use burn::tensor::{Device, Tensor};

use super::layers::{BatchNorm, Convolution};
use super::{Backbone, Pass};
use crate::backbone::{LAST, POOL, ResNetConfig};

impl ResNetConfig {
    /// Builds the module.
    pub(super) fn init(&self, device: &Device) -> ResNet {
        let stage = |inputs, outputs, stride| {
            (0..self.blocks_per_stage)
                .map(|block| match block {
                    0 => BasicBlock::new(inputs, outputs, stride, device),
                    _ => BasicBlock::new(outputs, outputs, 1, device),
                })
                .collect()
        };
        ResNet {
            conv_1_3x3: Convolution::new(3, 16, 3, 1, device),
            bn_1: BatchNorm::new(16, device),
            stage_1: stage(16, 16, 1),
            stage_2: stage(16, 32, 2),
            stage_3: stage(32, LAST, 2),
        }
    }
}

/// Residual network built by [`ResNetConfig`].
#[derive(Module, Debug)]
pub(super) struct ResNet {
    conv_1_3x3: Convolution,
    bn_1: BatchNorm,
    stage_1: Vec<BasicBlock>,
    stage_2: Vec<BasicBlock>,
    stage_3: Vec<BasicBlock>,
}

impl Backbone for ResNet {
    fn forward(&mut self, images: Tensor<4>, pass: Pass) -> Tensor<2> {
        let mut x = relu(self.bn_1.forward(self.conv_1_3x3.forward(images, pass), pass));
        for block in [&mut self.stage_1, &mut self.stage_2, &mut self.stage_3].into_iter().flatten() {
            x = block.forward(x, pass);
        }
        avg_pool2d(x, AvgPoolOptions::new([POOL; 2]).with_stride([POOL; 2])).flatten(1, 3)
    }
}

/// Two 3x3 convolutions and a shortcut.
#[derive(Module, Debug)]
struct BasicBlock {
    conv_a: Convolution,
    bn_a: BatchNorm,
    conv_b: Convolution,
    bn_b: BatchNorm,
    stride: usize,
}

impl BasicBlock {
    fn new(inputs: usize, outputs: usize, stride: usize, device: &Device) -> Self {
        Self {
            conv_a: Convolution::new(inputs, outputs, 3, stride, device),
            bn_a: BatchNorm::new(outputs, device),
            conv_b: Convolution::new(outputs, outputs, 3, 1, device),
            bn_b: BatchNorm::new(outputs, device),
            stride,
        }
    }

    fn forward(&mut self, x: Tensor<4>, pass: Pass) -> Tensor<4> {
        let hidden = relu(self.bn_a.forward(self.conv_a.forward(x.clone(), pass), pass));
        let out = self.bn_b.forward(self.conv_b.forward(hidden, pass), pass);
        relu(out + self.shortcut(x))
    }

    /// The input itself; where the block halves the image, every second pixel, with as many channels of zeros behind.
    fn shortcut(&self, x: Tensor<4>) -> Tensor<4> {
        if self.stride == 1 {
            return x;
        }
        // Average pooling over 1x1 takes every second pixel, and every back end has its gradient.
        let x = avg_pool2d(x, AvgPoolOptions::new([1, 1]).with_stride([self.stride; 2]));
        let zeros = x.zeros_like();
        Tensor::cat(vec![x, zeros], 1)
    }
}
