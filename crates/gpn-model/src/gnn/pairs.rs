//! The pair network: a score for every pair of nodes, by an MLP over `|x_i - x_j|`.
//!
//! The layers are linear maps (1x1 convolutions over the matrix of pairs), each but the last followed by batch norm and
//! a leaky ReLU. They have no biases: the norm's would take their place, and that of a score cancels in the softmax.

use super::graphs::{Graphs, Repeats};
use super::norm::{Norm, STATISTICS};
use crate::matmul;
use crate::tensors::{TensorInfo, tensor_info};
use crate::vector::{add_scaled, dot};

/// Layers with a norm, before the one that gives the score.
const LAYERS: usize = 4;
/// Parameters of such a layer: its weight, and weight and bias of its norm.
const PER_LAYER: usize = 3;
/// Pairs whose layers are computed together, so that they stay in the cache.
const CHUNK: usize = 512;

/// Shapes of the network.
#[derive(Clone, Copy, Debug)]
pub(super) struct PairNetwork {
    /// Inputs of each layer, the last one's included.
    widths: [usize; LAYERS + 1],
}

/// What a training pass keeps for its gradient.
pub(super) struct PairTape {
    pairs: Vec<[usize; 2]>,
    repeats: Repeats,
    /// Output of each layer before its norm, `[pairs, width]`.
    raw: [Vec<f32>; LAYERS],
    norms: [Norm; LAYERS],
}

impl PairNetwork {
    /// Parameters of a network.
    pub(super) const PARAMETERS: usize = PER_LAYER * LAYERS + 1;
    /// Running statistics of a network.
    pub(super) const STATISTICS: usize = STATISTICS.len() * LAYERS;

    pub(super) fn new(inputs: usize, hidden: usize) -> Self {
        Self { widths: [inputs, 2 * hidden, 2 * hidden, hidden, hidden] }
    }

    /// Names and shapes of the parameters, behind `prefix`.
    pub(super) fn parameters(&self, prefix: &str) -> Vec<TensorInfo> {
        let mut infos = Vec::with_capacity(Self::PARAMETERS);
        for layer in 0..LAYERS {
            let [inputs, outputs] = [self.widths[layer], self.widths[layer + 1]];
            infos.push(tensor_info(format!("{prefix}layer{layer}.weight"), [outputs, inputs]));
            infos.push(tensor_info(format!("{prefix}layer{layer}.norm.weight"), [outputs]));
            infos.push(tensor_info(format!("{prefix}layer{layer}.norm.bias"), [outputs]));
        }
        infos.push(tensor_info(format!("{prefix}score.weight"), [1, self.widths[LAYERS]]));
        infos
    }

    /// Names and shapes of the running statistics, behind `prefix`.
    pub(super) fn statistics(&self, prefix: &str) -> Vec<TensorInfo> {
        let named = |layer: usize| {
            STATISTICS.map(|name| {
                tensor_info(format!("{prefix}layer{layer}.norm.{name}"), [self.widths[layer + 1]])
            })
        };
        (0..LAYERS).flat_map(named).collect()
    }

    /// The score of every pair of `graphs`, with running statistics. `nodes: [rows, inputs]`.
    pub(super) fn scores(
        &self,
        params: &[Vec<f32>],
        running: &[Vec<f32>],
        graphs: &Graphs,
        nodes: &[f32],
    ) -> Vec<f32> {
        let norms: [Norm; LAYERS] = std::array::from_fn(|layer| {
            Norm::evaluation(affine(params, layer), &running[STATISTICS.len() * layer..])
        });
        let pairs = graphs.pairs();
        let mut scores = Vec::with_capacity(pairs.len());
        for chunk in pairs.chunks(CHUNK) {
            let mut values = self.differences(nodes, chunk);
            for (layer, norm) in norms.iter().enumerate() {
                values = self.layer(params, layer, &values);
                norm.activate(&mut values);
            }
            scores.extend(values.chunks_exact(self.widths[LAYERS]).map(|row| dot(row, score_weight(params))));
        }
        scores
    }

    /// The same with the statistics of these pairs, and what [`backward`](Self::backward) needs.
    pub(super) fn train(
        &self,
        params: &[Vec<f32>],
        running: &mut [Vec<f32>],
        graphs: &Graphs,
        nodes: &[f32],
    ) -> (Vec<f32>, PairTape) {
        let (pairs, repeats) = (graphs.pairs(), graphs.pair_repeats());
        let mut raw: [Vec<f32>; LAYERS] = Default::default();
        let mut norms: Vec<Norm> = Vec::with_capacity(LAYERS);
        for layer in 0..LAYERS {
            let mut outputs = Vec::with_capacity(pairs.len() * self.widths[layer + 1]);
            for first in (0..pairs.len()).step_by(CHUNK) {
                let input = self.input(layer, first, nodes, &pairs, &raw, &norms);
                outputs.extend(self.layer(params, layer, &input));
            }
            let statistics = &mut running[STATISTICS.len() * layer..][..STATISTICS.len()];
            norms.push(Norm::training(affine(params, layer), statistics, &outputs, repeats));
            raw[layer] = outputs;
        }
        let mut scores = Vec::with_capacity(pairs.len());
        for first in (0..pairs.len()).step_by(CHUNK) {
            let input = self.input(LAYERS, first, nodes, &pairs, &raw, &norms);
            scores.extend(input.chunks_exact(self.widths[LAYERS]).map(|row| dot(row, score_weight(params))));
        }
        let Ok(norms) = norms.try_into() else { unreachable!("invariant: one norm per layer") };
        (scores, PairTape { pairs, repeats, raw, norms })
    }

