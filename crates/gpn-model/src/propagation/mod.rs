//! Propagation of prototypes over a task's class graph, with its gradient.
//!
//! In: the prototype of every class of the graph and the weights of the attention. Out: new prototypes of the
//! target classes. Works on edges, and only on nodes from which a message can still reach a target, so the cost
//! grows with the edges near the targets and not with the graph.

mod attention;
mod config;
mod gate;
mod graph;
mod step;

pub use config::{Attention, Direction, Gate, Order, PropagationConfig};
pub use graph::{PropagationGraph, Senders};

use step::{Step, StepTape};

use crate::tensors::TensorInfo;

/// The propagation network: settings and the shape of its parameters, which the caller holds.
#[derive(Clone, Debug)]
pub struct Propagation {
    config: PropagationConfig,
    dim: usize,
    directions: Vec<Direction>,
    parameters: Vec<TensorInfo>,
}

impl PropagationConfig {
    /// Number of values of all parameters for prototypes of length `dim`; `None` where that overflows.
    pub fn value_count(&self, dim: usize) -> Option<usize> {
        let mut of_head = 0_usize;
        for (_, shape) in step::head_parameters(self, dim) {
            let values = shape.iter().try_fold(1_usize, |values, &length| values.checked_mul(length))?;
            of_head = of_head.checked_add(values)?;
        }
        let steps = if self.order == Order::ForwardThenBackward { 2 } else { 1 };
        of_head.checked_mul(self.heads)?.checked_mul(self.steps)?.checked_mul(steps)
    }
}

/// What a forward pass keeps for its gradient.
pub struct Tape {
    /// Prototypes before each step and after the last, `[nodes, dim]`; rows that no longer matter are not filled.
    levels: Vec<Vec<f32>>,
    steps: Vec<StepTape>,
    active: Vec<Vec<u32>>,
}

/// Who shaped a prototype in one step: for each receiver, its gate and the weight of every sender, averaged over the heads.
#[derive(Clone, Debug, PartialEq)]
pub struct Influence {
    /// The class that receives.
    pub receiver: u32,
    /// Share of its own last prototype in its new one.
    pub own: f32,
    /// `(sender, share in the new prototype)`: attention times gate.
    pub senders: Vec<(u32, f32)>,
}

impl Propagation {
    /// A network for prototypes of length `dim`.
    pub fn new(config: PropagationConfig, dim: usize) -> Self {
        let directions = config.directions();
        let mut parameters = Vec::new();
        for step in 0..directions.len() {
            for head in 0..config.heads {
                for (name, shape) in step::head_parameters(&config, dim) {
                    let name = format!("multihead_attention_{step}hop_{head}head.{name}");
                    parameters.push(TensorInfo { name, shape });
                }
            }
        }
        Self { config, dim, directions, parameters }
    }

    /// The settings.
    pub fn config(&self) -> &PropagationConfig {
        &self.config
    }

    /// Names (as in the authors' code) and shapes of the parameters, in the order in which they are given.
    pub fn parameters(&self) -> &[TensorInfo] {
        &self.parameters
    }

    /// Propagates. `prototypes` is `[nodes, dim]`; the result, `[targets, dim]`, is the last level of the tape.
    pub fn forward(&self, params: &[&[f32]], graph: &PropagationGraph, prototypes: &[f32]) -> Tape {
        let active = graph.active(&self.directions);
        let mut levels = vec![prototypes.to_vec()];
        let mut steps = Vec::with_capacity(self.directions.len());
        for number in 0..self.directions.len() {
            let mut next = vec![0.0; prototypes.len()];
            let step = self.step(number, params, graph, &active, &levels);
            steps.push(step.forward(&mut next));
            levels.push(next);
        }
        Tape { levels, steps, active }
    }

    /// The gradients of the parameters, added to `param_grads`, and of `prototypes`, returned as `[nodes, dim]`, for a
    /// gradient `[targets, dim]` of the result.
    pub fn backward(
        &self,
        params: &[&[f32]],
        graph: &PropagationGraph,
        tape: &Tape,
        target_grads: &[f32],
        param_grads: &mut [Vec<f32>],
    ) -> Vec<f32> {
        let len = graph.nodes() * self.dim;
        let mut first_grads = vec![0.0; len];
        let mut grads = vec![0.0; len];
        grads[..target_grads.len()].copy_from_slice(target_grads);
        for number in (0..self.directions.len()).rev() {
            let mut before = vec![0.0; len];
            let step = self.step(number, params, graph, &tape.active, &tape.levels);
            let param_grads = &mut param_grads[self.step_range(number)];
            step.backward(&tape.steps[number], &grads, [&mut before, &mut first_grads], param_grads);
            grads = before;
        }
        for (grad, first) in grads.iter_mut().zip(first_grads) {
            *grad += first;
        }
        grads
    }

    fn step_range(&self, step: usize) -> std::ops::Range<usize> {
        let each = self.parameters.len() / self.directions.len().max(1);
        step * each..(step + 1) * each
    }

    fn step<'a>(
        &'a self,
        number: usize,
        params: &'a [&'a [f32]],
        graph: &'a PropagationGraph,
        active: &'a [Vec<u32>],
        levels: &'a [Vec<f32>],
    ) -> Step<'a> {
        Step {
            config: &self.config,
            dim: self.dim,
            params: &params[self.step_range(number)],
            senders: graph.senders(self.directions[number]),
            receivers: &active[number + 1],
            level: &levels[number],
            first: &levels[0],
        }
    }
}

impl Tape {
    /// The new prototypes of the targets, `[targets, dim]`.
    pub fn result(&self, graph: &PropagationGraph) -> &[f32] {
        let last = &self.levels[self.levels.len() - 1];
        &last[..last.len() / graph.nodes().max(1) * graph.targets()]
    }

    /// Who shaped whom in each step.
    pub fn influences(&self) -> Vec<Vec<Influence>> {
        self.steps.iter().map(StepTape::influences).collect()
    }
}

#[cfg(test)]
mod tests;
