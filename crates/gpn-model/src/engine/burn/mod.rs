//! burn's modules as an engine, for every device and every backbone.
//!
//! Parameters are copied to the device before a pass, embeddings, statistics and gradients back after it, each in one
//! transfer.

mod conv4;
mod head;
mod layers;
mod mlp;
mod pytorch_order;
mod resnet;
mod resnet12;
mod resnet18;

pub(crate) use head::forward_backward as head_forward_backward;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Tensor, TensorData, Transaction};
use gpn_kernels::EXACT_BATCH;

use super::identity::IdentityEngine;
use super::{Engine, OnFinal};
use crate::backbone::{BackboneConfig, InputShape, Mode};
use crate::device::DeviceKind;
use crate::error::{ModelError, Result};
use crate::tensors::{TensorInfo, TensorList, tensor_info};

/// Samples that are embedded at once; bounds the memory of [`Engine::embed`].
const EMBED_BATCH: usize = 128;

/// A burn module that embeds samples.
pub(super) trait Backbone: Module + Sync {
    /// Embeds `samples: [n, channels, height, width]` into `[n, embedding]`.
    fn forward(&mut self, samples: Tensor<4>, pass: Pass) -> Tensor<2>;
}

/// How a pass is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pass {
    /// Which statistics batch norm uses.
    pub(super) mode: Mode,
    /// Whether values are rounded as PyTorch rounds them. Slower, and only for burn's `flex` back end.
    pub(super) exact: bool,
}

/// The engine of a backbone on a device.
pub(super) fn build(
    config: &BackboneConfig,
    input: InputShape,
    device: &crate::device::Device,
) -> Box<dyn Engine> {
    let train = device.burn().clone().autodiff();
    match config {
        BackboneConfig::ResNet(config) => Box::new(BurnEngine::new(config.init(&train), input, device)),
        BackboneConfig::Conv4(config) => Box::new(BurnEngine::new(config.init(&train), input, device)),
        BackboneConfig::ResNet12(config) => Box::new(BurnEngine::new(config.init(&train), input, device)),
        BackboneConfig::ResNet18(config) => Box::new(BurnEngine::new(config.init(&train), input, device)),
        BackboneConfig::Mlp(config) => {
            Box::new(BurnEngine::new(config.init(input.len(), &train), input, device))
        }
        BackboneConfig::Identity => Box::new(IdentityEngine),
    }
}

struct BurnEngine<M> {
    /// On the autodiff device.
    module: M,
    input: InputShape,
    /// Without autodiff.
    device: Device,
    rounding: &'static str,
    /// Samples in the largest batch that is rounded as PyTorch rounds it; 0 on devices, which cannot do that.
    exact_batch: usize,
    /// Embeddings of the last forward pass, which hold its graph.
    embeddings: Option<Tensor<2>>,
}

impl<M: Backbone> BurnEngine<M> {
    fn new(module: M, input: InputShape, device: &crate::device::Device) -> Self {
        // On the processor burn chooses the instruction set itself, and rounding depends on it.
        let rounding = if device.kind() == DeviceKind::Cpu { "burn" } else { device.kind().name() };
        let device = device.burn().clone();
        let mut engine = Self { module, input, device, rounding, exact_batch: 0, embeddings: None };
        engine.set_exact_batch(EXACT_BATCH);
        engine
    }

    /// The module with the values of parameters and buffers.
    fn loaded(&self, parameters: &TensorList, buffers: &TensorList) -> M {
        let device = self.device.clone().autodiff();
        self.module.clone().map(&mut Load { path: Path::default(), parameters, buffers, device })
    }

    fn samples(&self, samples: &[f32], n: usize, device: &Device) -> Tensor<4> {
        let [channels, height, width] = self.input.dims();
        Tensor::from_data(TensorData::new(samples.to_vec(), [n, channels, height, width]), device)
    }

    fn infos(&self, of_buffers: bool) -> Vec<TensorInfo> {
        let mut list = List { path: Path::default(), infos: Vec::new() };
        self.module.visit(&mut list);
        list.infos.retain(|info| is_buffer(&info.name) == of_buffers);
        list.infos
    }
}

impl<M: Backbone> Engine for BurnEngine<M> {
    fn parameters(&self) -> Vec<TensorInfo> {
        self.infos(false)
    }

    fn buffers(&self) -> Vec<TensorInfo> {
        self.infos(true)
    }

