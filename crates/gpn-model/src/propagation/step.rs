//! One step of propagation over all heads, forward and backward.

use super::Influence;
use super::attention::{self, Ends, LocalEdges, Weights};
use super::config::{Gate, PropagationConfig};
use super::gate::{MessageGrads, Messages, Opening};
use super::graph::Senders;
use crate::vector::{add_scaled, dot};

/// Names and shapes of the parameters of one head.
pub(super) fn head_parameters(config: &PropagationConfig, dim: usize) -> Vec<(&'static str, Vec<usize>)> {
    let mut parameters = attention::parameters(config, dim);
    if config.gate == Gate::Learned {
        parameters.push(("gate_linear_q.weight", vec![config.hidden, dim]));
        parameters.push(("gate_linear_k.weight", vec![config.hidden, dim]));
    }
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
    gates: Vec<Opening>,
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
        let share = 1.0 / config.heads as f32;
        let heads = (0..config.heads)
            .map(|head| {
                let (attention_params, gate_params) = self.head(head);
                let attention = Weights::new(config, ends, attention_params);
                let mut messages = vec![0.0; receiving.len()];
                let mut gates = Vec::with_capacity(listening.len());
                for (r, &receiver) in listening.iter().enumerate() {
                    let message = &mut messages[r * dim..][..dim];
                    for edge in edges.of(r) {
                        add_scaled(
                            message,
                            attention.weight[edge],
                            &sending[edges.sender[edge] * dim..][..dim],
                        );
                    }
                    let own = &receiving[r * dim..][..dim];
                    let heard = Messages { own, neighbours: message, first: row(self.first, receiver, dim) };
                    let gate = Opening::new(config, heard, gate_params);
                    let new = rows(next, receiver, dim);
                    add_scaled(new, share * gate.own, own);
                    add_scaled(new, share * gate.neighbours, message);
                    gates.push(gate);
                }
                HeadTape { attention, messages, gates }
            })
            .collect();
        StepTape { listening, speaking, edges, heads }
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
        let mut receiving_grads = vec![0.0; receiving.len()];
        let mut sending_grads = vec![0.0; sending.len()];
        let mut message_grad = vec![0.0; dim];
        let share = 1.0 / config.heads as f32;
        for (head, made) in tape.heads.iter().enumerate() {
            let (attention_params, gate_params) = self.head(head);
            let (attention_grads, gate_grads) =
                param_grads[self.head_range(head)].split_at_mut(attention_params.len());
            let mut weight_grads = vec![0.0; tape.edges.sender.len()];
            for (r, &receiver) in tape.listening.iter().enumerate() {
                let (own, message) = (&receiving[r * dim..][..dim], &made.messages[r * dim..][..dim]);
                let (gate, grad) = (&made.gates[r], row(grads, receiver, dim));
                let own_grad = &mut receiving_grads[r * dim..][..dim];
                add_scaled(own_grad, share * gate.own, grad);
                message_grad.fill(0.0);
                add_scaled(&mut message_grad, share * gate.neighbours, grad);
                gate.backward(
                    config,
                    [share * dot(grad, own), share * dot(grad, message)],
                    Messages { own, neighbours: message, first: row(self.first, receiver, dim) },
                    &mut MessageGrads {
                        own: own_grad,
                        neighbours: &mut message_grad,
                        first: rows(first_grads, receiver, dim),
                    },
                    gate_params,
                    gate_grads,
                );
                for edge in tape.edges.of(r) {
                    let sender = tape.edges.sender[edge] * dim;
                    weight_grads[edge] = dot(&message_grad, &sending[sender..][..dim]);
                    add_scaled(
                        &mut sending_grads[sender..][..dim],
                        made.attention.weight[edge],
                        &message_grad,
                    );
                }
            }
            let end_grads = [&mut receiving_grads[..], &mut sending_grads[..]];
            made.attention.backward(config, ends, attention_params, weight_grads, end_grads, attention_grads);
        }
        for (nodes, gathered) in [(&tape.listening, &receiving_grads), (&tape.speaking, &sending_grads)] {
            for (&node, grad) in nodes.iter().zip(gathered.chunks_exact(dim)) {
                add_scaled(rows(level_grads, node, dim), 1.0, grad);
            }
        }
    }

    /// The parameters of a head: those of its attention and those of its gate.
    fn head(&self, head: usize) -> (&'a [&'a [f32]], &'a [&'a [f32]]) {
        let of_gate = if self.config.gate == Gate::Learned { 2 } else { 0 };
        let params = &self.params[self.head_range(head)];
        params.split_at(params.len() - of_gate)
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
