//! The CPU kernels as an engine: ResNet-08, ResNet-20 and Conv4.

use gpn_kernels::{Architecture, Network};

use super::Engine;
use crate::backbone::{BackboneConfig, InputShape, Mode};
use crate::error::Result;
use crate::tensors::{TensorInfo, TensorList};

pub(super) struct KernelEngine(Network);

impl KernelEngine {
    /// The engine, or nothing where the kernels do not cover the backbone.
    pub(super) fn new(config: &BackboneConfig, input: InputShape) -> Result<Option<Self>> {
        let architecture = match config {
            BackboneConfig::ResNet(config) => {
                Architecture::ResNet { blocks_per_stage: config.blocks_per_stage }
            }
            BackboneConfig::Conv4(config) => Architecture::Conv4 { width: config.width },
            BackboneConfig::ResNet12(_) | BackboneConfig::Mlp(_) | BackboneConfig::Identity => {
                return Ok(None);
            }
        };
        let [_, height, width] = input.dims();
        Ok(Some(Self(Network::new(architecture, height, width)?)))
    }
}

/// The tensors as the kernels take them.
fn slices(tensors: &TensorList) -> Vec<&[f32]> {
    tensors.values().iter().map(Vec::as_slice).collect()
}

impl Engine for KernelEngine {
    fn parameters(&self) -> Vec<TensorInfo> {
        self.0.parameters().to_vec()
    }

    fn buffers(&self) -> Vec<TensorInfo> {
        self.0.buffers().to_vec()
    }

    fn set_exact_batch(&mut self, samples: usize) {
        self.0.set_exact_batch(samples);
    }

    fn forward(
        &mut self,
        mode: Mode,
        parameters: &TensorList,
        buffers: &mut TensorList,
        samples: &[f32],
        n: usize,
    ) -> Result<Vec<f32>> {
        let mut embeddings = vec![0.0; n * self.0.embedding_len()];
        self.0.forward(mode, &slices(parameters), buffers.values_mut(), samples, n, &mut embeddings)?;
        Ok(embeddings)
    }

    fn backward(
        &mut self,
        parameters: &TensorList,
        grad_embeddings: &[f32],
        gradients: &mut [Vec<f32>],
    ) -> Result<()> {
        Ok(self.0.backward(&slices(parameters), grad_embeddings, gradients, None)?)
    }

    fn embed(
        &mut self,
        parameters: &TensorList,
        buffers: &TensorList,
        samples: &[f32],
        n: usize,
    ) -> Result<Vec<f32>> {
        let mut embeddings = vec![0.0; n * self.0.embedding_len()];
        self.0.infer(&slices(parameters), buffers.values(), samples, n, &mut embeddings)?;
        Ok(embeddings)
    }
}
