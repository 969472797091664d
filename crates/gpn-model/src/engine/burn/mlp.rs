//! The MLP as a burn module.

use burn::module::Module;
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};

use super::layers::Linear;
use super::{Backbone, Pass};
use crate::backbone::MlpConfig;

impl MlpConfig {
    /// Builds the module for embeddings of length `inputs`.
    pub(super) fn init(&self, inputs: usize, device: &Device) -> Mlp {
        let inputs = std::iter::once(inputs).chain(self.layers.iter().copied());
        Mlp {
            layers: inputs
                .zip(&self.layers)
                .map(|(inputs, &outputs)| Linear::new(inputs, outputs, device))
                .collect(),
        }
    }
}

/// Multi-layer perceptron built by [`MlpConfig`].
#[derive(Module, Debug)]
pub(super) struct Mlp {
    layers: Vec<Linear>,
}

impl Backbone for Mlp {
    /// `samples: [n, inputs, 1, 1]`.
    fn forward(&mut self, samples: Tensor<4>, _pass: Pass) -> Tensor<2> {
        let mut x: Tensor<2> = samples.flatten(1, 3);
        for (index, layer) in self.layers.iter().enumerate() {
            if index > 0 {
                x = relu(x);
            }
            x = layer.forward(x);
        }
        x
    }
}
