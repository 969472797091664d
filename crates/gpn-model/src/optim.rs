//! Adam with L2 weight decay, and the learning rate over time.

use std::collections::BTreeMap;

use gpn_kernels::linear;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::{ModelError, Result};
use crate::tensors::{TensorList, tensor_info};

/// One parameter and the gradient it got in this step.
#[derive(Debug)]
pub struct Update<'a> {
    /// Name, unique over everything one [`Adam`] trains.
    pub name: &'a str,
    /// Shape.
    pub shape: &'a [usize],
    /// Values, changed by the step.
    pub parameter: &'a mut [f32],
    /// Gradient of the loss; it may be changed before the step, as an all-reduce over several machines does.
    pub gradient: &'a mut [f32],
}

/// Settings of [`Adam`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdamConfig {
    /// Decay of the mean of gradients. Default: 0.9.
    pub beta1: f64,
    /// Decay of the mean of squared gradients. Default: 0.999.
    pub beta2: f64,
    /// Added to the root of the mean square. Default: 1e-8.
    pub epsilon: f64,
    /// L2 penalty: this times the parameter is added to its gradient. Default: 1e-5.
    pub weight_decay: f64,
}

impl Default for AdamConfig {
    fn default() -> Self {
        Self { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 1e-5 }
    }
}

/// The Adam optimiser, step for step that of `torch.optim.Adam`.
///
/// Moments and step counts belong to each parameter by its name: one that gets no gradient in a step is not part of
/// the step, and neither decays nor moves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Adam {
    config: AdamConfig,
    moments: BTreeMap<String, Moments>,
}

#[derive(Clone, Debug, PartialEq)]
struct Moments {
    shape: Vec<usize>,
    step: u32,
    mean: Vec<f32>,
    square: Vec<f32>,
}

impl Moments {
    fn new(shape: &[usize], len: usize) -> Self {
        Self { shape: shape.to_vec(), step: 0, mean: vec![0.0; len], square: vec![0.0; len] }
    }
}

/// With as many values one thread is done before another is awake.
const ALONE: usize = 1 << 19;

/// Endings of the names in [`Adam::state`], as in PyTorch's optimiser state.
const STATE: [&str; 3] = [".exp_avg", ".exp_avg_sq", ".step"];

impl Adam {
    /// An optimiser that has taken no step.
    pub fn new(config: AdamConfig) -> Self {
        Self { config, moments: BTreeMap::new() }
    }

