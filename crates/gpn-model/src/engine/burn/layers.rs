//! The layers the backbones are made of, as burn modules whose field names give PyTorch's parameter names.

use burn::module::{Module, Param};
use burn::tensor::module::{batch_norm, batch_norm_train, conv2d};
use burn::tensor::ops::ConvOptions;
use burn::tensor::{Device, Tensor};

use super::{Pass, pytorch_order};
use crate::backbone::Mode;

/// Added to a variance before its square root is taken.
const EPSILON: f64 = 1e-5;
/// Weight of a batch's statistics in the running ones.
const MOMENTUM: f64 = 0.1;

/// Convolution without bias, padded so that stride 1 keeps the size.
#[derive(Module, Debug)]
pub(super) struct Convolution {
    /// `[outputs, inputs, kernel, kernel]`.
    weight: Param<Tensor<4>>,
    stride: usize,
    padding: usize,
}

impl Convolution {
    /// A convolution with weights of zero; the embedder gives it its values.
    pub(super) fn new(inputs: usize, outputs: usize, kernel: usize, stride: usize, device: &Device) -> Self {
        let weight = Param::from_tensor(Tensor::zeros([outputs, inputs, kernel, kernel], device));
        Self { weight, stride, padding: kernel / 2 }
    }

    /// `input: [n, inputs, h, w]` to `[n, outputs, ceil(h / stride), ceil(w / stride)]`.
    pub(super) fn forward(&self, input: Tensor<4>, pass: Pass) -> Tensor<4> {
        let options = ConvOptions::new([self.stride; 2], [self.padding; 2], [1, 1], 1);
        if pass.exact {
            return pytorch_order::convolve(input, self.weight.val(), options);
        }
        conv2d(input, self.weight.val(), None, options)
    }
}

/// Batch norm over `[n, channels, h, w]` whose mode is an argument: burn's own ties it to autodiff, but gradients
/// in evaluation mode and statistics without gradients are both needed.
#[derive(Module, Debug)]
pub(super) struct BatchNorm {
    weight: Param<Tensor<1>>,
    bias: Param<Tensor<1>>,
    running_mean: Param<Tensor<1>>,
    running_var: Param<Tensor<1>>,
}

impl BatchNorm {
    /// Batch norm that starts as identity.
    pub(super) fn new(channels: usize, device: &Device) -> Self {
        let constant = |value: f32| Param::from_tensor(Tensor::full([channels], value, device));
        Self {
            weight: constant(1.0),
            bias: constant(0.0),
            running_mean: constant(0.0).set_require_grad(false),
            running_var: constant(1.0).set_require_grad(false),
        }
    }

    /// Normalises by the batch's statistics and updates the running ones (`Mode::Train`), or by the running ones.
    pub(super) fn forward(&mut self, input: Tensor<4>, pass: Pass) -> Tensor<4> {
        if !pass.exact {
            return self.normalise(input, pass.mode);
        }
        let (mean, rate) = match pass.mode {
            Mode::Train => pytorch_order::statistics(&input, EPSILON),
            Mode::Eval => (self.running_mean.val(), (self.running_var.val() + EPSILON).sqrt().recip()),
        };
        let values = pytorch_order::affine(&input, [self.weight.val(), self.bias.val(), mean, rate]);
        pytorch_order::with_values(self.normalise(input, pass.mode), values)
    }

    fn normalise(&mut self, input: Tensor<4>, mode: Mode) -> Tensor<4> {
        let (weight, bias) = (self.weight.val(), self.bias.val());
        if mode == Mode::Eval {
            let (mean, variance) = (self.running_mean.val(), self.running_var.val());
            return batch_norm(input, weight, bias, mean, variance, EPSILON);
        }
        let [n, _, height, width] = input.dims();
        let samples = (n * height * width) as f64;
        let batch = batch_norm_train(input, weight, bias, EPSILON);
        let unbiased = batch.variance.detach() * (samples / (samples - 1.0).max(1.0));
        self.running_mean = blend(&self.running_mean, batch.mean.detach());
        self.running_var = blend(&self.running_var, unbiased);
        batch.output
    }
}

/// `(1 - MOMENTUM) * running + MOMENTUM * batch`.
fn blend(running: &Param<Tensor<1>>, batch: Tensor<1>) -> Param<Tensor<1>> {
    running.clone().map(|running| (running * (1.0 - MOMENTUM) + batch * MOMENTUM).detach())
}

/// Linear map `x W^T + b`.
#[derive(Module, Debug)]
pub(super) struct Linear {
    /// `[outputs, inputs]`, as in PyTorch.
    weight: Param<Tensor<2>>,
    bias: Param<Tensor<1>>,
}

impl Linear {
    /// A map with weights of zero; the embedder gives it its values.
    pub(super) fn new(inputs: usize, outputs: usize, device: &Device) -> Self {
        Self {
            weight: Param::from_tensor(Tensor::zeros([outputs, inputs], device)),
            bias: Param::from_tensor(Tensor::zeros([outputs], device)),
        }
    }

    /// `input: [n, inputs]` to `[n, outputs]`.
    pub(super) fn forward(&self, input: Tensor<2>) -> Tensor<2> {
        input.matmul(self.weight.val().transpose()) + self.bias.val().unsqueeze()
    }
}
