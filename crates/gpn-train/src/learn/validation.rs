//! Validation tasks: how good the network is on samples of training classes that it never trains on.

use gpn_data::benchmark::{Benchmark, DataSet, Part, Split};
use gpn_data::task::{Task, TaskConfig, TaskSampler};
use gpn_model::Memory;
use gpn_model::methods::MethodKind;
use serde::{Deserialize, Serialize};

use crate::distributed::Ranks;
use crate::error::TrainError;
use crate::evaluate::{Embeddings, Estimate, Hierarchy, Trained, accuracies};
use crate::learn::network::Network;
use crate::settings::Config;

/// Validation tasks do not depend on the seed of a run, so that runs can be compared by them.
const SEED: u64 = 0x76_61_6c;

/// The weights of the prototype before propagation that validation tries.
pub const LAMBDAS: [f32; 11] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];

/// Accuracy on the validation tasks for each of [`LAMBDAS`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValidationResult {
    /// One for each weight of the prototype before propagation; the first is all propagation, the last none.
    #[serde(deserialize_with = "one_for_each_lambda")]
    pub by_lambda: Vec<Estimate>,
}

fn one_for_each_lambda<'de, D: serde::Deserializer<'de>>(given: D) -> Result<Vec<Estimate>, D::Error> {
    let estimates = Vec::<Estimate>::deserialize(given)?;
    if estimates.len() == LAMBDAS.len() {
        return Ok(estimates);
    }
    let expected = format!("{} accuracies of validation", LAMBDAS.len());
    Err(serde::de::Error::invalid_length(estimates.len(), &expected.as_str()))
}

impl ValidationResult {
    /// Accuracy of the method: after propagation.
    pub fn method(&self) -> Estimate {
        self.by_lambda[0]
    }

    /// Accuracy before propagation.
    pub fn base(&self) -> Estimate {
        self.by_lambda[LAMBDAS.len() - 1]
    }

    /// Accuracy of a method as it is used: with the best lambda where the method tunes it.
    pub fn reached(&self, method: &MethodKind) -> Estimate {
        if method.tunes_lambda { self.by_lambda[self.best_place()] } else { self.method() }
    }

    /// The weight with the highest accuracy, of equal ones the least.
    pub fn best_lambda(&self) -> f32 {
        LAMBDAS[self.best_place()]
    }

    fn best_place(&self) -> usize {
        let mut best = 0;
        for (place, estimate) in self.by_lambda.iter().enumerate() {
            if estimate.mean > self.by_lambda[best].mean {
                best = place;
            }
        }
        best
    }
}

/// The validation tasks of a run.
pub(crate) struct Validation {
    tasks: Vec<Task>,
    data_set: DataSet,
}

impl Validation {
    /// Tasks over training classes, of their `val` samples. `None` where validation is off, or where there are too few samples for
    /// tasks of this shape with one query per class.
    pub(crate) fn new(config: &Config, benchmark: &Benchmark) -> Result<Option<Self>, TrainError> {
        let pool = benchmark.task_pool(Split::Train, Part::Val);
        let shape = TaskConfig { queries: 1, most_shot: 0, ..config.task.sampler_config() };
        let sampler = match TaskSampler::new(&pool, shape, SEED) {
            Ok(sampler) if config.validation.tasks > 0 => sampler,
            _ => return Ok(None),
        };
        let tasks = (0..config.validation.tasks).map(|index| Ok(sampler.task(index)?));
        let tasks = tasks.collect::<Result<_, TrainError>>()?;
        Ok(Some(Self { tasks, data_set: benchmark.data_set(Split::Train) }))
    }

    /// Evaluates a network on the tasks; their classes are taken as new ones whose place in the graph is known.
    pub(crate) fn run(
        &self,
        network: &Network,
        memory: &Memory,
        nearest: usize,
        benchmark: &Benchmark,
        ranks: Ranks<'_>,
    ) -> Result<ValidationResult, TrainError> {
        let embeddings = Embeddings::of_tasks(&network.embedder, benchmark.store(), &self.tasks, ranks)?;
        let trained = Trained { method: network.method.as_ref(), memory, nearest, texts: &[] };
        let rows =
            accuracies(trained, &self.data_set, &embeddings, &self.tasks, Hierarchy::Known, &LAMBDAS, ranks)?;
        let column = |place: usize| {
            let Estimate { mean, half_width } =
                Estimate::of(&rows.iter().map(|row| row[place]).collect::<Vec<_>>());
            // Four decimals come back from JSON bit for bit, as a resumed run needs them.
            let [mean, half_width] = [mean, half_width].map(|value| (value * 1e4).round() / 1e4);
            Estimate { mean, half_width }
        };
        Ok(ValidationResult { by_lambda: (0..LAMBDAS.len()).map(column).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equal_weights_the_least_is_best() {
        let estimate = |mean| Estimate { mean, half_width: 1.0 };
        let mut result = ValidationResult { by_lambda: vec![estimate(30.0); LAMBDAS.len()] };
        assert!(result.best_lambda().abs() < 1e-6);
        result.by_lambda[4] = estimate(31.0);
        result.by_lambda[6] = estimate(31.0);
        assert!((result.best_lambda() - 0.4).abs() < 1e-6);
        let reached = |method: &str| result.reached(MethodKind::named(method).unwrap()).mean;
        assert!((reached("gpn") - 31.0).abs() < 1e-6 && (reached("protonet") - 30.0).abs() < 1e-6);
    }
}
