//! Adjacency: how strongly each node hears each other one, and the sums over what they hear.

use std::ops::Range;

use super::graphs::Graphs;
use crate::vector::{add_scaled, dot};

/// The weights of the edges into the receivers of all graphs: a softmax over the other nodes of the graph.
pub(super) struct Adjacency {
    /// The nodes of each graph that receive.
    pub(super) receivers: Range<usize>,
    /// `[graphs, receivers, nodes]`, 0 from a node to itself.
    weights: Vec<f32>,
}

impl Adjacency {
    /// From the scores of the pairs of `graphs`.
    pub(super) fn new(graphs: &Graphs, receivers: Range<usize>, scores: &[f32]) -> Self {
        let nodes = graphs.nodes();
        let mut weights = vec![0.0; graphs.queries * receivers.len() * nodes];
        let mut rows = weights.chunks_exact_mut(nodes);
        for graph in 0..graphs.queries {
            for (receiver, row) in receivers.clone().zip(&mut rows) {
                let others = || (0..nodes).filter(|&sender| sender != receiver);
                let score = |sender| scores[graphs.pair(graph, receiver, sender)];
                let highest = others().map(score).fold(f32::NEG_INFINITY, f32::max);
                let mut sum = 0.0;
                for sender in others() {
                    row[sender] = libm::expf(score(sender) - highest);
                    sum += row[sender];
                }
                for weight in row {
                    *weight /= sum;
                }
            }
        }
        Self { receivers, weights }
    }

    /// `[x, A x]` of each receiver, for `features: [rows, width]`.
    pub(super) fn gather(&self, graphs: &Graphs, features: &[f32], width: usize) -> Vec<f32> {
        let nodes = graphs.nodes();
        let mut gathered = vec![0.0; graphs.queries * self.receivers.len() * 2 * width];
        let mut rows = gathered.chunks_exact_mut(2 * width).zip(self.weights.chunks_exact(nodes));
        for graph in 0..graphs.queries {
            let feature = |node| &features[graphs.node(graph, node) * width..][..width];
            for (receiver, (row, weights)) in self.receivers.clone().zip(&mut rows) {
                let (own, heard) = row.split_at_mut(width);
                own.copy_from_slice(feature(receiver));
                for (sender, &weight) in weights.iter().enumerate() {
                    add_scaled(heard, weight, feature(sender));
                }
            }
        }
        gathered
    }

    /// Adds the gradients of the features and returns those of the scores, for gradients of what [`gather`] gave.
    ///
    /// [`gather`]: Self::gather
    pub(super) fn backward(
        &self,
        graphs: &Graphs,
        features: &[f32],
        width: usize,
        gathered_grads: &[f32],
        feature_grads: &mut [f32],
        pairs: usize,
    ) -> Vec<f32> {
        let nodes = graphs.nodes();
        let mut score_grads = vec![0.0; pairs];
        let mut weight_grads = vec![0.0; nodes];
        let mut rows = gathered_grads.chunks_exact(2 * width).zip(self.weights.chunks_exact(nodes));
        for graph in 0..graphs.queries {
            for (receiver, (grads, weights)) in self.receivers.clone().zip(&mut rows) {
                let (own, heard) = grads.split_at(width);
                add_scaled(&mut feature_grads[graphs.node(graph, receiver) * width..][..width], 1.0, own);
                for (sender, (grad, &weight)) in weight_grads.iter_mut().zip(weights).enumerate() {
                    let first = graphs.node(graph, sender) * width;
                    *grad = dot(heard, &features[first..][..width]);
                    add_scaled(&mut feature_grads[first..][..width], weight, heard);
                }
                let mean = dot(weights, &weight_grads);
                for sender in (0..nodes).filter(|&sender| sender != receiver) {
                    score_grads[graphs.pair(graph, receiver, sender)] +=
                        weights[sender] * (weight_grads[sender] - mean);
                }
            }
        }
        score_grads
    }
}
