//! MLP: a few linear layers over given embeddings.

use burn::module::Module;
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use super::layers::Linear;
use super::{Backbone, Pass};

/// Settings of [`Mlp`]: linear layers with ReLU between them, none after the last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MlpConfig {
    /// Outputs of each layer; the last is the length of an embedding. Default: 512, 256.
    pub layers: Vec<usize>,
}

impl Default for MlpConfig {
    fn default() -> Self {
        Self { layers: vec![512, 256] }
    }
}

impl MlpConfig {
    /// Builds the module for embeddings of length `inputs`.
    pub fn init(&self, inputs: usize, device: &Device) -> Mlp {
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
pub struct Mlp {
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
