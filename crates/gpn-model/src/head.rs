//! The linear classifier of the auxiliary task, with cross entropy.

use gpn_kernels::linear;
use serde::{Deserialize, Serialize};

use crate::device::{Device, DeviceKind};
use crate::engine::EngineChoice;
#[cfg(feature = "burn")]
use crate::engine::burn;
use crate::error::{ModelError, Result};
use crate::init::{first_values, normal_values};
use crate::tensors::{TensorList, tensor_info};
use crate::trainable::{Trainable, TrainableTensors};
use crate::weights::Weights;

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
    /// Normal with variance `2 / embedding_len` (He et al. 2015). Its weights are 2.4 times as large as those of
    /// `Uniform`, and so are the first gradients that the auxiliary task sends into the backbone.
    Kaiming,
}

/// Linear classifier over embeddings, with parameters `fc_classifier.weight: [classes, embedding_len]` and
/// `fc_classifier.bias: [classes]`.
///
/// ```
/// use gpn_model::{Adam, ClassifierHead, Device, Trainable};
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
    tensors: TrainableTensors,
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
        let parameters = TensorList::new(infos, |index, info| first_values(info, FIRST_INDEX + index, seed));
        Ok(Self {
            embedding_len,
            classes,
            #[cfg(feature = "burn")]
            burn,
            tensors: TrainableTensors::new(parameters, TensorList::default()),
        })
    }

    /// Draws the weights anew, as `init` says.
    pub fn initialise(&mut self, init: HeadInit, seed: u64) {
        let deviation = (2.0 / self.embedding_len as f64).sqrt();
        let infos = self.parameters().infos().to_vec();
        self.tensors.parameters = TensorList::new(infos, |index, info| match (init, &info.shape[..]) {
            (HeadInit::Kaiming, [_, _]) => normal_values(info, FIRST_INDEX + index, seed, deviation),
            _ => first_values(info, FIRST_INDEX + index, seed),
        });
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Loss of `embeddings: [n, embedding_len]` against `labels: [n]`, with the gradients of the embeddings (returned)
    /// and of the parameters (kept for [`updates`](Trainable::updates)).
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
        let TrainableTensors { parameters, gradients, .. } = &mut self.tensors;
        let [weight, bias] = parameters.values() else {
            unreachable!("invariant: a head has two parameters")
        };
        #[cfg(feature = "burn")]
        if let Some(device) = &self.burn {
            let pass;
            (pass, *gradients) =
                burn::head_forward_backward(device.burn(), [weight, bias], embeddings, labels)?;
            return Ok(pass);
        }
        let [grad_weight, grad_bias] = &mut gradients[..] else {
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
}

impl Trainable for ClassifierHead {
    fn title(&self) -> String {
        "the classifier".into()
    }

    fn tensors(&self) -> &TrainableTensors {
        &self.tensors
    }

    fn tensors_mut(&mut self) -> &mut TrainableTensors {
        &mut self.tensors
    }

    fn load(&mut self, weights: &Weights) -> Result<()> {
        weights.load_head(self)
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
