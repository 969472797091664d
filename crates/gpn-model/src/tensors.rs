//! Named tensors on the host: how parameters, batch-norm buffers and optimiser state are kept between steps.

pub use gpn_kernels::TensorInfo;

use crate::optim::Update;

/// Name and shape together.
pub(crate) fn tensor_info(name: impl Into<String>, shape: impl Into<Vec<usize>>) -> TensorInfo {
    TensorInfo { name: name.into(), shape: shape.into() }
}

/// A view of one named tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NamedTensor<'a> {
    /// Name in PyTorch's state dict.
    pub name: &'a str,
    /// Shape.
    pub shape: &'a [usize],
    /// Values in row-major order.
    pub values: &'a [f32],
}

/// Tensors in a fixed order, each a plain `Vec<f32>` so that the CPU kernels use them without a copy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TensorList {
    infos: Vec<TensorInfo>,
    values: Vec<Vec<f32>>,
}

impl TensorList {
    /// Tensors of the given names and shapes with values from `fill(index, info)`.
    pub fn new(infos: Vec<TensorInfo>, mut fill: impl FnMut(usize, &TensorInfo) -> Vec<f32>) -> Self {
        let values = infos.iter().enumerate().map(|(index, info)| fill(index, info)).collect();
        Self { infos, values }
    }

    /// Number of tensors.
    pub fn len(&self) -> usize {
        self.infos.len()
    }

    /// Whether there is no tensor.
    pub fn is_empty(&self) -> bool {
        self.infos.is_empty()
    }

    /// Names and shapes in order.
    pub fn infos(&self) -> &[TensorInfo] {
        &self.infos
    }

    /// All tensors in order.
    pub fn iter(&self) -> impl Iterator<Item = NamedTensor<'_>> {
        self.named(&self.values)
    }

    /// Other values, such as gradients, under the names and shapes of these tensors and in their order.
    pub(crate) fn named<'a>(&'a self, values: &'a [Vec<f32>]) -> impl Iterator<Item = NamedTensor<'a>> {
        self.infos.iter().zip(values).map(|(info, values)| NamedTensor {
            name: &info.name,
            shape: &info.shape,
            values,
        })
    }

    /// The tensor of a name.
    pub fn get(&self, name: &str) -> Option<NamedTensor<'_>> {
        self.iter().find(|tensor| tensor.name == name)
    }

    /// The values of all tensors in order.
    pub(crate) fn values(&self) -> &[Vec<f32>] {
        &self.values
    }

    /// The values of all tensors in order, to be changed in place. Lengths must stay as they are.
    pub(crate) fn values_mut(&mut self) -> &mut [Vec<f32>] {
        &mut self.values
    }

    /// All tensors as parameters with their gradients, which come in the same order.
    pub(crate) fn updates<'a>(&'a mut self, gradients: &'a mut [Vec<f32>]) -> Vec<Update<'a>> {
        let tensors = self.infos.iter().zip(&mut self.values);
        tensors
            .zip(gradients)
            .map(|((info, parameter), gradient)| Update {
                name: &info.name,
                shape: &info.shape,
                parameter,
                gradient,
            })
            .collect()
    }
}

impl<'a> FromIterator<NamedTensor<'a>> for TensorList {
    fn from_iter<I: IntoIterator<Item = NamedTensor<'a>>>(tensors: I) -> Self {
        let pairs = tensors.into_iter().map(|t| (tensor_info(t.name, t.shape), t.values.to_vec()));
        let (infos, values) = pairs.unzip();
        Self { infos, values }
    }
}