    fn rounding(&self) -> &'static str {
        self.rounding
    }

    fn set_exact_batch(&mut self, samples: usize) {
        self.exact_batch = if self.device == Device::flex() { samples } else { 0 };
    }

    fn forward(
        &mut self,
        mode: Mode,
        parameters: &TensorList,
        buffers: &mut TensorList,
        samples: &[f32],
        n: usize,
    ) -> Result<Vec<f32>> {
        self.module = self.loaded(parameters, buffers);
        let samples = self.samples(samples, n, &self.device.clone().autodiff());
        let embeddings = self.module.forward(samples, Pass { mode, exact: n <= self.exact_batch });
        let mut read = Read::of_buffers(embeddings.clone().inner());
        self.module.visit(&mut read);
        self.embeddings = Some(embeddings);
        let mut values = read.finish("forward pass")?.into_iter();
        let embeddings = values.next().unwrap_or_default();
        for (buffer, value) in buffers.values_mut().iter_mut().zip(values) {
            *buffer = value;
        }
        Ok(embeddings)
    }

    fn backward(
        &mut self,
        _parameters: &TensorList,
        grad_embeddings: &[f32],
        gradients: &mut [Vec<f32>],
        _on_final: OnFinal<'_>,
    ) -> Result<()> {
        let embeddings = self.embeddings.take().ok_or(ModelError::NoForward)?;
        let grad = TensorData::new(grad_embeddings.to_vec(), embeddings.dims());
        let grad = Tensor::from_data(grad, &self.device.clone().autodiff());
        // The gradient of sum(embeddings * grad) with respect to the embeddings is grad.
        let mut read = Read::of_gradients((embeddings * grad).sum().backward());
        self.module.visit(&mut read);
        for (gradient, value) in gradients.iter_mut().zip(read.finish("backward pass")?) {
            *gradient = value;
        }
        Ok(())
    }

    fn embed(
        &self,
        parameters: &TensorList,
        buffers: &TensorList,
        samples: &[f32],
        n: usize,
    ) -> Result<Vec<f32>> {
        let mut module = self.loaded(parameters, buffers).valid();
        let mut embeddings = Vec::new();
        let pass = Pass { mode: Mode::Eval, exact: false };
        for batch in samples.chunks(EMBED_BATCH * (samples.len() / n.max(1)).max(1)) {
            let batch = self.samples(batch, batch.len() / self.input.len(), &self.device);
            let values = read(Transaction::default().register(module.forward(batch, pass)), "embedding")?;
            embeddings.extend(values.into_iter().flatten());
        }
        Ok(embeddings)
    }
}

/// Whether a tensor is a running statistic rather than a parameter.
fn is_buffer(name: &str) -> bool {
    name.ends_with("running_mean") || name.ends_with("running_var")
}

fn read(transaction: Transaction, operation: &'static str) -> Result<Vec<Vec<f32>>> {
    let failed = |reason: String| ModelError::DeviceFailed { operation, reason };
    let data = transaction.try_execute().map_err(|error| failed(error.to_string()))?;
    data.into_iter().map(|data| data.try_into_vec().map_err(|error| failed(format!("{error:?}")))).collect()
}

/// Where in the module a traversal is; the parts joined by dots are PyTorch's name.
#[derive(Default)]
struct Path(Vec<String>);

impl Path {
    fn name(&self) -> String {
        self.0.join(".")
    }
}

macro_rules! follow_path {
    () => {
        fn enter_module(&mut self, name: &str, _container: &str) {
            self.path.0.push(name.into());
        }

        fn exit_module(&mut self, _name: &str, _container: &str) {
            self.path.0.pop();
        }
    };
}

/// Lists names and shapes.
struct List {
    path: Path,
    infos: Vec<TensorInfo>,
}

impl ModuleVisitor for List {
    follow_path!();

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.infos.push(tensor_info(self.path.name(), param.dims()));
    }
}

/// Replaces the module's values by those of the lists.
struct Load<'a> {
    path: Path,
    parameters: &'a TensorList,
    buffers: &'a TensorList,
    device: Device,
}

impl ModuleMapper for Load<'_> {
    follow_path!();

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let name = self.path.name();
        let tracked = !is_buffer(&name);
        let list = if tracked { self.parameters } else { self.buffers };
        let Some(tensor) = list.get(&name) else { return param };
        let data = TensorData::new(tensor.values.to_vec(), tensor.shape.to_vec());
        param.map(|_| Tensor::from_data(data, &self.device).set_require_grad(tracked))
    }
}

/// Collects running statistics or gradients for one transfer to the host.
struct Read {
    path: Path,
    transaction: Transaction,
    gradients: Option<Gradients>,
}

impl Read {
    fn of_buffers(embeddings: Tensor<2>) -> Self {
        Self {
            path: Path::default(),
            transaction: Transaction::default().register(embeddings),
            gradients: None,
        }
    }

    fn of_gradients(gradients: Gradients) -> Self {
        Self { path: Path::default(), transaction: Transaction::default(), gradients: Some(gradients) }
    }

    fn finish(self, operation: &'static str) -> Result<Vec<Vec<f32>>> {
        read(self.transaction, operation)
    }
}

impl ModuleVisitor for Read {
    follow_path!();

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let tensor = match (&mut self.gradients, is_buffer(&self.path.name())) {
            (None, true) => param.val().inner(),
            (Some(gradients), false) => {
                let value = param.val();
                value.grad_remove(gradients).unwrap_or_else(|| value.inner().zeros_like())
            }
            _ => return,
        };
        self.transaction = std::mem::take(&mut self.transaction).register(tensor);
    }
}
