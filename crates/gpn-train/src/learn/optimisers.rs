//! The optimiser of a run, or the two of them.

use gpn_model::{Adam, AdamConfig, TensorInfo, TensorList, Weights};

use super::schedule::StepKind;
use crate::error::TrainError;

/// What the moments of few-shot and of auxiliary steps are called in a checkpoint.
const PREFIXES: [&str; 2] = ["adam.", "adam_auxiliary."];

/// Adam for both kinds of steps, with moments in common or of their own.
///
/// The gradients of few-shot tasks are at first many times those of auxiliary batches. With moments in common, a few
/// tasks make the steps of all batches after them small.
#[derive(Clone, Debug)]
pub struct Optimisers {
    few_shot: Adam,
    auxiliary: Option<Adam>,
}

impl Optimisers {
    /// Optimisers that have taken no step.
    pub fn new(config: AdamConfig, own_moments: bool) -> Self {
        Self { few_shot: Adam::new(config), auxiliary: own_moments.then(|| Adam::new(config)) }
    }

    /// The one that takes steps of a kind.
    pub fn of(&mut self, kind: StepKind) -> &mut Adam {
        match (kind, &mut self.auxiliary) {
            (StepKind::Auxiliary, Some(auxiliary)) => auxiliary,
            _ => &mut self.few_shot,
        }
    }

    /// Moments and step counts, as checkpoints hold them.
    pub(crate) fn state(&self) -> TensorList {
        let (mut infos, mut values) = (Vec::new(), Vec::new());
        for (prefix, adam) in PREFIXES.into_iter().zip([Some(&self.few_shot), self.auxiliary.as_ref()]) {
            let Some(state) = adam.map(Adam::state) else { continue };
            for tensor in state.iter() {
                infos.push(TensorInfo {
                    name: format!("{prefix}{}", tensor.name),
                    shape: tensor.shape.to_vec(),
                });
                values.push(tensor.values.to_vec());
            }
        }
        TensorList::new(infos, |index, _| std::mem::take(&mut values[index]))
    }

    /// Takes moments and step counts from a checkpoint.
    pub(crate) fn load(&mut self, weights: &Weights) -> Result<(), TrainError> {
        for (prefix, adam) in PREFIXES.into_iter().zip([Some(&mut self.few_shot), self.auxiliary.as_mut()]) {
            let Some(adam) = adam else { continue };
            let (infos, mut values): (Vec<TensorInfo>, Vec<Vec<f32>>) = weights
                .iter()
                .filter_map(|tensor| {
                    let name = tensor.name.strip_prefix(prefix)?.to_owned();
                    Some((TensorInfo { name, shape: tensor.shape.to_vec() }, tensor.values.to_vec()))
                })
                .unzip();
            adam.load_state(&TensorList::new(infos, |index, _| std::mem::take(&mut values[index])))?;
        }
        Ok(())
    }
}
