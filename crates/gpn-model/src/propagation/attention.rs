//! Attention: how strongly each receiver listens to each of its senders, for one step and head.

use super::config::{Attention, PropagationConfig};
use crate::matmul;
use crate::vector::{Cosine, dot};

/// Norms of projections below this count as this.
const FLOOR: f32 = 1e-4;

/// The edges of a step over the nodes that take part in it, numbered among receivers and among senders.
pub(super) struct LocalEdges {
    /// The edges of receiver `r` are `offsets[r]..offsets[r + 1]`.
    pub(super) offsets: Vec<usize>,
    /// The sender of each edge.
    pub(super) sender: Vec<usize>,
}

impl LocalEdges {
    pub(super) fn of(&self, receiver: usize) -> std::ops::Range<usize> {
        self.offsets[receiver]..self.offsets[receiver + 1]
    }

    fn receivers(&self) -> usize {
        self.offsets.len() - 1
    }
}

/// The weights of one head, and what its gradient needs.
pub(super) struct Weights {
    /// The weight of each edge.
    pub(super) weight: Vec<f32>,
    kept: Kept,
}

enum Kept {
    Nothing,
    Cosine { keys: Vec<f32>, queries: Vec<f32>, cosines: Vec<Cosine> },
    Additive { keys: Vec<f32>, queries: Vec<f32> },
}

/// What attention of a head works on.
#[derive(Clone, Copy)]
pub(super) struct Ends<'a> {
    /// Prototypes of the receivers, `[receivers, dim]`.
    pub(super) receivers: &'a [f32],
    /// Prototypes of the senders, `[senders, dim]`.
    pub(super) senders: &'a [f32],
    pub(super) dim: usize,
    /// Who hears whom.
    pub(super) edges: &'a LocalEdges,
}

/// The names and shapes of a head's attention parameters.
pub(super) fn parameters(config: &PropagationConfig, dim: usize) -> Vec<(&'static str, Vec<usize>)> {
    let hidden = config.hidden;
    match config.attention {
        Attention::Cosine | Attention::CosineRaw => {
            vec![("linear_q.weight", vec![hidden, dim]), ("linear_k.weight", vec![hidden, dim])]
        }
        Attention::Additive | Attention::AdditiveLinear => vec![
            ("w_1.weight", vec![hidden, dim]),
            ("w_1.bias", vec![hidden]),
            ("w_2.weight", vec![hidden, dim]),
            ("w.weight", vec![1, hidden]),
            ("w.bias", vec![1]),
        ],
        Attention::Uniform => Vec::new(),
    }
}

impl Weights {
    /// Weighs every edge. `params` are those that [`parameters`] lists.
    pub(super) fn new(config: &PropagationConfig, ends: Ends<'_>, params: &[&[f32]]) -> Self {
        let edges = ends.edges;
        let hidden = config.hidden;
        let (mut weight, kept) = match config.attention {
            Attention::Uniform => (vec![0.0; edges.sender.len()], Kept::Nothing),
            Attention::Cosine | Attention::CosineRaw => {
                let keys = matmul::x_wt(ends.receivers, params[1], ends.dim, hidden);
                let queries = matmul::x_wt(ends.senders, params[0], ends.dim, hidden);
                let norms = |rows: &[f32]| -> Vec<f32> {
                    rows.chunks_exact(hidden).map(|row| dot(row, row).sqrt()).collect()
                };
                let (key_norms, query_norms) = (norms(&keys), norms(&queries));
                let cosines: Vec<Cosine> = pairs(edges)
                    .map(|(r, s)| {
                        let norms = [key_norms[r], query_norms[s]];
                        Cosine::with_norms(row(&keys, r, hidden), row(&queries, s, hidden), norms, FLOOR)
                    })
                    .collect();
                let scores = cosines.iter().map(|cosine| cosine.value).collect();
                (scores, Kept::Cosine { keys, queries, cosines })
            }
            Attention::Additive | Attention::AdditiveLinear => {
                let keys = matmul::x_wt(ends.receivers, params[0], ends.dim, hidden);
                let queries = matmul::x_wt(ends.senders, params[2], ends.dim, hidden);
                let scores = pairs(edges)
                    .map(|(r, s)| {
                        let sums =
                            hidden_sums(config, row(&keys, r, hidden), row(&queries, s, hidden), params[1]);
                        dot(&sums, params[3]) + params[4][0]
                    })
                    .collect();
                (scores, Kept::Additive { keys, queries })
            }
        };
        if config.attention != Attention::CosineRaw {
            for receiver in 0..edges.receivers() {
                softmax(&mut weight[edges.of(receiver)], config.attention_temperature);
            }
        }
        Self { weight, kept }
    }

