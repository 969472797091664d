//! Every choice of the ablation table as a setting.

use serde::{Deserialize, Serialize};

/// How strongly a class listens to each neighbour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attention {
    /// Cosine of learned projections, softmax over the neighbours.
    #[default]
    Cosine,
    /// Cosine of learned projections as the weight itself, not normalised: the paper's formula.
    CosineRaw,
    /// `w . tanh(W1 p + b1 + W2 q) + b`, softmax over the neighbours.
    Additive,
    /// The same without tanh, as in the authors' code: the receiver's term cancels in the softmax.
    AdditiveLinear,
    /// All neighbours alike; nothing is learned.
    Uniform,
}

/// How much of the neighbours' message a class accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// Softmax of the cosines of both messages with the class's first prototype.
    #[default]
    Softmax,
    /// The two cosines, divided by their sum.
    Ratio,
    /// Softmax of the sigmoids of those shares.
    Sigmoid,
    /// Softmax of the cosines of learned projections.
    Learned,
    /// A fixed share of each.
    Fixed,
    /// The neighbours' message alone.
    Open,
}

/// Along which edges the steps propagate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// From parents and children at once, every step (N -> C).
    #[default]
    Neighbours,
    /// From parents only (F -> C).
    Parents,
    /// From children only (C -> C).
    Children,
    /// All steps from parents, then as many from children (B -> P).
    ForwardThenBackward,
    /// From parents and from children in turn (M -> P).
    Alternating,
}

/// The edges of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// A class receives from its parents and its children.
    Both,
    /// A class receives from its parents.
    FromParents,
    /// A class receives from its children.
    FromChildren,
}

/// Settings of the propagation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PropagationConfig {
    /// Propagation steps T; [`Order::ForwardThenBackward`] takes 2T. Default 2.
    pub steps: usize,
    /// Attention heads, averaged. Default 5.
    pub heads: usize,
    /// Length of the projections that attention compares. Default 128.
    pub hidden: usize,
    /// How neighbours are weighed. Default `cosine`.
    pub attention: Attention,
    /// Factor on attention scores before the softmax. Default 1.
    pub attention_temperature: f32,
    /// How much of the message is accepted. Default `softmax`.
    pub gate: Gate,
    /// Factor on the cosines of the softmax gate: gamma. Default 1.
    pub gate_temperature: f32,
    /// Share of its own prototype that a class keeps under the fixed gate. Default 0.5.
    pub keep: f32,
    /// Along which edges steps propagate. Default `neighbours`.
    pub order: Order,
    /// Standard deviation of the initial projections. Default 0.001.
    pub init_deviation: f32,
}

impl Default for PropagationConfig {
    fn default() -> Self {
        Self {
            steps: 2,
            heads: 5,
            hidden: 128,
            attention: Attention::default(),
            attention_temperature: 1.0,
            gate: Gate::default(),
            gate_temperature: 1.0,
            keep: 0.5,
            order: Order::default(),
            init_deviation: 0.001,
        }
    }
}

impl PropagationConfig {
    /// The edges that each step uses, first step first.
    pub fn directions(&self) -> Vec<Direction> {
        let steps = 0..self.steps;
        match self.order {
            Order::Neighbours => steps.map(|_| Direction::Both).collect(),
            Order::Parents => steps.map(|_| Direction::FromParents).collect(),
            Order::Children => steps.map(|_| Direction::FromChildren).collect(),
            Order::ForwardThenBackward => {
                let forward = steps.clone().map(|_| Direction::FromParents);
                forward.chain(steps.map(|_| Direction::FromChildren)).collect()
            }
            Order::Alternating => steps
                .map(|step| if step % 2 == 0 { Direction::FromParents } else { Direction::FromChildren })
                .collect(),
        }
    }
}
