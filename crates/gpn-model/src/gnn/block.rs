//! One block: adjacency from the pair network, then a graph convolution over `[x, A x]`.
//!
//! A block inside the network appends what it finds to the features of every node. The last one gives the logits of the
//! query's node.

use super::adjacency::Adjacency;
use super::graphs::{Graphs, Repeats};
use super::norm::{Norm, STATISTICS};
use super::pairs::{PairNetwork, PairTape};
use crate::matmul;
use crate::tensors::{TensorInfo, tensor_info};
use crate::vector::add_scaled;

/// What a block does with its outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Batch norm and leaky ReLU, then appended to the features.
    Inner,
    /// A bias, then the logits of the query.
    Last,
}

/// Shapes of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    role: Role,
    inputs: usize,
    outputs: usize,
    pairs: PairNetwork,
}

/// What a training pass keeps for its gradient.
pub(super) struct BlockTape {
    graphs: Graphs,
    pairs: PairTape,
    scored: usize,
    adjacency: Adjacency,
    gathered: Vec<f32>,
    /// Raw outputs and norm of an inner block.
    normed: Option<(Vec<f32>, Norm)>,
}

impl Block {
    pub(super) fn new(role: Role, inputs: usize, outputs: usize, hidden: usize) -> Self {
        Self { role, inputs, outputs, pairs: PairNetwork::new(inputs, hidden) }
    }

    /// Names and shapes of the parameters, behind `prefix`.
    pub(super) fn parameters(&self, prefix: &str) -> Vec<TensorInfo> {
        let mut infos = self.pairs.parameters(&format!("{prefix}pairs."));
        infos.push(tensor_info(format!("{prefix}weight"), [self.outputs, 2 * self.inputs]));
        match self.role {
            Role::Inner => {
                infos.push(tensor_info(format!("{prefix}norm.weight"), [self.outputs]));
                infos.push(tensor_info(format!("{prefix}norm.bias"), [self.outputs]));
            }
            Role::Last => infos.push(tensor_info(format!("{prefix}bias"), [self.outputs])),
        }
        infos
    }

    /// Names and shapes of the running statistics, behind `prefix`.
    pub(super) fn statistics(&self, prefix: &str) -> Vec<TensorInfo> {
        let mut infos = self.pairs.statistics(&format!("{prefix}pairs."));
        if self.role == Role::Inner {
            infos.extend(STATISTICS.map(|name| tensor_info(format!("{prefix}norm.{name}"), [self.outputs])));
        }
        infos
    }

    /// Number of parameters.
    pub(super) fn parameter_count(&self) -> usize {
        PairNetwork::PARAMETERS + if self.role == Role::Inner { 3 } else { 2 }
    }

    /// Number of running statistics.
    pub(super) fn statistic_count(&self) -> usize {
        PairNetwork::STATISTICS + if self.role == Role::Inner { STATISTICS.len() } else { 0 }
    }

    /// Evaluation: `features: [rows, inputs]` become those of the next block, `[graphs * nodes, inputs + outputs]`, or
    /// logits `[graphs, outputs]`.
    pub(super) fn forward(
        &self,
        params: &[Vec<f32>],
        running: &[Vec<f32>],
        graphs: Graphs,
        features: &[f32],
    ) -> Vec<f32> {
        // Nobody reads what support samples hear in the last block.
        let graphs = Graphs { query_pairs_only: self.role == Role::Last, ..graphs };
        let (params, own) = params.split_at(PairNetwork::PARAMETERS);
        let scores = self.pairs.scores(params, running, &graphs, features);
        let adjacency = Adjacency::new(&graphs, self.receivers(&graphs), &scores);
        let gathered = adjacency.gather(&graphs, features, self.inputs);
        let mut outputs = self.convolve(own, &gathered);
        match self.role {
            Role::Inner => {
                Norm::evaluation(&own[1..], &running[PairNetwork::STATISTICS..]).activate(&mut outputs);
                self.append(&gathered, &outputs)
            }
            Role::Last => with_bias(outputs, &own[1]),
        }
    }

