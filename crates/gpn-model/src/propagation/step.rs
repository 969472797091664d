//! One step of propagation over all heads, forward and backward.

use rayon::prelude::*;

use super::Influence;
use super::attention::{self, Ends, LocalEdges, Weights};
use super::config::PropagationConfig;
use super::gate::{self, GateTape, MessageGrads, Messages};
use super::graph::Senders;
use crate::vector::{add_scaled, dot};

/// Names and shapes of the parameters of one head.
pub(super) fn head_parameters(config: &PropagationConfig, dim: usize) -> Vec<(&'static str, Vec<usize>)> {
    let mut parameters = attention::parameters(config, dim);
    parameters.extend(gate::parameters(config, dim));
    parameters
}

/// What a step works on.
#[derive(Clone, Copy)]
pub(super) struct Step<'a> {
    pub(super) config: &'a PropagationConfig,
    /// Length of a prototype.
    pub(super) dim: usize,
    /// The parameters of all heads, one head after the other.
    pub(super) params: &'a [&'a [f32]],
    pub(super) senders: &'a Senders,
    /// The nodes that get a new prototype, ascending.
    pub(super) receivers: &'a [u32],
    /// Prototypes after the last step, `[nodes, dim]`.
    pub(super) level: &'a [f32],
    /// Prototypes before the first step, `[nodes, dim]`.
    pub(super) first: &'a [f32],
}

/// What a step keeps for its gradient.
pub(super) struct StepTape {
    /// Receivers that have senders.
    listening: Vec<u32>,
    /// Nodes that send to them.
    speaking: Vec<u32>,
    edges: LocalEdges,
    heads: Vec<HeadTape>,
}

struct HeadTape {
    attention: Weights,
    /// The message to each listening node, `[listening, dim]`.
    messages: Vec<f32>,
    gates: Vec<GateTape>,
}

/// Gradients that one head adds to prototypes: of the listening nodes, of the speaking nodes, and of the first
/// prototypes of the listening nodes.
struct HeadGrads {
    receiving: Vec<f32>,
    sending: Vec<f32>,
    first: Vec<f32>,
}

impl<'a> Step<'a> {
    /// Writes the new prototypes of the receivers into `next`, `[nodes, dim]`.
    pub(super) fn forward(self, next: &mut [f32]) -> StepTape {
        let Self { config, dim, .. } = self;
        let (listening, speaking, edges) = self.local_edges();
        for &receiver in self.receivers {
            // A class without neighbours keeps its prototype.
            rows(next, receiver, dim).copy_from_slice(row(self.level, receiver, dim));
        }
        for &receiver in &listening {
            rows(next, receiver, dim).fill(0.0);
        }
        let (receiving, sending) = (self.gathered(&listening), self.gathered(&speaking));
        let ends = Ends { receivers: &receiving, senders: &sending, dim, edges: &edges };
        let heads: Vec<HeadTape> =
            (0..config.heads).into_par_iter().map(|head| self.head_forward(head, &listening, ends)).collect();
        // Heads are added in their order, whichever thread made them.
        let share = 1.0 / config.heads as f32;
        for head in &heads {
            for (r, &receiver) in listening.iter().enumerate() {
                let new = rows(next, receiver, dim);
                add_scaled(new, share * head.gates[r].own, &receiving[r * dim..][..dim]);
                add_scaled(new, share * head.gates[r].neighbours, &head.messages[r * dim..][..dim]);
            }
        }
        StepTape { listening, speaking, edges, heads }
    }

    fn head_forward(&self, head: usize, listening: &[u32], ends: Ends<'_>) -> HeadTape {
        let Self { config, dim, .. } = *self;
        let (attention_params, gate_params) = self.head(head);
        let attention = Weights::new(config, ends, attention_params);
        let mut messages = vec![0.0; ends.receivers.len()];
        let mut gates = Vec::with_capacity(listening.len());
        for (r, &receiver) in listening.iter().enumerate() {
            let message = &mut messages[r * dim..][..dim];
            for edge in ends.edges.of(r) {
                let sender = ends.edges.sender[edge] * dim;
                add_scaled(message, attention.weight[edge], &ends.senders[sender..][..dim]);
            }
            let own = &ends.receivers[r * dim..][..dim];
            let heard = Messages { own, neighbours: message, first: row(self.first, receiver, dim) };
            gates.push(GateTape::new(config, heard, gate_params));
        }
        HeadTape { attention, messages, gates }
    }

    /// The gradients for a gradient `grads` of the step's result, added to those of the last step's prototypes, of the
    /// first prototypes and of the parameters.
    pub(super) fn backward(
        self,
        tape: &StepTape,
        grads: &[f32],
        [level_grads, first_grads]: [&mut [f32]; 2],
        param_grads: &mut [Vec<f32>],
    ) {
        let Self { config, dim, .. } = self;
        for &receiver in self.receivers {
            if tape.listening.binary_search(&receiver).is_err() {
                add_scaled(rows(level_grads, receiver, dim), 1.0, row(grads, receiver, dim));
            }
        }
        let (receiving, sending) = (self.gathered(&tape.listening), self.gathered(&tape.speaking));
        let ends = Ends { receivers: &receiving, senders: &sending, dim, edges: &tape.edges };
        let (each, mut rest) = (self.params.len() / config.heads, param_grads);
        let parts: Vec<&mut [Vec<f32>]> =
            (0..config.heads).map(|_| rest.split_off_mut(..each).unwrap_or_default()).collect();
        let of_heads: Vec<HeadGrads> = parts
            .into_par_iter()
            .zip(&tape.heads)
            .enumerate()
            .map(|(head, (param_grads, made))| self.head_backward(head, tape, made, ends, grads, param_grads))
            .collect();
        // Heads are added in their order, whichever thread made them.
        for head in &of_heads {
            add_rows(level_grads, &tape.listening, &head.receiving, dim);
            add_rows(level_grads, &tape.speaking, &head.sending, dim);
            add_rows(first_grads, &tape.listening, &head.first, dim);
        }
    }

