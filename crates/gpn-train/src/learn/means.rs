//! Means of loss and accuracy between two reports; part of a checkpoint, so that a resumed run reports the same.

use serde::{Deserialize, Serialize};

use super::network::StepResult;

/// Means over the episodes since the last report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Means {
    /// Of few-shot episodes.
    pub few_shot: Mean,
    /// Of auxiliary batches.
    pub auxiliary: Mean,
}

/// Sums of loss and accuracy, and of how many steps.
///
/// Single precision comes back from JSON bit for bit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Mean {
    count: u32,
    loss: f32,
    accuracy: f32,
}

impl Mean {
    /// Counts a step.
    pub fn add(&mut self, result: &StepResult) {
        self.count += 1;
        self.loss += result.loss;
        self.accuracy += result.accuracy;
    }

    /// The mean; `None` where there was no step.
    pub fn mean(&self) -> Option<StepResult> {
        let count = self.count as f32;
        (self.count > 0).then(|| StepResult { loss: self.loss / count, accuracy: self.accuracy / count })
    }
}
