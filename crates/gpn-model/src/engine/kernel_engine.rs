//! The CPU kernels as an engine: every backbone for images.

use std::sync::OnceLock;

use gpn_kernels::{Architecture, Network, PackedWeights};

use super::{Engine, OnFinal};
use crate::backbone::{BackboneConfig, InputShape, Mode};
use crate::error::{ModelError, Result};
use crate::tensors::{TensorInfo, TensorList};

pub(super) struct KernelEngine {
    network: Network,
    /// The parameters and buffers as inference reads them, from the first call of `embed` until they change.
    packed: OnceLock<PackedWeights>,
}

impl KernelEngine {
    /// The engine of a backbone for images.
    pub(super) fn new(config: &BackboneConfig, input: InputShape) -> Result<Self> {
        let architecture = match config {
            BackboneConfig::ResNet(config) => {
                Architecture::ResNet { blocks_per_stage: config.blocks_per_stage }
            }
            BackboneConfig::Conv4(config) => Architecture::Conv4 { width: config.width },
            BackboneConfig::ResNet12(config) => Architecture::ResNet12 { channels: config.channels },
            BackboneConfig::ResNet18(config) => Architecture::ResNet18 { channels: config.channels },
            BackboneConfig::Mlp(_) | BackboneConfig::Identity => {
                return Err(ModelError::WrongInput {
                    backbone: config.name(),
                    takes: "embeddings",
                    given: "images".into(),
                });
            }
        };
        let [_, height, width] = input.dims();
        Ok(Self { network: Network::new(architecture, height, width)?, packed: OnceLock::new() })
    }
}

/// The tensors as the kernels take them.
fn slices(tensors: &TensorList) -> Vec<&[f32]> {
    tensors.values().iter().map(Vec::as_slice).collect()
}

impl Engine for KernelEngine {
    fn parameters(&self) -> Vec<TensorInfo> {
        self.network.parameters().to_vec()
    }

    fn buffers(&self) -> Vec<TensorInfo> {
        self.network.buffers().to_vec()
    }

    fn set_exact_batch(&mut self, samples: usize) {
        self.network.set_exact_batch(samples);
    }

    fn forward(
        &mut self,
        mode: Mode,
        parameters: &TensorList,
        buffers: &mut TensorList,
        samples: &[f32],
        n: usize,
    ) -> Result<Vec<f32>> {
        if mode == Mode::Train {
            // Running statistics move.
            self.parameters_changed();
        }
        let mut embeddings = vec![0.0; n * self.network.embedding_len()];
        self.network.forward(mode, &slices(parameters), buffers.values_mut(), samples, n, &mut embeddings)?;
        Ok(embeddings)
    }

    fn backward(
        &mut self,
        parameters: &TensorList,
        grad_embeddings: &[f32],
        gradients: &mut [Vec<f32>],
        on_final: OnFinal<'_>,
    ) -> Result<()> {
        let parameters = slices(parameters);
        Ok(self.network.backward_with(&parameters, grad_embeddings, gradients, None, on_final)?)
    }

    fn parameters_changed(&mut self) {
        self.packed.take();
    }

    fn embed(
        &self,
        parameters: &TensorList,
        buffers: &TensorList,
        samples: &[f32],
        n: usize,
    ) -> Result<Vec<f32>> {
        let packed = if let Some(packed) = self.packed.get() {
            packed
        } else {
            // Threads that come at once each pack, to the same bits, and one result stays.
            let packed = self.network.pack(&slices(parameters), buffers.values())?;
            self.packed.get_or_init(|| packed)
        };
        let mut embeddings = vec![0.0; n * self.network.embedding_len()];
        self.network.infer(packed, samples, n, &mut embeddings)?;
        Ok(embeddings)
    }
}
