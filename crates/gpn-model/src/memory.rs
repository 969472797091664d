//! Prototypes: the mean embeddings of classes, and the arithmetic that all methods share.

use crate::neighbourhood::Neighbourhood;

/// Prototypes of all training classes, `[classes, dim]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// Length of a prototype.
    pub dim: usize,
    prototypes: Vec<f32>,
}

impl Memory {
    /// A memory of these prototypes, one after the other, each of length `dim`.
    pub fn new(dim: usize, prototypes: Vec<f32>) -> Self {
        Self { dim, prototypes }
    }

    /// All prototypes, one after the other.
    pub fn prototypes(&self) -> &[f32] {
        &self.prototypes
    }

    /// The prototype of a class.
    pub fn of(&self, class: u32) -> &[f32] {
        &self.prototypes[class as usize * self.dim..][..self.dim]
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.prototypes.len().checked_div(self.dim).unwrap_or(0)
    }

    /// The prototypes of all nodes: the given ones of the targets, and the memory's of the others.
    pub fn with_targets(&self, neighbourhood: &Neighbourhood, targets: &[f32]) -> Vec<f32> {
        let mut prototypes = targets.to_vec();
        for &class in &neighbourhood.classes[targets.len() / self.dim.max(1)..] {
            prototypes.extend(self.of(class));
        }
        prototypes
    }
}

/// The mean of each `shot` rows: `[way * shot, dim]` to `[way, dim]`.
pub fn class_means(support: &[f32], shot: usize, dim: usize) -> Vec<f32> {
    let mut means = Vec::with_capacity(support.len() / shot);
    for class in support.chunks_exact(shot * dim) {
        for feature in 0..dim {
            let sum: f64 = class.iter().skip(feature).step_by(dim).map(|&value| f64::from(value)).sum();
            means.push((sum / shot as f64) as f32);
        }
    }
    means
}

/// `lambda * first + (1 - lambda) * last`.
pub fn mix(lambda: f32, first: &[f32], last: &[f32]) -> Vec<f32> {
    first.iter().zip(last).map(|(first, last)| lambda * first + (1.0 - lambda) * last).collect()
}

/// Share of rows of `logits: [n, classes]` whose highest entry is the label; of equal ones the first counts.
pub fn accuracy(logits: &[f32], labels: &[usize]) -> f32 {
    let classes = (logits.len() / labels.len().max(1)).max(1);
    let hits =
        logits.chunks_exact(classes).zip(labels).filter(|(row, label)| highest(row) == **label).count();
    hits as f32 / labels.len().max(1) as f32
}

/// The index of the highest value; of equal ones the first.
pub(crate) fn highest(row: &[f32]) -> usize {
    let mut best = 0;
    for (index, value) in row.iter().enumerate() {
        if *value > row[best] {
            best = index;
        }
    }
    best
}
