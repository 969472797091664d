//! The engine of `mlp` on the processor: linear layers with ReLU between them.

use gpn_kernels::{Mlp, linear};

use super::{Engine, OnFinal};
use crate::backbone::Mode;
use crate::error::Result;
use crate::tensors::{TensorInfo, TensorList, tensor_info};

pub(super) struct MlpEngine {
    /// Length of a sample, then the outputs of each layer.
    lengths: Vec<usize>,
    /// Training passes, with their work buffers.
    training: Mlp,
}

impl MlpEngine {
    pub(super) fn new(input: usize, layers: &[usize]) -> Self {
        let lengths: Vec<usize> = std::iter::once(input).chain(layers.iter().copied()).collect();
        Self { training: Mlp::new(lengths.clone()), lengths }
    }
}

impl Engine for MlpEngine {
    fn parameters(&self) -> Vec<TensorInfo> {
        let layers = self.lengths.windows(2).enumerate();
        let infos = layers.flat_map(|(index, lengths)| {
            let name = |part| format!("layers.{index}.{part}");
            [tensor_info(name("weight"), [lengths[1], lengths[0]]), tensor_info(name("bias"), [lengths[1]])]
        });
        infos.collect()
    }

    fn buffers(&self) -> Vec<TensorInfo> {
        Vec::new()
    }

    fn forward(
        &mut self,
        _mode: Mode,
        parameters: &TensorList,
        _buffers: &mut TensorList,
        samples: &[f32],
        n: usize,
    ) -> Result<Vec<f32>> {
        let mut embeddings = vec![0.0; n * self.lengths[self.lengths.len() - 1]];
        self.training.forward(parameters.values(), samples, n, &mut embeddings)?;
        Ok(embeddings)
    }

    fn backward(
        &mut self,
        parameters: &TensorList,
        grad_embeddings: &[f32],
        gradients: &mut [Vec<f32>],
        _on_final: OnFinal<'_>,
    ) -> Result<()> {
        Ok(self.training.backward(parameters.values(), grad_embeddings, gradients)?)
    }

    fn embed(
        &self,
        parameters: &TensorList,
        _buffers: &TensorList,
        samples: &[f32],
        n: usize,
    ) -> Result<Vec<f32>> {
        let mut x = samples.to_vec();
        let layers = self.lengths.windows(2).zip(parameters.values().as_chunks::<2>().0);
        for (index, (lengths, [weight, bias])) in layers.enumerate() {
            if index > 0 {
                for value in &mut x {
                    *value = value.max(0.0);
                }
            }
            let mut out = vec![0.0; n * lengths[1]];
            linear::forward(&x, weight, Some(bias), lengths[0], &mut out)?;
            x = out;
        }
        Ok(x)
    }
}