    /// The same with the statistics of this batch, and what [`backward`](Self::backward) needs.
    pub(super) fn train(
        &self,
        params: &[Vec<f32>],
        running: &mut [Vec<f32>],
        graphs: Graphs,
        features: &[f32],
    ) -> (Vec<f32>, BlockTape) {
        let (params, own) = params.split_at(PairNetwork::PARAMETERS);
        let (pair_statistics, statistics) = running.split_at_mut(PairNetwork::STATISTICS);
        let (scores, pairs) = self.pairs.train(params, pair_statistics, &graphs, features);
        let adjacency = Adjacency::new(&graphs, self.receivers(&graphs), &scores);
        let gathered = adjacency.gather(&graphs, features, self.inputs);
        let raw = self.convolve(own, &gathered);
        let (result, normed) = match self.role {
            Role::Inner => {
                let norm = Norm::training(&own[1..], statistics, &raw, Repeats::default());
                let mut outputs = raw.clone();
                norm.activate(&mut outputs);
                (self.append(&gathered, &outputs), Some((raw, norm)))
            }
            Role::Last => (with_bias(raw, &own[1]), None),
        };
        (result, BlockTape { graphs, pairs, scored: scores.len(), adjacency, gathered, normed })
    }

    /// Writes the gradients of the parameters and returns those of `features`, for gradients of the result.
    pub(super) fn backward(
        &self,
        params: &[Vec<f32>],
        tape: &BlockTape,
        features: &[f32],
        result_grads: &[f32],
        param_grads: &mut [Vec<f32>],
    ) -> Vec<f32> {
        let (pair_params, own) = params.split_at(PairNetwork::PARAMETERS);
        let (pair_grads, own_grads) = param_grads.split_at_mut(PairNetwork::PARAMETERS);
        let [inputs, outputs] = [self.inputs, self.outputs];
        // Gradients of what was gathered: the part of the appended features that is the node's own, or none.
        let mut gathered_grads = vec![0.0; tape.gathered.len()];
        let output_grads = if let Some((raw, norm)) = &tape.normed {
            let mut output_grads = Vec::with_capacity(raw.len());
            let rows = result_grads.chunks_exact(inputs + outputs);
            for (result, gathered) in rows.zip(gathered_grads.chunks_exact_mut(2 * inputs)) {
                let (own, output) = result.split_at(inputs);
                gathered[..inputs].copy_from_slice(own);
                output_grads.extend(output);
            }
            norm.backward(raw, Repeats::default(), &mut output_grads, &mut own_grads[1..]);
            output_grads
        } else {
            own_grads[1].fill(0.0);
            for row in result_grads.chunks_exact(outputs) {
                add_scaled(&mut own_grads[1], 1.0, row);
            }
            result_grads.to_vec()
        };
        matmul::gt_x(&output_grads, &tape.gathered, outputs, 2 * inputs, &mut own_grads[0]);
        matmul::add_g_w(&output_grads, &own[0], outputs, 2 * inputs, &mut gathered_grads);
        let mut feature_grads = vec![0.0; features.len()];
        let score_grads = tape.adjacency.backward(
            &tape.graphs,
            features,
            inputs,
            &gathered_grads,
            &mut feature_grads,
            tape.scored,
        );
        self.pairs.backward(pair_params, &tape.pairs, features, &score_grads, pair_grads, &mut feature_grads);
        feature_grads
    }

    /// The nodes whose outputs are read.
    fn receivers(&self, graphs: &Graphs) -> std::ops::Range<usize> {
        match self.role {
            Role::Inner => 0..graphs.nodes(),
            Role::Last => graphs.support..graphs.nodes(),
        }
    }

    fn convolve(&self, own: &[Vec<f32>], gathered: &[f32]) -> Vec<f32> {
        matmul::x_wt(gathered, &own[0], 2 * self.inputs, self.outputs)
    }

    /// Features of the next block: the node's own and the outputs.
    fn append(&self, gathered: &[f32], outputs: &[f32]) -> Vec<f32> {
        let rows = gathered.chunks_exact(2 * self.inputs).zip(outputs.chunks_exact(self.outputs));
        rows.flat_map(|(gathered, outputs)| gathered[..self.inputs].iter().chain(outputs)).copied().collect()
    }
}

fn with_bias(mut rows: Vec<f32>, bias: &[f32]) -> Vec<f32> {
    for row in rows.chunks_exact_mut(bias.len()) {
        add_scaled(row, 1.0, bias);
    }
    rows
}
