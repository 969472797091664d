//! The engine of `mlp` on the processor: linear layers with ReLU between them.

use gpn_kernels::linear;

use super::Engine;
use crate::backbone::Mode;
use crate::error::{ModelError, Result};
use crate::tensors::{TensorInfo, TensorList, tensor_info};

pub(super) struct MlpEngine {
    /// Length of a sample, then the outputs of each layer.
    lengths: Vec<usize>,
    /// Inputs of each layer in the last forward pass.
    inputs: Vec<Vec<f32>>,
}

impl MlpEngine {
    pub(super) fn new(input: usize, layers: &[usize]) -> Self {
        let lengths = std::iter::once(input).chain(layers.iter().copied()).collect();
        Self { lengths, inputs: Vec::new() }
    }

    /// The embeddings of `n` samples; each layer's input is given to `keep`.
    fn pass(
        &self,
        parameters: &TensorList,
        samples: &[f32],
        n: usize,
        mut keep: impl FnMut(Vec<f32>),
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
            keep(std::mem::replace(&mut x, out));
        }
        Ok(x)
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
        let mut inputs = Vec::new();
        let embeddings = self.pass(parameters, samples, n, |input| inputs.push(input))?;
        self.inputs = inputs;
        Ok(embeddings)
    }

    fn backward(
        &mut self,
        parameters: &TensorList,
        grad_embeddings: &[f32],
        gradients: &mut [Vec<f32>],
    ) -> Result<()> {
        if self.inputs.is_empty() {
            return Err(ModelError::NoForward);
        }
        let mut grad = grad_embeddings.to_vec();
        let layers = parameters.values().as_chunks::<2>().0.iter().zip(gradients.as_chunks_mut::<2>().0);
        for (index, ([weight, _], [grad_weight, grad_bias])) in layers.enumerate().rev() {
            let input = &self.inputs[index];
            let mut grad_input = vec![0.0; input.len()];
            linear::backward(
                input,
                weight,
                &grad,
                self.lengths[index],
                grad_weight,
                grad_bias,
                Some(&mut grad_input),
            )?;
            // The first layer has no ReLU before it, and nobody asks for the gradient of the samples.
            for (grad, &value) in grad_input.iter_mut().zip(input) {
                *grad = if value > 0.0 { *grad } else { 0.0 };
            }
            grad = grad_input;
        }
        self.inputs.clear();
        Ok(())
    }

    fn embed(
        &self,
        parameters: &TensorList,
        _buffers: &TensorList,
        samples: &[f32],
        n: usize,
    ) -> Result<Vec<f32>> {
        self.pass(parameters, samples, n, drop)
    }
}
