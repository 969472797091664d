//! ResNet-12 as a burn module.

use burn::module::Module;
use burn::tensor::activation::leaky_relu;
use burn::tensor::module::max_pool2d;
use burn::tensor::ops::MaxPoolOptions;
use burn::tensor::{Device, Tensor};

use super::layers::{BatchNorm, Convolution};
use super::{Backbone, Pass};
use crate::backbone::ResNet12Config;

/// Slope of the activation below zero.
const SLOPE: f64 = 0.1;

impl ResNet12Config {
    /// Builds the module.
    pub(super) fn init(&self, device: &Device) -> ResNet12 {
        let [a, b, c, d] = self.channels;
        ResNet12 {
            layer1: vec![Block::new(3, a, device)],
            layer2: vec![Block::new(a, b, device)],
            layer3: vec![Block::new(b, c, device)],
            layer4: vec![Block::new(c, d, device)],
        }
    }
}

/// Residual network built by [`ResNet12Config`]. Layers are lists of one block because that gives the parameter names
/// of published weights (`layer1.0.conv1.weight`).
#[derive(Module, Debug)]
pub(super) struct ResNet12 {
    layer1: Vec<Block>,
    layer2: Vec<Block>,
    layer3: Vec<Block>,
    layer4: Vec<Block>,
}

impl Backbone for ResNet12 {
    fn forward(&mut self, images: Tensor<4>, pass: Pass) -> Tensor<2> {
        let mut x = images;
        for layer in [&mut self.layer1, &mut self.layer2, &mut self.layer3, &mut self.layer4] {
            for block in layer {
                x = block.forward(x, pass);
            }
        }
        x.flatten::<3>(2, 3).mean_dim(2).squeeze_dim(2)
    }
}

/// Three convolutions and a projected shortcut.
#[derive(Module, Debug)]
struct Block {
    conv1: Convolution,
    bn1: BatchNorm,
    conv2: Convolution,
    bn2: BatchNorm,
    conv3: Convolution,
    bn3: BatchNorm,
    downsample: (Convolution, BatchNorm),
}

impl Block {
    fn new(inputs: usize, outputs: usize, device: &Device) -> Self {
        Self {
            conv1: Convolution::new(inputs, outputs, 3, 1, device),
            bn1: BatchNorm::new(outputs, device),
            conv2: Convolution::new(outputs, outputs, 3, 1, device),
            bn2: BatchNorm::new(outputs, device),
            conv3: Convolution::new(outputs, outputs, 3, 1, device),
            bn3: BatchNorm::new(outputs, device),
            downsample: (Convolution::new(inputs, outputs, 1, 1, device), BatchNorm::new(outputs, device)),
        }
    }

    fn forward(&mut self, x: Tensor<4>, pass: Pass) -> Tensor<4> {
        let (project, project_norm) = &mut self.downsample;
        let shortcut = project_norm.forward(project.forward(x.clone(), pass), pass);
        let x = leaky_relu(self.bn1.forward(self.conv1.forward(x, pass), pass), SLOPE);
        let x = leaky_relu(self.bn2.forward(self.conv2.forward(x, pass), pass), SLOPE);
        let x = self.bn3.forward(self.conv3.forward(x, pass), pass);
        let x = leaky_relu(x + shortcut, SLOPE);
        max_pool2d(x, MaxPoolOptions::new([2, 2]).with_stride([2, 2]))
    }
}
