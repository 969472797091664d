//! The linear classifier of the auxiliary task on a device of burn.

use burn::tensor::activation::log_softmax;
use burn::tensor::{Device, Int, Tensor, TensorData, Transaction};

use super::read;
use crate::error::{ModelError, Result};
use crate::head::HeadPass;

/// Loss of `embeddings: [n, len]` against `labels: [n]`, with the gradients of `weight: [classes, len]` and
/// `bias: [classes]`.
pub(crate) fn forward_backward(
    device: &Device,
    [weight, bias]: [&[f32]; 2],
    embeddings: &[f32],
    labels: &[usize],
) -> Result<(HeadPass, Vec<Vec<f32>>)> {
    let (n, classes) = (labels.len(), bias.len());
    let len = embeddings.len() / n.max(1);
    let device = device.clone().autodiff();
    let leaf = |values: &[f32], shape: [usize; 2]| {
        Tensor::<2>::from_data(TensorData::new(values.to_vec(), shape), &device).require_grad()
    };
    let weight = leaf(weight, [classes, len]);
    let bias = leaf(bias, [1, classes]);
    let input = leaf(embeddings, [n, len]);
    let labels: Vec<i64> = labels.iter().map(|&label| label as i64).collect();
    let labels = Tensor::<2, Int>::from_data(TensorData::new(labels, [n, 1]), &device);

    let logits = input.clone().matmul(weight.clone().transpose()) + bias.clone();
    let loss = -log_softmax(logits.clone(), 1).gather(1, labels).mean();
    let mut gradients = loss.backward();
    let mut gradient = |leaf: &Tensor<2>| leaf.grad_remove(&mut gradients).ok_or(ModelError::NoForward);
    let transaction = Transaction::default()
        .register(loss.clone().inner())
        .register(logits.inner())
        .register(gradient(&input)?)
        .register(gradient(&weight)?)
        .register(gradient(&bias)?);
    let mut values = read(transaction, "classifier head")?.into_iter();
    let mut next = || values.next().unwrap_or_default();
    let (loss, logits, grad_embeddings) = (next(), next(), next());
    let gradients = vec![next(), next()];
    Ok((HeadPass { loss: loss.first().copied().unwrap_or(f32::NAN), logits, grad_embeddings }, gradients))
}
