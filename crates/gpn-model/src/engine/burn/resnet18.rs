//! ResNet-18 as a burn module.

use burn::module::Module;
use burn::tensor::activation::relu;
use burn::tensor::module::max_pool2d;
use burn::tensor::ops::MaxPoolOptions;
use burn::tensor::{Device, Tensor};

use super::layers::{BatchNorm, Convolution};
use super::{Backbone, Pass};
use crate::backbone::ResNet18Config;

impl ResNet18Config {
    /// Builds the module.
    pub(super) fn init(&self, device: &Device) -> ResNet18 {
        let [a, b, c, d] = self.channels;
        let stage = |inputs, outputs, stride| {
            vec![Block::new(inputs, outputs, stride, device), Block::new(outputs, outputs, 1, device)]
        };
        ResNet18 {
            conv1: Convolution::new(3, a, 7, 2, device),
            bn1: BatchNorm::new(a, device),
            layer1: stage(a, a, 1),
            layer2: stage(a, b, 2),
            layer3: stage(b, c, 2),
            layer4: stage(c, d, 2),
        }
    }
}

/// Residual network built by [`ResNet18Config`]. Field names give torchvision's parameter names.
#[derive(Module, Debug)]
pub(super) struct ResNet18 {
    conv1: Convolution,
    bn1: BatchNorm,
    layer1: Vec<Block>,
    layer2: Vec<Block>,
    layer3: Vec<Block>,
    layer4: Vec<Block>,
}

impl Backbone for ResNet18 {
    fn forward(&mut self, images: Tensor<4>, pass: Pass) -> Tensor<2> {
        let x = relu(self.bn1.forward(self.conv1.forward(images, pass), pass));
        let mut x = max_pool2d(x, MaxPoolOptions::new([3, 3]).with_stride([2, 2]).with_padding([1, 1]));
        for layer in [&mut self.layer1, &mut self.layer2, &mut self.layer3, &mut self.layer4] {
            for block in layer {
                x = block.forward(x, pass);
            }
        }
        x.flatten::<3>(2, 3).mean_dim(2).squeeze_dim(2)
    }
}

/// Two convolutions and a shortcut, which is projected where the block halves the image.
#[derive(Module, Debug)]
struct Block {
    conv1: Convolution,
    bn1: BatchNorm,
    conv2: Convolution,
    bn2: BatchNorm,
    downsample: Option<(Convolution, BatchNorm)>,
}

impl Block {
    fn new(inputs: usize, outputs: usize, stride: usize, device: &Device) -> Self {
        let project =
            || (Convolution::new(inputs, outputs, 1, stride, device), BatchNorm::new(outputs, device));
        Self {
            conv1: Convolution::new(inputs, outputs, 3, stride, device),
            bn1: BatchNorm::new(outputs, device),
            conv2: Convolution::new(outputs, outputs, 3, 1, device),
            bn2: BatchNorm::new(outputs, device),
            downsample: (stride > 1).then(project),
        }
    }

    fn forward(&mut self, x: Tensor<4>, pass: Pass) -> Tensor<4> {
        let shortcut = match &mut self.downsample {
            Some((project, norm)) => norm.forward(project.forward(x.clone(), pass), pass),
            None => x.clone(),
        };
        let x = relu(self.bn1.forward(self.conv1.forward(x, pass), pass));
        relu(self.bn2.forward(self.conv2.forward(x, pass), pass) + shortcut)
    }
}
