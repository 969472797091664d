//! Settings of the course of training.

use serde::{Deserialize, Serialize};

/// The share of auxiliary episodes in a run: the mean of `0.9^(20 x)` over x from 0 to 1.
pub(crate) const AUXILIARY_SHARE: f64 = 0.4169;

/// Settings of the course of training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScheduleConfig {
    /// Train on the auxiliary task with probability `0.9^(20 t / episodes)`. Default true.
    pub auxiliary: bool,
    /// Weight of the prototype before propagation falls from 1 to 0 over the run; otherwise it is always `lambda`. Default true.
    pub anneal_lambda: bool,
    /// Weight of the prototype before propagation where it is not annealed. Default 0.
    pub lambda: f32,
    /// Episodes between two changes of lambda. Default 1.
    pub lambda_every: u64,
    /// The learning rate's fall counts few-shot episodes only, beginning with 0 at episode `rate.from`: the rate falls
    /// with every `rate.every` of them. Default false.
    pub count_few_shot_only: bool,
}

impl Default for ScheduleConfig {
    fn default() -> Self {
        Self {
            auxiliary: true,
            anneal_lambda: true,
            lambda: 0.0,
            lambda_every: 1,
            count_few_shot_only: false,
        }
    }
}
