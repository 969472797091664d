//! The CPU kernels as an engine: ResNet-08, ResNet-20 and Conv4.

use std::sync::OnceLock;

use gpn_kernels::{Architecture, Network, PackedWeights};

use super::Engine;
use crate::backbone::{BackboneConfig, InputShape, Mode};
use crate::error::Result;
use crate::tensors::{TensorInfo, TensorList};

pub(super) struct KernelEngine {
    network: Network,
    /// The parameters and buffers as inference reads them, from the first call of `embed` until they change.
    packed: OnceLock<PackedWeights>,
}

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
        let network = Network::new(architecture, height, width)?;
        Ok(Some(Self { network, packed: OnceLock::new() }))
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
    ) -> Result<()> {
        Ok(self.network.backward(&slices(parameters), grad_embeddings, gradients, None)?)
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