    /// Takes one step with all parameters that got a gradient.
    ///
    /// Where a gradient is NaN or infinite nothing is changed, and the error names the tensor and the episode.
    pub fn step(&mut self, updates: &mut [Update<'_>], learning_rate: f64, episode: u64) -> Result<()> {
        for update in &*updates {
            check(update, episode)?;
        }
        let AdamConfig { beta1, beta2, epsilon, weight_decay } = self.config;
        let kernel = linear::Adam { learning_rate, beta1, beta2, epsilon, weight_decay };
        for update in &*updates {
            if !self.moments.contains_key(update.name) {
                let moments = Moments::new(update.shape, update.parameter.len());
                self.moments.insert(update.name.into(), moments);
            }
        }
        let mut by_name: BTreeMap<&str, &mut Update<'_>> =
            updates.iter_mut().map(|update| (update.name, update)).collect();
        let tensors: Vec<(&mut Moments, &mut Update<'_>)> = self
            .moments
            .iter_mut()
            .filter_map(|(name, moments)| Some((moments, by_name.remove(name.as_str())?)))
            .collect();
        for (moments, update) in &tensors {
            if moments.mean.len() != update.parameter.len() {
                return Err(ModelError::WrongLength {
                    what: "parameter of an optimiser step",
                    expected: format!("{} as in the steps before ({})", moments.mean.len(), update.name),
                    got: update.parameter.len(),
                });
            }
        }
        let values: usize = tensors.iter().map(|(_, update)| update.parameter.len()).sum();
        let take = |(moments, update): (&mut Moments, &mut Update<'_>)| {
            moments.step += 1;
            let Moments { step, mean, square, .. } = moments;
            let Update { parameter, gradient, .. } = update;
            if values <= ALONE {
                Ok(kernel.step_alone(*step, parameter, gradient, mean, square)?)
            } else {
                Ok(kernel.step(*step, parameter, gradient, mean, square)?)
            }
        };
        if values <= ALONE {
            return tensors.into_iter().try_for_each(take);
        }
        // Many tensors are small: threads share the list of them rather than each one.
        tensors.into_par_iter().try_for_each(take)
    }

    /// Moments and step counts as named tensors, for a checkpoint: `NAME.exp_avg`, `NAME.exp_avg_sq`, `NAME.step`.
    /// A step count is one `f32`, as in PyTorch, and exact up to 2^24 steps.
    pub fn state(&self) -> TensorList {
        let mut infos = Vec::new();
        let mut values = Vec::new();
        for (name, moments) in &self.moments {
            let [mean, square, step] = STATE.map(|ending| format!("{name}{ending}"));
            infos.push(tensor_info(mean, moments.shape.clone()));
            values.push(moments.mean.clone());
            infos.push(tensor_info(square, moments.shape.clone()));
            values.push(moments.square.clone());
            infos.push(tensor_info(step, [1]));
            values.push(vec![moments.step as f32]);
        }
        TensorList::new(infos, |index, _| std::mem::take(&mut values[index]))
    }

    /// Restores what [`state`](Self::state) gave; all tensors that do not fit are listed in one error.
    pub fn load_state(&mut self, state: &TensorList) -> Result<()> {
        let mut problems = Vec::new();
        let mut moments = BTreeMap::new();
        for tensor in state.iter() {
            let Some(name) = STATE.iter().find_map(|ending| tensor.name.strip_suffix(ending)) else {
                problems.push(format!("extra: {}", tensor.name));
                continue;
            };
            if moments.contains_key(name) {
                continue;
            }
            let [mean, square, step] = STATE.map(|ending| state.get(&format!("{name}{ending}")));
            match (mean, square, step) {
                (Some(mean), Some(square), Some(step))
                    if mean.shape == square.shape && step.values.len() == 1 && step.values[0] >= 1.0 =>
                {
                    let entry = Moments {
                        shape: mean.shape.to_vec(),
                        step: step.values[0] as u32,
                        mean: mean.values.to_vec(),
                        square: square.values.to_vec(),
                    };
                    moments.insert(name.to_owned(), entry);
                }
                _ => problems.push(format!("incomplete or mis-shaped: {name}")),
            }
        }
        if !problems.is_empty() {
            problems.dedup();
            return Err(ModelError::WeightsDoNotFit { place: "the optimiser state".into(), problems });
        }
        self.moments = moments;
        Ok(())
    }
}

fn check(update: &Update<'_>, episode: u64) -> Result<()> {
    if update.gradient.len() != update.parameter.len() {
        return Err(ModelError::WrongLength {
            what: "gradient of an optimiser step",
            expected: format!("{} as its parameter ({})", update.parameter.len(), update.name),
            got: update.gradient.len(),
        });
    }
    // Without an early end, the compiler turns the search into vector instructions.
    if !update.gradient.iter().fold(false, |is_bad, g| is_bad | !g.is_finite()) {
        return Ok(());
    }
    let element = update.gradient.iter().position(|g| !g.is_finite()).unwrap_or(0);
    let value = update.gradient[element];
    Err(ModelError::BadGradient { tensor: update.name.into(), element, value, episode })
}

/// Learning rate that falls in steps: `initial` until episode `from`, then times `factor` at once and again after
/// every `every` episodes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StepDecay {
    /// Rate of the first episodes. Default: 1e-3.
    pub initial: f64,
    /// What the rate is multiplied with. Default: 0.9.
    pub factor: f64,
    /// Episodes between two falls. Default: 10,000.
    pub every: u64,
    /// Episode of the first fall. Default: 20,000.
    pub from: u64,
}

impl Default for StepDecay {
    fn default() -> Self {
        Self { initial: 1e-3, factor: 0.9, every: 10_000, from: 20_000 }
    }
}

impl StepDecay {
    /// Rate of an episode, counted from 0.
    pub fn rate(&self, episode: u64) -> f64 {
        let falls = episode.checked_sub(self.from).map_or(0, |since| 1 + since / self.every.max(1));
        self.initial * libm::pow(self.factor, falls as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(adam: &mut Adam, name: &str, parameter: &mut [f32], gradient: &[f32]) -> Result<()> {
        let (shape, mut gradient) = ([parameter.len()], gradient.to_vec());
        adam.step(&mut [Update { name, shape: &shape, parameter, gradient: &mut gradient }], 1e-3, 17)
    }

    #[test]
    fn the_first_step_moves_by_the_learning_rate_against_the_sign() {
        let mut adam = Adam::new(AdamConfig { weight_decay: 0.0, ..AdamConfig::default() });
        let mut parameter = [1.0, 2.0, -3.0];
        step(&mut adam, "w", &mut parameter, &[0.5, -20.0, 0.0]).unwrap();
        for (got, expected) in parameter.into_iter().zip([0.999, 2.001, -3.0]) {
            assert!((got - expected).abs() < 1e-6, "{parameter:?}");
        }
    }

    #[test]
    fn parameters_without_gradient_are_not_touched() {
        let mut adam = Adam::default();
        let (mut a, mut b) = ([1.0f32; 2], [1.0f32; 3]);
        step(&mut adam, "a", &mut a, &[1.0; 2]).unwrap();
        step(&mut adam, "b", &mut b, &[1.0; 3]).unwrap();
        step(&mut adam, "b", &mut b, &[1.0; 3]).unwrap();
        let steps: Vec<f32> =
            ["a.step", "b.step"].map(|name| adam.state().get(name).unwrap().values[0]).into();
        assert_eq!(steps, [1.0, 2.0]);
    }

    #[test]
    fn a_bad_gradient_names_tensor_and_episode_and_changes_nothing() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut adam = Adam::default();
            let (mut good, mut parameter) = ([1.0f32], [1.0f32; 40]);
            let mut gradient = [0.5; 40];
            gradient[33] = bad;
            let mut updates = [
                Update { name: "good", shape: &[1], parameter: &mut good, gradient: &mut [1.0] },
                Update { name: "bad", shape: &[40], parameter: &mut parameter, gradient: &mut gradient },
            ];
            let message = adam.step(&mut updates, 1e-3, 17).unwrap_err().to_string();
            assert!(message.contains("`bad`") && message.contains("element 33 in episode 17"), "{message}");
            assert!(good.iter().chain(&parameter).all(|value| value.to_bits() == 1.0f32.to_bits()));
            assert_eq!(adam, Adam::default());
        }
    }

    #[test]
    fn state_goes_round() {
        let mut adam = Adam::default();
        let mut parameter = [1.0, 2.0];
        step(&mut adam, "w.weight", &mut parameter, &[0.1, 0.2]).unwrap();
        let mut copy = Adam::default();
        copy.load_state(&adam.state()).unwrap();
        assert_eq!(copy, adam);
        let half =
            TensorList::new(vec![tensor_info("w.exp_avg", [1]), tensor_info("x", [1])], |_, _| vec![0.0]);
        let message = copy.load_state(&half).unwrap_err().to_string();
        assert!(message.contains("incomplete or mis-shaped: w") && message.contains("extra: x"), "{message}");
        assert_eq!(copy, adam);
    }

    #[test]
    fn the_rate_falls_in_steps() {
        let rate = |episode| StepDecay::default().rate(episode);
        let expected = [(0, 1e-3), (19_999, 1e-3), (20_000, 0.9e-3), (29_999, 0.9e-3), (30_000, 0.81e-3)];
        for (episode, expected) in expected {
            assert!((rate(episode) - expected).abs() < 1e-12, "{episode}");
        }
    }
}
