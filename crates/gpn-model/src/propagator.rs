//! The propagation network with its parameters, as training uses it.

use crate::error::{ModelError, Result};
use crate::init::normal_values;
use crate::propagation::{Propagation, PropagationConfig, PropagationGraph, Tape};
use crate::tensors::{TensorInfo, TensorList, tensor_info};
use crate::trainable::{Trainable, TrainableTensors};

/// What the names of the parameters begin with in weight files.
const PREFIX: &str = "prop.";
/// Seeds of propagation and backbone may be the same; their random streams are not.
const FIRST_INDEX: usize = 1 << 17;

/// A [`Propagation`] with its parameters and gradients. Parameters have the names of the authors' code behind `prop.`.
///
/// ```
/// use gpn_model::{PropagationConfig, PropagationGraph, Propagator};
///
/// let propagator = Propagator::new(PropagationConfig::default(), 2, 1)?;
/// // One target class that hears from its parent.
/// let graph = PropagationGraph::new(2, 1, vec![(0, 1)], vec![]);
/// let tape = propagator.forward(&graph, &[1.0, 0.0, 0.0, 1.0]);
/// let prototype = tape.result(&graph);
/// assert!(prototype[0] > 0.0 && prototype[1] > 0.0);
/// # Ok::<(), gpn_model::ModelError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Propagator {
    propagation: Propagation,
    tensors: TrainableTensors,
}

impl Propagator {
    /// A network for prototypes of length `dim` with fresh parameters, which depend on `seed` alone.
    pub fn new(config: PropagationConfig, dim: usize, seed: u64) -> Result<Self> {
        for (what, value) in [
            ("length of prototypes", dim),
            ("propagation.heads", config.heads),
            ("propagation.hidden", config.hidden),
        ] {
            if value == 0 {
                return Err(ModelError::Zero { what });
            }
        }
        let deviation = f64::from(config.init_deviation);
        let propagation = Propagation::new(config, dim);
        let infos: Vec<TensorInfo> = propagation
            .parameters()
            .iter()
            .map(|info| tensor_info(format!("{PREFIX}{}", info.name), info.shape.clone()))
            .collect();
        let parameters = TensorList::new(infos, |index, info| {
            if info.name.ends_with("bias") {
                vec![0.0; info.numel()]
            } else {
                normal_values(info, FIRST_INDEX + index, seed, deviation)
            }
        });
        Ok(Self { propagation, tensors: TrainableTensors::new(parameters, TensorList::default()) })
    }

    /// The settings.
    pub fn config(&self) -> &PropagationConfig {
        self.propagation.config()
    }

    /// Propagates `prototypes: [nodes, dim]`.
    pub fn forward(&self, graph: &PropagationGraph, prototypes: &[f32]) -> Tape {
        self.propagation.forward(&slices(&self.tensors.parameters), graph, prototypes)
    }

    /// Computes the gradients of the parameters, which replace those of the step before, for a gradient
    /// `target_grads: [targets, dim]` of the result, and returns that of the prototypes, `[nodes, dim]`.
    pub fn backward(&mut self, graph: &PropagationGraph, tape: &Tape, target_grads: &[f32]) -> Vec<f32> {
        let TrainableTensors { parameters, gradients, .. } = &mut self.tensors;
        for gradient in &mut *gradients {
            gradient.fill(0.0);
        }
        self.propagation.backward(&slices(parameters), graph, tape, target_grads, gradients)
    }
}

impl Trainable for Propagator {
    fn title(&self) -> String {
        "the propagation".into()
    }

    fn tensors(&self) -> &TrainableTensors {
        &self.tensors
    }

    fn tensors_mut(&mut self) -> &mut TrainableTensors {
        &mut self.tensors
    }
}

fn slices(tensors: &TensorList) -> Vec<&[f32]> {
    tensors.values().iter().map(Vec::as_slice).collect()
}
