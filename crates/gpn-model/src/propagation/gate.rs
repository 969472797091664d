//! The gate: how much of the neighbours' message a class accepts, and how much it keeps of itself.

use super::config::{Gate, PropagationConfig};
use crate::vector::{Cosine, add_scaled, dot};

/// Norms below this count as this in the cosines with the first prototype.
const FLOOR: f32 = 1e-8;
/// The same for cosines of learned projections.
const LEARNED_FLOOR: f32 = 1e-4;

/// The names and shapes of a head's gate parameters.
pub(super) fn parameters(config: &PropagationConfig, dim: usize) -> Vec<(&'static str, Vec<usize>)> {
    match config.gate {
        Gate::Learned => {
            let shape = || vec![config.hidden, dim];
            vec![("gate_linear_q.weight", shape()), ("gate_linear_k.weight", shape())]
        }
        Gate::Softmax | Gate::Ratio | Gate::Sigmoid | Gate::Fixed | Gate::Open => Vec::new(),
    }
}

/// The messages between which the gate of one class and head decides.
#[derive(Clone, Copy)]
pub(super) struct Messages<'a> {
    /// The class's prototype of the last step, `[dim]`.
    pub(super) own: &'a [f32],
    /// The message from its neighbours, `[dim]`.
    pub(super) neighbours: &'a [f32],
    /// Its prototype before the first step, `[dim]`.
    pub(super) first: &'a [f32],
}

/// The gradients with respect to [`Messages`].
pub(super) struct MessageGrads<'a> {
    pub(super) own: &'a mut [f32],
    pub(super) neighbours: &'a mut [f32],
    pub(super) first: &'a mut [f32],
}

/// The shares that a gate gave, and what its gradient needs.
pub(super) struct GateTape {
    /// Share of the class's own prototype.
    pub(super) own: f32,
    /// Share of the neighbours' message.
    pub(super) neighbours: f32,
    cosines: [Cosine; 2],
    projections: Option<Projections>,
}

/// The learned gate's projections, `[hidden]` each.
struct Projections {
    own: Vec<f32>,
    neighbours: Vec<f32>,
    first: Vec<f32>,
}

impl GateTape {
    /// Opens the gate. `learned` are the projections `[query, key]`, `[hidden, dim]` each, of the learned gate.
    pub(super) fn new(config: &PropagationConfig, messages: Messages<'_>, learned: &[&[f32]]) -> Self {
        let mut projections = None;
        let cosines = match config.gate {
            Gate::Fixed | Gate::Open => Default::default(),
            Gate::Learned => {
                let made = Projections {
                    own: project(learned[0], messages.own),
                    neighbours: project(learned[0], messages.neighbours),
                    first: project(learned[1], messages.first),
                };
                let cosines =
                    [&made.own, &made.neighbours].map(|p| Cosine::of(p, &made.first, LEARNED_FLOOR));
                projections = Some(made);
                cosines
            }
            Gate::Softmax | Gate::Ratio | Gate::Sigmoid => {
                [messages.own, messages.neighbours].map(|message| Cosine::of(message, messages.first, FLOOR))
            }
        };
        let [own, neighbours] = match config.gate {
            Gate::Fixed => [config.keep, 1.0 - config.keep],
            Gate::Open => [0.0, 1.0],
            Gate::Softmax => softmax(cosines.map(|cosine| config.gate_temperature * cosine.value)),
            Gate::Learned => softmax(cosines.map(|cosine| cosine.value)),
            Gate::Ratio => shares(cosines),
            Gate::Sigmoid => softmax(shares(cosines).map(sigmoid)),
        };
        Self { own, neighbours, cosines, projections }
    }

    /// Adds the gradients of the messages, and of the learned projections to `learned_grads`, for gradients of the
    /// two shares `[own, neighbours]`.
    pub(super) fn backward(
        &self,
        config: &PropagationConfig,
        share_grads: [f32; 2],
        messages: Messages<'_>,
        grads: &mut MessageGrads<'_>,
        learned: &[&[f32]],
        learned_grads: &mut [Vec<f32>],
    ) {
        let opened = [self.own, self.neighbours];
        let cosine_grads = match config.gate {
            Gate::Fixed | Gate::Open => return,
            Gate::Softmax => softmax_backward(opened, share_grads).map(|g| config.gate_temperature * g),
            Gate::Learned => softmax_backward(opened, share_grads),
            Gate::Ratio => shares_backward(self.cosines, share_grads),
            Gate::Sigmoid => {
                let sigmoid_grads = softmax_backward(opened, share_grads);
                let given = shares(self.cosines).map(sigmoid);
                let by_share = [0, 1].map(|i| sigmoid_grads[i] * given[i] * (1.0 - given[i]));
                shares_backward(self.cosines, by_share)
            }
        };
        let [own, neighbours] = self.cosines;
        let Some(made) = &self.projections else {
            own.backward_first(cosine_grads[0], messages.own, messages.first, grads.own);
            own.backward_second(cosine_grads[0], messages.own, messages.first, grads.first);
            neighbours.backward_first(cosine_grads[1], messages.neighbours, messages.first, grads.neighbours);
            neighbours.backward_second(cosine_grads[1], messages.neighbours, messages.first, grads.first);
            return;
        };
        let mut grad = vec![0.0; made.first.len()];
        own.backward_first(cosine_grads[0], &made.own, &made.first, &mut grad);
        project_backward(learned[0], messages.own, &grad, &mut learned_grads[0], grads.own);
        grad.fill(0.0);
        neighbours.backward_first(cosine_grads[1], &made.neighbours, &made.first, &mut grad);
        project_backward(learned[0], messages.neighbours, &grad, &mut learned_grads[0], grads.neighbours);
        grad.fill(0.0);
        own.backward_second(cosine_grads[0], &made.own, &made.first, &mut grad);
        neighbours.backward_second(cosine_grads[1], &made.neighbours, &made.first, &mut grad);
        project_backward(learned[1], messages.first, &grad, &mut learned_grads[1], grads.first);
    }
}

fn softmax([a, b]: [f32; 2]) -> [f32; 2] {
    let highest = a.max(b);
    let exponentials = [a - highest, b - highest].map(libm::expf);
    exponentials.map(|e| e / (exponentials[0] + exponentials[1]))
}

fn softmax_backward(outputs: [f32; 2], grads: [f32; 2]) -> [f32; 2] {
    let mean = outputs[0] * grads[0] + outputs[1] * grads[1];
    [0, 1].map(|i| outputs[i] * (grads[i] - mean))
}

fn shares([own, neighbours]: [Cosine; 2]) -> [f32; 2] {
    let sum = own.value + neighbours.value;
    [own.value / sum, neighbours.value / sum]
}

fn shares_backward([own, neighbours]: [Cosine; 2], grads: [f32; 2]) -> [f32; 2] {
    let sum = own.value + neighbours.value;
    let difference = (grads[0] - grads[1]) / (sum * sum);
    [neighbours.value * difference, -own.value * difference]
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + libm::expf(-x))
}

/// `weight x`, weight `[hidden, dim]`.
fn project(weight: &[f32], x: &[f32]) -> Vec<f32> {
    weight.chunks_exact(x.len()).map(|row| dot(row, x)).collect()
}

fn project_backward(weight: &[f32], x: &[f32], grad: &[f32], weight_grad: &mut [f32], x_grad: &mut [f32]) {
    for ((row, row_grad), &g) in
        weight.chunks_exact(x.len()).zip(weight_grad.chunks_exact_mut(x.len())).zip(grad)
    {
        add_scaled(row_grad, g, x);
        add_scaled(x_grad, g, row);
    }
}
