//! Layers on burn's `flex` back end, rounded as PyTorch rounds them.
//!
//! A value within rounding of zero may fall on either side of a ReLU, and in a batch of a few images that changes
//! the gradients visibly. gpn-kernels therefore sums small batches in the order of oneDNN, which is PyTorch's; here
//! burn's modules do the same, so that the two can be held together and against PyTorch's numbers.

use burn::tensor::module::conv2d;
use burn::tensor::ops::ConvOptions;
use burn::tensor::{DType, Tensor};

/// Input channels that oneDNN sums in one go; the sums of such blocks are added.
const BLOCK: usize = 16;
/// Input channels of the widest convolution that is split into blocks; wider ones would be slow in so many pieces.
const WIDEST: usize = 64;

/// Convolution, summed block by block of input channels.
pub(super) fn convolve(input: Tensor<4>, weight: Tensor<4>, options: ConvOptions<2>) -> Tensor<4> {
    let channels = input.dims()[1];
    if channels > WIDEST {
        return conv2d(input, weight, None, options);
    }
    // flex sums a few channels in another order than many.
    let (input, weight) = (fill_block(input), fill_block(weight));
    let blocks = (0..input.dims()[1]).step_by(BLOCK).map(|first| {
        let part = |tensor: &Tensor<4>| tensor.clone().narrow(1, first, BLOCK);
        conv2d(part(&input), part(&weight), None, options.clone())
    });
    // There is at least one channel, hence one block.
    blocks.reduce(|sum, block| sum + block).unwrap_or(input)
}

/// With channels of zeros behind, up to a multiple of a block.
fn fill_block(tensor: Tensor<4>) -> Tensor<4> {
    let [n, channels, height, width] = tensor.dims();
    let missing = channels.next_multiple_of(BLOCK) - channels;
    if missing == 0 {
        return tensor;
    }
    let zeros = Tensor::zeros([n, missing, height, width], &tensor.device());
    Tensor::cat(vec![tensor, zeros], 1)
}

/// Mean and inverse deviation of each channel: summed in double precision, squares of differences rounded to single
/// precision before.
pub(super) fn statistics(input: &Tensor<4>, epsilon: f64) -> (Tensor<1>, Tensor<1>) {
    let [n, _, height, width] = input.dims();
    let count = (n * height * width) as f64;
    let sum = |tensor: Tensor<4>| tensor.detach().cast(DType::F64).sum_dims_squeeze::<1, _>(&[0, 2, 3]);
    let mean = (sum(input.clone()) / count).cast(DType::F32);
    let difference = input.clone() - per_channel(mean.clone());
    let variance = sum(difference.clone() * difference).cast(DType::F32) / count;
    let rate = (variance.cast(DType::F64) + epsilon).sqrt().recip().cast(DType::F32);
    (mean, rate)
}

/// `(input - mean) * rate * weight + bias` as `input * scale + shift`, rounded once. No gradient flows.
pub(super) fn affine(input: &Tensor<4>, [weight, bias, mean, rate]: [Tensor<1>; 4]) -> Tensor<4> {
    let wide = |tensor: Tensor<1>| per_channel(tensor.detach().cast(DType::F64));
    let scale = rate * weight;
    let shift = wide(bias) - wide(mean) * wide(scale.clone());
    let shift = shift.cast(DType::F32).cast(DType::F64);
    (input.clone().detach().cast(DType::F64) * wide(scale) + shift).cast(DType::F32)
}

/// `[channels]` to `[1, channels, 1, 1]`.
fn per_channel(values: Tensor<1>) -> Tensor<4> {
    let channels = values.dims()[0];
    values.reshape([1, channels, 1, 1])
}

/// The gradients of `tensor` with other values, which differ from its own by rounding alone.
pub(super) fn with_values(tensor: Tensor<4>, values: Tensor<4>) -> Tensor<4> {
    // The difference of two near values is exact, and so the sum is `values`.
    let correction = values - tensor.clone().detach();
    tensor + correction
}
