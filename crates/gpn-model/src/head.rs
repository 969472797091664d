//! The linear classifier of the auxiliary task, with cross entropy.

use gpn_kernels::linear;
use serde::{Deserialize, Serialize};

use crate::device::{Device, DeviceKind};
use crate::engine::EngineChoice;
#[cfg(feature = "burn")]
use crate::engine::burn;
use crate::error::{ModelError, Result};
use crate::init::{first_values, normal_values};
use crate::optim::Update;
use crate::tensors::{NamedTensor, TensorInfo, TensorList, tensor_info};

/// PyTorch's names of the head's parameters.
pub(crate) const HEAD_NAMES: [&str; 2] = ["fc_classifier.weight", "fc_classifier.bias"];
/// Seeds of head and backbone may be the same; their random streams are not.
const FIRST_INDEX: usize = 1 << 16;

/// How the weights of a head begin; its biases begin at 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HeadInit {
    /// Uniform in `±1 / sqrt(embedding_len)`.
    #[default]
    Uniform,
    /// Normal with variance `2 / embedding_len` (He et al. 2015), 2.4 times as wide as `Uniform`: the gradients that the
    /// auxiliary task sends into the backbone begin as much larger.
    Kaiming,
}

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
    /// Where burn computes the head and not the CPU kernels.
    #[cfg(feature = "burn")]
    burn: Option<Device>,
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
    /// A head with fresh parameters, which depend on `seed` alone.
    pub fn new(embedding_len: usize, classes: usize, device: &Device, seed: u64) -> Result<Self> {
        Self::with_engine(embedding_len, classes, device, seed, EngineChoice::Auto)
    }

    /// The same with a chosen engine, to compare them.
    pub fn with_engine(
        embedding_len: usize,
        classes: usize,
        device: &Device,
        seed: u64,
        choice: EngineChoice,
    ) -> Result<Self> {
        for (what, value) in [("length of embeddings", embedding_len), ("number of classes", classes)] {
            if value == 0 {
                return Err(ModelError::Zero { what });
            }
        }
        let on_cpu = device.kind() == DeviceKind::Cpu;
        if choice == EngineChoice::Kernels && !on_cpu {
            return Err(ModelError::NoKernels {
                backbone: "classifier".into(),
                device: device.kind().name(),
            });
        }
        #[cfg(feature = "burn")]
        let burn = (!on_cpu || !choice.allows_kernels()).then(|| device.clone());
        let [weight, bias] = HEAD_NAMES;
        let infos = vec![tensor_info(weight, [classes, embedding_len]), tensor_info(bias, [classes])];
        let gradients = infos.iter().map(|info| vec![0.0; info.numel()]).collect();
        let parameters = TensorList::new(infos, |index, info| first_values(info, FIRST_INDEX + index, seed));
        Ok(Self {
            embedding_len,
            classes,
            #[cfg(feature = "burn")]
            burn,
            parameters,
            gradients,
        })
    }

    /// Draws the weights anew, as `init` says.
    pub fn initialise(&mut self, init: HeadInit, seed: u64) {
        let deviation = (2.0 / self.embedding_len as f64).sqrt();
        self.parameters =
            TensorList::new(self.parameters.infos().to_vec(), |index, info| match (init, &info.shape[..]) {
                (HeadInit::Kaiming, [_, _]) => normal_values(info, FIRST_INDEX + index, seed, deviation),
                _ => first_values(info, FIRST_INDEX + index, seed),
            });
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
        check_labels(labels, self.classes)?;
        let len = self.embedding_len;
        let [weight, bias] = self.parameters.values() else {
            unreachable!("invariant: a head has two parameters")
        };
        #[cfg(feature = "burn")]
        if let Some(device) = &self.burn {
            let pass;
            (pass, self.gradients) =
                burn::head_forward_backward(device.burn(), [weight, bias], embeddings, labels)?;
            return Ok(pass);
        }
        let [grad_weight, grad_bias] = &mut self.gradients[..] else {
            unreachable!("invariant: a head has two parameters")
        };
        let mut logits = vec![0.0; labels.len() * self.classes];
        linear::forward(embeddings, weight, Some(bias), len, &mut logits)?;
        let mut grad_logits = vec![0.0; logits.len()];
        let loss = linear::cross_entropy(&logits, labels, self.classes, &mut grad_logits)?;
        let mut grad_embeddings = vec![0.0; embeddings.len()];
        linear::backward(
            embeddings,
            weight,
            &grad_logits,
            len,
            grad_weight,
            grad_bias,
            Some(&mut grad_embeddings),
        )?;
        Ok(HeadPass { loss, logits, grad_embeddings })
    }

    /// `fc_classifier.weight: [classes, embedding_len]` and `fc_classifier.bias: [classes]`.
    pub fn parameters(&self) -> &TensorList {
        &self.parameters
    }

    /// Gradients of the last pass, in the order of [`parameters`](Self::parameters).
    pub fn gradients(&self) -> impl Iterator<Item = NamedTensor<'_>> {
        self.parameters.named(&self.gradients)
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

