//! What computes a backbone: the CPU kernels or burn. Parameters and batch-norm buffers belong to the
//! [`Embedder`](crate::Embedder) and are passed to every call. An engine keeps only work buffers and copies of them.

#[cfg(feature = "burn")]
pub(crate) mod burn;
mod identity;
mod kernel_engine;
mod mlp;

use identity::IdentityEngine;
use kernel_engine::KernelEngine;
use mlp::MlpEngine;

use crate::backbone::{BackboneConfig, InputShape, Mode};
use crate::device::{Device, DeviceKind};
use crate::error::{ModelError, Result};
use crate::tensors::{TensorInfo, TensorList};

/// Which engine computes a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum EngineChoice {
    /// The CPU kernels where the device is the processor, otherwise burn. The default.
    #[default]
    Auto,
    /// The CPU kernels; an error on any other device.
    Kernels,
    /// burn's modules, on any device; cargo feature `burn`.
    #[cfg(feature = "burn")]
    Burn,
}

impl EngineChoice {
    /// Whether the CPU kernels may compute.
    pub(crate) fn allows_kernels(self) -> bool {
        match self {
            Self::Auto | Self::Kernels => true,
            #[cfg(feature = "burn")]
            Self::Burn => false,
        }
    }
}

/// Told during a backward pass which gradients are final: `on_final(first, gradients)` says that those of parameter `first`
/// and of all behind it are. `first` never grows from call to call, and is 0 at last.
pub type OnFinal<'a> = &'a mut dyn FnMut(usize, &[Vec<f32>]);

/// One network at one input size.
pub(crate) trait Engine: Send + Sync {
    /// Names and shapes of the parameters.
    fn parameters(&self) -> Vec<TensorInfo>;

    /// Names and shapes of the batch-norm buffers.
    fn buffers(&self) -> Vec<TensorInfo>;

    /// How it rounds: engines that say the same compute the same bits.
    fn rounding(&self) -> &'static str {
        gpn_kernels::rounding()
    }

    /// Sets the largest batch, in samples, that is rounded as PyTorch rounds it, where the engine can do that.
    fn set_exact_batch(&mut self, _samples: usize) {}

    /// Embeds `n` samples and keeps what `backward` needs.
    fn forward(
        &mut self,
        mode: Mode,
        parameters: &TensorList,
        buffers: &mut TensorList,
        samples: &[f32],
        n: usize,
    ) -> Result<Vec<f32>>;

    /// Gradients of all parameters, given that of the last forward pass's embeddings. `on_final` is called by engines that have
    /// some gradients before others.
    fn backward(
        &mut self,
        parameters: &TensorList,
        grad_embeddings: &[f32],
        gradients: &mut [Vec<f32>],
        on_final: OnFinal<'_>,
    ) -> Result<()>;

    /// Says that parameters or buffers have other values than in the last call.
    fn parameters_changed(&mut self) {}

    /// Embeds `n` samples in evaluation mode. Any number of threads may do so at once.
    fn embed(
        &self,
        parameters: &TensorList,
        buffers: &TensorList,
        samples: &[f32],
        n: usize,
    ) -> Result<Vec<f32>>;
}

/// The engine for a backbone whose settings and input are already checked.
pub(crate) fn build(
    config: &BackboneConfig,
    input: InputShape,
    device: &Device,
    choice: EngineChoice,
) -> Result<Box<dyn Engine>> {
    if device.kind() == DeviceKind::Cpu && choice.allows_kernels() {
        return on_processor(config, input);
    }
    #[cfg(feature = "burn")]
    if choice != EngineChoice::Kernels {
        return Ok(burn::build(config, input, device));
    }
    Err(ModelError::NoKernels { backbone: config.name(), device: device.kind().name() })
}

/// The engine without burn.
fn on_processor(config: &BackboneConfig, input: InputShape) -> Result<Box<dyn Engine>> {
    Ok(match config {
        BackboneConfig::Mlp(config) => Box::new(MlpEngine::new(input.len(), &config.layers)),
        BackboneConfig::Identity => Box::new(IdentityEngine),
        BackboneConfig::ResNet(_)
        | BackboneConfig::Conv4(_)
        | BackboneConfig::ResNet12(_)
        | BackboneConfig::ResNet18(_) => Box::new(KernelEngine::new(config, input)?),
    })
}
