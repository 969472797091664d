//! The linear classifier of the auxiliary task, with cross entropy.

use burn::tensor::activation::log_softmax;
use burn::tensor::{Int, Tensor, TensorData, Transaction};

use crate::device::Device;
use crate::engine::read;
use crate::error::{ModelError, Result};
use crate::init::first_values;
use crate::optim::Update;
use crate::tensors::{NamedTensor, TensorInfo, TensorList, tensor_info};

/// PyTorch's names of the head's parameters.
pub(crate) const HEAD_NAMES: [&str; 2] = ["fc_classifier.weight", "fc_classifier.bias"];
/// Seeds of head and backbone may be the same; their random streams are not.
const FIRST_INDEX: usize = 1 << 16;

/// Linear classifier over embeddings.
///
/// ```
/// use gpn_model::{Adam, ClassifierHead, Device};
///
/// let mut head = ClassifierHead::new(2, 10, &Device::cpu(), 1)?; // embeddings of 2, 10 classes
/// let pass = head.forward_backward(&[0.5, -1.0, 2.0, 0.0], &[3, 9])?;
/// assert!((pass.loss - 10f32.ln()).abs() < 1.0);
/// assert_eq!(pass.grad_embeddings.len(), 4);
/// Adam::default().step(&mut head.updates(), 1e-3, 1)?;
/// # Ok::<(), gpn_model::ModelError>(())
/// ```
pub struct ClassifierHead {
    embedding_len: usize,
    classes: usize,
    device: Device,
    parameters: TensorList,
    gradients: Vec<Vec<f32>>,
}

/// Result of [`ClassifierHead::forward_backward`].
#[derive(Clone, Debug, PartialEq)]
pub struct HeadPass {
    /// Mean cross entropy over the batch.
    pub loss: f32,
    /// `[n, classes]`.
    pub logits: Vec<f32>,
    /// Gradient of the loss with respect to the embeddings, `[n, embedding_len]`.
    pub grad_embeddings: Vec<f32>,
}

impl ClassifierHead {
    /// A head with fresh parameters.
    pub fn new(embedding_len: usize, classes: usize, device: &Device, seed: u64) -> Result<Self> {
        for (what, value) in [("length of embeddings", embedding_len), ("number of classes", classes)] {
            if value == 0 {
                return Err(ModelError::Zero { what });
            }
        }
        let [weight, bias] = HEAD_NAMES;
        let infos = vec![tensor_info(weight, [classes, embedding_len]), tensor_info(bias, [classes])];
        let gradients = infos.iter().map(|info| vec![0.0; info.numel()]).collect();
        let parameters = TensorList::new(infos, |index, info| first_values(info, FIRST_INDEX + index, seed));
        Ok(Self { embedding_len, classes, device: device.clone(), parameters, gradients })
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Loss of `embeddings: [n, embedding_len]` against `labels: [n]`, with the gradients of the embeddings (returned)
    /// and of the parameters (kept for [`updates`](Self::updates)).
    pub fn forward_backward(&mut self, embeddings: &[f32], labels: &[usize]) -> Result<HeadPass> {
        if labels.is_empty() || embeddings.len() != labels.len() * self.embedding_len {
            return Err(ModelError::WrongLength {
                what: "embeddings",
                expected: format!("{} labels x {}, at least one", labels.len(), self.embedding_len),
                got: embeddings.len(),
            });
        }
        if let Some(sample) = labels.iter().position(|&label| label >= self.classes) {
            let label = labels[sample];
            return Err(ModelError::LabelOutOfRange { sample, label, classes: self.classes });
        }
        self.on_burn(embeddings, labels)
    }

    fn on_burn(&mut self, embeddings: &[f32], labels: &[usize]) -> Result<HeadPass> {
        let device = self.device.burn().clone().autodiff();
        let n = labels.len();
        let leaf = |values: &[f32], shape: [usize; 2]| {
            Tensor::<2>::from_data(TensorData::new(values.to_vec(), shape), &device).require_grad()
        };
        let [weight, bias] = self.parameters.values() else { return Err(ModelError::NoForward) };
        let weight = leaf(weight, [self.classes, self.embedding_len]);
        let bias = leaf(bias, [1, self.classes]);
        let input = leaf(embeddings, [n, self.embedding_len]);
        let labels: Vec<i64> = labels.iter().map(|&label| label as i64).collect();
        let labels = Tensor::<2, Int>::from_data(TensorData::new(labels, [n, 1]), &device);

        let logits = input.clone().matmul(weight.clone().transpose()) + bias.clone();
        let loss = -log_softmax(logits.clone(), 1).gather(1, labels).mean();
        let mut gradients = loss.backward();
        let mut gradient = |leaf: &Tensor<2>| leaf.grad_remove(&mut gradients).ok_or(ModelError::NoForward);
        let transaction = Transaction::default()
            .register(loss.clone().inner())
            .register(logits.inner())
            .register(gradient(&input)?)
            .register(gradient(&weight)?)
            .register(gradient(&bias)?);
        let mut values = read(transaction, "classifier head")?.into_iter();
        let mut next = || values.next().unwrap_or_default();
        let (loss, logits, grad_embeddings) = (next(), next(), next());
        self.gradients = vec![next(), next()];
        Ok(HeadPass { loss: loss.first().copied().unwrap_or(f32::NAN), logits, grad_embeddings })
    }

    /// `fc_classifier.weight: [classes, embedding_len]` and `fc_classifier.bias: [classes]`.
    pub fn parameters(&self) -> &TensorList {
        &self.parameters
    }

    /// Gradients of the last pass, in the order of [`parameters`](Self::parameters).
    pub fn gradients(&self) -> impl Iterator<Item = NamedTensor<'_>> {
        self.parameters.infos().iter().zip(&self.gradients).map(|(info, values)| NamedTensor {
            name: &info.name,
            shape: &info.shape,
            values,
        })
    }

    /// Parameters with their gradients, for [`Adam::step`](crate::Adam::step).
    pub fn updates(&mut self) -> Vec<Update<'_>> {
        self.parameters.updates(&self.gradients)
    }

    /// Takes the values of all parameters from `value(info)`, which has been checked to know them all.
    pub(crate) fn replace_parameters(&mut self, value: impl Fn(&TensorInfo) -> Vec<f32>) {
        self.parameters = TensorList::new(self.parameters.infos().to_vec(), |_, info| value(info));
    }
}