/// Fails where a label names no class.
pub(crate) fn check_labels(labels: &[usize], classes: usize) -> Result<()> {
    match labels.iter().position(|&label| label >= classes) {
        Some(sample) => Err(ModelError::LabelOutOfRange { sample, label: labels[sample], classes }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "burn")]
    #[test]
    fn engines_agree() {
        let embeddings: Vec<f32> = (0..3 * 7).map(|i| ((i * 5 % 11) as f32 - 5.0) / 4.0).collect();
        let pass = |choice| {
            let mut head = ClassifierHead::with_engine(7, 5, &Device::cpu(), 2, choice).unwrap();
            let pass = head.forward_backward(&embeddings, &[4, 0, 2]).unwrap();
            let gradients: Vec<f32> = head.gradients().flat_map(|tensor| tensor.values.to_vec()).collect();
            [vec![pass.loss], pass.logits, pass.grad_embeddings, gradients].concat()
        };
        for (kernels, burn) in pass(EngineChoice::Kernels).into_iter().zip(pass(EngineChoice::Burn)) {
            assert!((kernels - burn).abs() < 1e-5, "{kernels} {burn}");
        }
    }

    #[test]
    fn weights_begin_as_wide_as_stated() {
        let mut head = ClassifierHead::new(64, 330, &Device::cpu(), 5).unwrap();
        let values = |head: &ClassifierHead| -> Vec<Vec<f32>> {
            head.parameters().iter().map(|tensor| tensor.values.to_vec()).collect()
        };
        let fresh = values(&head);
        for (init, variance) in [(HeadInit::Kaiming, 2.0 / 64.0), (HeadInit::Uniform, 1.0 / (3.0 * 64.0))] {
            head.initialise(init, 5);
            let [weight, bias] = &values(&head)[..] else { panic!("two parameters") };
            let drawn = weight.iter().map(|&w| f64::from(w).powi(2)).sum::<f64>() / weight.len() as f64;
            assert!((drawn / variance - 1.0).abs() < 0.03, "{init:?}: {drawn}");
            assert!(bias.iter().all(|&b| b == 0.0), "{init:?}");
        }
        assert_eq!(values(&head), fresh, "uniform is what a fresh head has");
    }

    #[test]
    fn wrong_calls_are_refused() {
        let mut head = ClassifierHead::new(2, 3, &Device::cpu(), 1).unwrap();
        assert!(matches!(head.forward_backward(&[0.0; 3], &[0]), Err(ModelError::WrongLength { .. })));
        assert!(matches!(head.forward_backward(&[], &[]), Err(ModelError::WrongLength { .. })));
        let message = head.forward_backward(&[0.0; 4], &[0, 3]).unwrap_err().to_string();
        assert!(message.contains("label 3 of sample 1 is outside the 3 classes"), "{message}");
        assert!(ClassifierHead::new(0, 3, &Device::cpu(), 1).is_err());
    }
}
