//! The engine of `identity`: embeddings are the samples themselves.

use super::{Engine, OnFinal};
use crate::backbone::Mode;
use crate::error::Result;
use crate::tensors::{TensorInfo, TensorList};

pub(super) struct IdentityEngine;

impl Engine for IdentityEngine {
    fn parameters(&self) -> Vec<TensorInfo> {
        Vec::new()
    }

    fn buffers(&self) -> Vec<TensorInfo> {
        Vec::new()
    }

    fn forward(
        &mut self,
        _mode: Mode,
        _parameters: &TensorList,
        _buffers: &mut TensorList,
        samples: &[f32],
        _n: usize,
    ) -> Result<Vec<f32>> {
        Ok(samples.to_vec())
    }

    fn backward(
        &mut self,
        _parameters: &TensorList,
        _grad_embeddings: &[f32],
        _gradients: &mut [Vec<f32>],
        _on_final: OnFinal<'_>,
    ) -> Result<()> {
        Ok(())
    }

    fn embed(
        &self,
        _parameters: &TensorList,
        _buffers: &TensorList,
        samples: &[f32],
        _n: usize,
    ) -> Result<Vec<f32>> {
        Ok(samples.to_vec())
    }
}
