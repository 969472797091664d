//! `metrics.jsonl`: one line for each report of a run.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::trainer::Progress;
use crate::error::TrainError;

pub(super) const METRICS: &str = "metrics.jsonl";

/// The metrics of a run so far. A line cut short by a kill ends them.
pub fn read_metrics(folder: &Path) -> Result<Vec<MetricsLine>, TrainError> {
    let path = folder.join(METRICS);
    let text =
        std::fs::read_to_string(&path).map_err(|source| TrainError::Io { action: "read", path, source })?;
    Ok(text.lines().map_while(|line| serde_json::from_str(line).ok()).collect())
}

/// One line of `metrics.jsonl`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MetricsLine {
    /// Episodes done.
    pub episode: u64,
    /// Mean loss of few-shot tasks since the line before.
    pub loss: Option<f32>,
    /// Share of their queries answered correctly.
    pub accuracy: Option<f32>,
    /// Mean loss of auxiliary batches.
    pub auxiliary_loss: Option<f32>,
    /// Share of their samples classified correctly.
    pub auxiliary_accuracy: Option<f32>,
    /// Accuracy on the validation tasks in percent, before propagation.
    pub validation_base: Option<f64>,
    /// The same after propagation.
    pub validation: Option<f64>,
    /// Weight of the prototype before propagation.
    pub lambda: f32,
    /// Learning rate.
    pub rate: f64,
    /// Seconds of training so far.
    pub seconds: f64,
    /// Of these, waiting for batches.
    pub seconds_data: f64,
    /// In the backbone.
    pub seconds_backbone: f64,
    /// In the method.
    pub seconds_propagation: f64,
    /// In refreshing the memory.
    pub seconds_memory: f64,
}

impl MetricsLine {
    pub(super) fn new(progress: &Progress) -> Self {
        let time = progress.time;
        let (tasks, auxiliary) = (progress.few_shot.as_ref(), progress.auxiliary.as_ref());
        Self {
            episode: progress.episode,
            loss: tasks.map(|result| result.loss),
            accuracy: tasks.map(|result| result.accuracy),
            auxiliary_loss: auxiliary.map(|result| result.loss),
            auxiliary_accuracy: auxiliary.map(|result| result.accuracy),
            validation_base: progress.validation.as_ref().map(|result| result.base().mean),
            validation: progress.validation.as_ref().map(|result| result.method().mean),
            lambda: progress.lambda,
            rate: progress.rate,
            seconds: time.total().as_secs_f64(),
            seconds_data: time.data.as_secs_f64(),
            seconds_backbone: time.steps.backbone.as_secs_f64(),
            seconds_propagation: time.steps.method.as_secs_f64(),
            seconds_memory: time.memory.as_secs_f64(),
        }
    }

    /// The numbers for TensorBoard.
    pub(super) fn scalars(&self) -> Vec<(&'static str, f64)> {
        let given = [
            ("task/loss", self.loss.map(f64::from)),
            ("task/accuracy", self.accuracy.map(f64::from)),
            ("auxiliary/loss", self.auxiliary_loss.map(f64::from)),
            ("auxiliary/accuracy", self.auxiliary_accuracy.map(f64::from)),
            ("validation/before_propagation", self.validation_base),
            ("validation/after_propagation", self.validation),
            ("schedule/lambda", Some(f64::from(self.lambda))),
            ("schedule/rate", Some(self.rate)),
        ];
        given.into_iter().filter_map(|(tag, value)| Some((tag, value?))).collect()
    }
}