    /// Writes the gradients of the parameters and adds those of the nodes, for gradients of the scores.
    pub(super) fn backward(
        &self,
        params: &[Vec<f32>],
        tape: &PairTape,
        nodes: &[f32],
        score_grads: &[f32],
        param_grads: &mut [Vec<f32>],
        node_grads: &mut [f32],
    ) {
        let PairTape { pairs, repeats, raw, norms } = tape;
        let width = self.widths[LAYERS];
        let mut grads = vec![0.0; pairs.len() * width];
        for (row, &grad) in grads.chunks_exact_mut(width).zip(score_grads) {
            add_scaled(row, grad, score_weight(params));
        }
        let score_weight_grad = &mut param_grads[PER_LAYER * LAYERS];
        score_weight_grad.fill(0.0);
        for first in (0..pairs.len()).step_by(CHUNK) {
            let input = self.input(LAYERS, first, nodes, pairs, raw, norms);
            for (row, &grad) in input.chunks_exact(width).zip(&score_grads[first..]) {
                add_scaled(score_weight_grad, grad, row);
            }
        }
        for layer in (0..LAYERS).rev() {
            let [inputs, outputs] = [self.widths[layer], self.widths[layer + 1]];
            let [weight_grad, affine_grads @ ..] = &mut param_grads[PER_LAYER * layer..][..PER_LAYER] else {
                unreachable!("invariant: a layer has three parameters")
            };
            norms[layer].backward(&raw[layer], *repeats, &mut grads, affine_grads);
            weight_grad.fill(0.0);
            let mut input_grads = vec![0.0; pairs.len() * inputs];
            let mut product = vec![0.0; weight_grad.len()];
            let chunks = grads.chunks(CHUNK * outputs).zip(input_grads.chunks_mut(CHUNK * inputs));
            for (index, (grads, input_grads)) in chunks.enumerate() {
                let input = self.input(layer, index * CHUNK, nodes, pairs, raw, norms);
                matmul::gt_x(grads, &input, outputs, inputs, &mut product);
                add_scaled(weight_grad, 1.0, &product);
                matmul::add_g_w(grads, &params[PER_LAYER * layer], outputs, inputs, input_grads);
            }
            grads = input_grads;
        }
        self.differences_backward(nodes, pairs, &grads, node_grads);
    }

    /// A linear map.
    fn layer(&self, params: &[Vec<f32>], layer: usize, input: &[f32]) -> Vec<f32> {
        matmul::x_wt(input, &params[PER_LAYER * layer], self.widths[layer], self.widths[layer + 1])
    }

    /// What a layer gets for the chunk of pairs that begins at `first`: cheaper to compute again than to keep.
    fn input(
        &self,
        layer: usize,
        first: usize,
        nodes: &[f32],
        pairs: &[[usize; 2]],
        raw: &[Vec<f32>],
        norms: &[Norm],
    ) -> Vec<f32> {
        let last = (first + CHUNK).min(pairs.len());
        let Some(before) = layer.checked_sub(1) else {
            return self.differences(nodes, &pairs[first..last]);
        };
        let width = self.widths[layer];
        let mut values = raw[before][first * width..last * width].to_vec();
        norms[before].activate(&mut values);
        values
    }

    /// `|x_i - x_j|` of each pair, `[pairs, inputs]`.
    fn differences(&self, nodes: &[f32], pairs: &[[usize; 2]]) -> Vec<f32> {
        let width = self.widths[0];
        let mut differences = Vec::with_capacity(pairs.len() * width);
        for pair in pairs {
            let [a, b] = pair.map(|node| &nodes[node * width..][..width]);
            differences.extend(a.iter().zip(b).map(|(a, b)| (a - b).abs()));
        }
        differences
    }

    fn differences_backward(
        &self,
        nodes: &[f32],
        pairs: &[[usize; 2]],
        grads: &[f32],
        node_grads: &mut [f32],
    ) {
        let width = self.widths[0];
        for (&[a, b], grads) in pairs.iter().zip(grads.chunks_exact(width)) {
            for (column, &grad) in grads.iter().enumerate() {
                let [a, b] = [a * width + column, b * width + column];
                let difference = nodes[a] - nodes[b];
                let sign = f32::from(difference > 0.0) - f32::from(difference < 0.0);
                node_grads[a] += sign * grad;
                node_grads[b] -= sign * grad;
            }
        }
    }
}

/// Weight and bias of a layer's norm.
fn affine(params: &[Vec<f32>], layer: usize) -> &[Vec<f32>] {
    &params[PER_LAYER * layer + 1..][..PER_LAYER - 1]
}

/// The map from the last layer to the score.
fn score_weight(params: &[Vec<f32>]) -> &[f32] {
    &params[PER_LAYER * LAYERS]
}
