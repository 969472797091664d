//! What all trained parts of a network have in common: parameters with gradients, and running statistics.

use crate::error::Result;
use crate::optim::Update;
use crate::tensors::{NamedTensor, TensorInfo, TensorList};
use crate::weights::Weights;

/// The tensors of one part of a network.
#[derive(Clone, Debug)]
pub struct TrainableTensors {
    pub(crate) parameters: TensorList,
    /// In the order of the parameters.
    pub(crate) gradients: Vec<Vec<f32>>,
    pub(crate) buffers: TensorList,
}

impl TrainableTensors {
    /// Parameters whose gradients are zero, and buffers (running statistics), which no optimiser changes.
    pub fn new(parameters: TensorList, buffers: TensorList) -> Self {
        let gradients = parameters.infos().iter().map(|info| vec![0.0; info.numel()]).collect();
        Self { parameters, gradients, buffers }
    }

    /// Names and shapes of all parameters, then of all buffers.
    pub(crate) fn infos(&self) -> impl Iterator<Item = &TensorInfo> {
        self.parameters.infos().iter().chain(self.buffers.infos())
    }

    /// Gives all parameters and buffers, in the order of [`infos`](Self::infos), the values that `value` returns.
    pub(crate) fn replace(&mut self, mut value: impl FnMut(&TensorInfo) -> Vec<f32>) {
        for list in [&mut self.parameters, &mut self.buffers] {
            *list = TensorList::new(list.infos().to_vec(), |_, info| value(info));
        }
    }
}

/// A part of a network that is trained: a backbone, a head, the propagation.
///
/// Two machines that train together average their gradients before each step:
///
/// ```
/// use gpn_model::{Adam, CosineHead, Trainable};
///
/// let mut heads = [CosineHead::new(2, 3, 10.0, 1)?, CosineHead::new(2, 3, 10.0, 1)?];
/// heads[0].forward_backward(&[0.5, -1.0], &[0])?;
/// heads[1].forward_backward(&[2.0, 0.5], &[2])?;
/// let [here, there] = &mut heads;
/// for (gradient, other) in here.gradients_mut().zip(there.gradients_mut()) {
///     for (value, other) in gradient.iter_mut().zip(other) {
///         *value = (*value + *other) / 2.0;
///         *other = *value;
///     }
/// }
/// for head in &mut heads {
///     Adam::default().step(&mut head.updates(), 1e-3, 1)?;
/// }
/// assert_eq!(heads[0].parameters(), heads[1].parameters());
/// # Ok::<(), gpn_model::ModelError>(())
/// ```
pub trait Trainable {
    /// What an error message calls this part, such as "the propagation".
    fn title(&self) -> String;

    /// The tensors.
    fn tensors(&self) -> &TrainableTensors;

    /// The tensors, which may be changed.
    fn tensors_mut(&mut self) -> &mut TrainableTensors;

    /// Parameters, by their names in weight files.
    fn parameters(&self) -> &TensorList {
        &self.tensors().parameters
    }

    /// Running statistics, by their names in weight files.
    fn buffers(&self) -> &TensorList {
        &self.tensors().buffers
    }

    /// Gradients of the last backward pass, in the order of [`parameters`](Self::parameters).
    fn gradients(&self) -> Box<dyn Iterator<Item = NamedTensor<'_>> + '_> {
        let TrainableTensors { parameters, gradients, .. } = self.tensors();
        Box::new(parameters.named(gradients))
    }

    /// The values of the gradients, to be changed before an optimiser's step.
    fn gradients_mut(&mut self) -> Box<dyn Iterator<Item = &mut [f32]> + '_> {
        Box::new(self.tensors_mut().gradients.iter_mut().map(Vec::as_mut_slice))
    }

    /// The values of the running statistics.
    fn running_mut(&mut self) -> Box<dyn Iterator<Item = &mut [f32]> + '_> {
        Box::new(self.tensors_mut().buffers.values_mut().iter_mut().map(Vec::as_mut_slice))
    }

    /// All that is averaged over the parts of a step, where it has several: gradients, then running statistics.
    fn averaged(&mut self) -> Vec<&mut [f32]> {
        let TrainableTensors { gradients, buffers, .. } = self.tensors_mut();
        gradients.iter_mut().chain(buffers.values_mut()).map(Vec::as_mut_slice).collect()
    }

    /// Parameters with their gradients, for [`Adam::step`](crate::Adam::step).
    fn updates(&mut self) -> Vec<Update<'_>> {
        let TrainableTensors { parameters, gradients, .. } = self.tensors_mut();
        parameters.updates(gradients)
    }

    /// Parameters, then buffers: all that a weight file holds of this part.
    fn state(&self) -> Box<dyn Iterator<Item = NamedTensor<'_>> + '_> {
        Box::new(self.parameters().iter().chain(self.buffers().iter()))
    }

    /// Takes parameters and buffers from a weight file. Tensors that do not fit are listed in one error, and then
    /// nothing is changed.
    fn load(&mut self, weights: &Weights) -> Result<()> {
        let infos: Vec<TensorInfo> = self.tensors().infos().cloned().collect();
        let state = weights.tensors_for(&infos, &self.title())?;
        let mut values = state.values().iter().cloned();
        self.tensors_mut().replace(|_| values.next().unwrap_or_default());
        Ok(())
    }
}