    fn head_backward(
        &self,
        head: usize,
        tape: &StepTape,
        made: &HeadTape,
        ends: Ends<'_>,
        grads: &[f32],
        param_grads: &mut [Vec<f32>],
    ) -> HeadGrads {
        let Self { config, dim, .. } = *self;
        let (attention_params, gate_params) = self.head(head);
        let (attention_grads, gate_grads) = param_grads.split_at_mut(attention_params.len());
        let mut receiving = vec![0.0; ends.receivers.len()];
        let mut sending = vec![0.0; ends.senders.len()];
        let mut first = vec![0.0; ends.receivers.len()];
        let mut message_grad = vec![0.0; dim];
        let mut weight_grads = vec![0.0; tape.edges.sender.len()];
        let share = 1.0 / config.heads as f32;
        for (r, &receiver) in tape.listening.iter().enumerate() {
            let here = r * dim..(r + 1) * dim;
            let (own, message) = (&ends.receivers[here.clone()], &made.messages[here.clone()]);
            let (gate, grad) = (&made.gates[r], row(grads, receiver, dim));
            let own_grad = &mut receiving[here.clone()];
            add_scaled(own_grad, share * gate.own, grad);
            message_grad.fill(0.0);
            add_scaled(&mut message_grad, share * gate.neighbours, grad);
            gate.backward(
                config,
                [share * dot(grad, own), share * dot(grad, message)],
                Messages { own, neighbours: message, first: row(self.first, receiver, dim) },
                &mut MessageGrads { own: own_grad, neighbours: &mut message_grad, first: &mut first[here] },
                gate_params,
                gate_grads,
            );
            for edge in tape.edges.of(r) {
                let sender = tape.edges.sender[edge] * dim;
                weight_grads[edge] = dot(&message_grad, &ends.senders[sender..][..dim]);
                add_scaled(&mut sending[sender..][..dim], made.attention.weight[edge], &message_grad);
            }
        }
        let end_grads = [&mut receiving[..], &mut sending[..]];
        made.attention.backward(config, ends, attention_params, weight_grads, end_grads, attention_grads);
        HeadGrads { receiving, sending, first }
    }

    /// The parameters of a head: those of its attention and those of its gate.
    fn head(&self, head: usize) -> (&'a [&'a [f32]], &'a [&'a [f32]]) {
        let params = &self.params[self.head_range(head)];
        params.split_at(params.len() - gate::parameters(self.config, self.dim).len())
    }

    fn head_range(&self, head: usize) -> std::ops::Range<usize> {
        let each = self.params.len() / self.config.heads;
        head * each..(head + 1) * each
    }

    /// The prototypes of `nodes`, one after the other.
    fn gathered(&self, nodes: &[u32]) -> Vec<f32> {
        nodes.iter().flat_map(|&node| row(self.level, node, self.dim)).copied().collect()
    }

    /// Receivers with senders, the nodes that send to them (both ascending), and the edges between the two.
    fn local_edges(&self) -> (Vec<u32>, Vec<u32>, LocalEdges) {
        let heard = |receiver: &&u32| !self.senders.to(**receiver).is_empty();
        let listening: Vec<u32> = self.receivers.iter().filter(heard).copied().collect();
        let mut speaking: Vec<u32> =
            listening.iter().flat_map(|&receiver| self.senders.to(receiver)).copied().collect();
        speaking.sort_unstable();
        speaking.dedup();
        let mut edges = LocalEdges { offsets: vec![0], sender: Vec::new() };
        for &receiver in &listening {
            for sender in self.senders.to(receiver) {
                // invariant: every sender of a listening node was collected above.
                edges.sender.push(speaking.binary_search(sender).unwrap());
            }
            edges.offsets.push(edges.sender.len());
        }
        (listening, speaking, edges)
    }
}

impl StepTape {
    /// Who shaped whom, averaged over the heads.
    pub(super) fn influences(&self) -> Vec<Influence> {
        let share = 1.0 / self.heads.len() as f32;
        let of = |r: usize| {
            let mut influence = Influence { receiver: self.listening[r], own: 0.0, senders: Vec::new() };
            let range = self.edges.of(r);
            influence.senders =
                self.edges.sender[range.clone()].iter().map(|&s| (self.speaking[s], 0.0)).collect();
            for head in &self.heads {
                influence.own += share * head.gates[r].own;
                for ((_, weight), edge) in influence.senders.iter_mut().zip(range.clone()) {
                    *weight += share * head.gates[r].neighbours * head.attention.weight[edge];
                }
            }
            influence
        };
        (0..self.listening.len()).map(of).collect()
    }
}

fn row(matrix: &[f32], node: u32, dim: usize) -> &[f32] {
    &matrix[node as usize * dim..][..dim]
}

fn rows(matrix: &mut [f32], node: u32, dim: usize) -> &mut [f32] {
    &mut matrix[node as usize * dim..][..dim]
}

/// Adds row i of `gathered` to the row of `nodes[i]`.
fn add_rows(matrix: &mut [f32], nodes: &[u32], gathered: &[f32], dim: usize) {
    for (&node, values) in nodes.iter().zip(gathered.chunks_exact(dim)) {
        add_scaled(rows(matrix, node, dim), 1.0, values);
    }
}