    /// Adds the gradients of the ends and of the parameters for a gradient of every weight.
    pub(super) fn backward(
        &self,
        config: &PropagationConfig,
        ends: Ends<'_>,
        params: &[&[f32]],
        mut weight_grads: Vec<f32>,
        [receiver_grads, sender_grads]: [&mut [f32]; 2],
        param_grads: &mut [Vec<f32>],
    ) {
        let edges = ends.edges;
        let hidden = config.hidden;
        if config.attention != Attention::CosineRaw {
            for receiver in 0..edges.receivers() {
                let range = edges.of(receiver);
                softmax_backward(
                    &self.weight[range.clone()],
                    &mut weight_grads[range],
                    config.attention_temperature,
                );
            }
        }
        match &self.kept {
            Kept::Nothing => {}
            Kept::Cosine { keys, queries, cosines } => {
                let (mut key_grads, mut query_grads) = (vec![0.0; keys.len()], vec![0.0; queries.len()]);
                for (edge, (r, s)) in pairs(edges).enumerate() {
                    let (key, query) = (row(keys, r, hidden), row(queries, s, hidden));
                    let g = weight_grads[edge];
                    cosines[edge].backward_first(g, key, query, row_mut(&mut key_grads, r, hidden));
                    cosines[edge].backward_second(g, key, query, row_mut(&mut query_grads, s, hidden));
                }
                matmul::gt_x(&key_grads, ends.receivers, hidden, ends.dim, &mut param_grads[1]);
                matmul::gt_x(&query_grads, ends.senders, hidden, ends.dim, &mut param_grads[0]);
                matmul::add_g_w(&key_grads, params[1], hidden, ends.dim, receiver_grads);
                matmul::add_g_w(&query_grads, params[0], hidden, ends.dim, sender_grads);
            }
            Kept::Additive { keys, queries } => {
                let (mut key_grads, mut query_grads) = (vec![0.0; keys.len()], vec![0.0; queries.len()]);
                for (edge, (r, s)) in pairs(edges).enumerate() {
                    let g = weight_grads[edge];
                    let sums = hidden_sums(config, row(keys, r, hidden), row(queries, s, hidden), params[1]);
                    param_grads[4][0] += g;
                    for (unit, &sum) in sums.iter().enumerate() {
                        let slope =
                            if config.attention == Attention::Additive { 1.0 - sum * sum } else { 1.0 };
                        let unit_grad = g * params[3][unit] * slope;
                        param_grads[3][unit] += g * sum;
                        param_grads[1][unit] += unit_grad;
                        key_grads[r * hidden + unit] += unit_grad;
                        query_grads[s * hidden + unit] += unit_grad;
                    }
                }
                matmul::gt_x(&key_grads, ends.receivers, hidden, ends.dim, &mut param_grads[0]);
                matmul::gt_x(&query_grads, ends.senders, hidden, ends.dim, &mut param_grads[2]);
                matmul::add_g_w(&key_grads, params[0], hidden, ends.dim, receiver_grads);
                matmul::add_g_w(&query_grads, params[2], hidden, ends.dim, sender_grads);
            }
        }
    }
}

/// `(receiver, sender)` of each edge.
fn pairs(edges: &LocalEdges) -> impl Iterator<Item = (usize, usize)> + '_ {
    (0..edges.receivers()).flat_map(move |r| edges.of(r).map(move |edge| (r, edges.sender[edge])))
}

/// The hidden units of additive attention for one edge.
fn hidden_sums(config: &PropagationConfig, key: &[f32], query: &[f32], bias: &[f32]) -> Vec<f32> {
    let sums = key.iter().zip(query).zip(bias).map(|((k, q), b)| k + q + b);
    if config.attention == Attention::Additive { sums.map(libm::tanhf).collect() } else { sums.collect() }
}

fn softmax(scores: &mut [f32], temperature: f32) {
    let highest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for score in &mut *scores {
        *score = libm::expf(temperature * (*score - highest));
        sum += *score;
    }
    for score in scores {
        *score /= sum;
    }
}

/// Turns gradients of softmax outputs into gradients of the scores.
fn softmax_backward(outputs: &[f32], grads: &mut [f32], temperature: f32) {
    let mean: f32 = outputs.iter().zip(&*grads).map(|(o, g)| o * g).sum();
    for (grad, output) in grads.iter_mut().zip(outputs) {
        *grad = temperature * output * (*grad - mean);
    }
}

fn row(matrix: &[f32], index: usize, len: usize) -> &[f32] {
    &matrix[index * len..][..len]
}

fn row_mut(matrix: &mut [f32], index: usize, len: usize) -> &mut [f32] {
    &mut matrix[index * len..][..len]
}
