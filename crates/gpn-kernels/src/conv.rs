//! One convolution of a group of images: the choice of method, and the epilogue it ends in.

use crate::direct::{self, Direct};
use crate::epilogue::{BiasRelu, Epilogue, Keep, KeepWithSums, Run, ThroughRelu, ToImages};
use crate::geometry::{CHANNEL_BLOCK, ConvShape, Map, padded_channels};
use crate::pool::ThroughPool;
use crate::simd::{Kernel, Simd, Vector};
use crate::strided;
use crate::weight_gradient::GradientOperands;
use crate::weights;
use crate::winograd::{self, Workspace};

/// Which way the data goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Inputs to outputs.
    Forward,
    /// Gradients of outputs to gradients of inputs.
    Backward,
}

/// Where the outputs go.
pub(crate) enum Output<'a> {
    Keep(Keep<'a>),
    KeepWithSums(KeepWithSums<'a>),
    ThroughRelu(ThroughRelu<'a>),
    ThroughPool(ThroughPool<'a>),
    BiasRelu(BiasRelu<'a>),
    ToImages(ToImages<'a>),
}

impl Output<'_> {
    /// The map of the outputs.
    fn map(&self) -> Map {
        match self {
            Self::Keep(e) => e.map,
            Self::KeepWithSums(e) => e.map,
            Self::ThroughRelu(e) => e.map,
            Self::ThroughPool(e) => e.map,
            Self::BiasRelu(e) => e.map,
            // An image stores its channels without padding; its gradient is computed with it.
            Self::ToImages(e) => Map { c: padded_channels(e.map.c), ..e.map },
        }
    }
}

/// Convolves the padded maps of a group of images.
pub(crate) struct Convolve<'a> {
    pub(crate) shape: &'a ConvShape,
    pub(crate) direction: Direction,
    pub(crate) maps: &'a [f32],
    pub(crate) images: usize,
    /// Whether a forward convolution is computed by its definition even where Winograd is faster.
    pub(crate) exact: bool,
    /// As left by [`PackWeights`] for the same shape and direction.
    pub(crate) weights: &'a [f32],
    pub(crate) work: Workspace<'a>,
    pub(crate) output: Output<'a>,
}

/// Sends a dense map through an epilogue, as if a convolution had made it.
pub(crate) struct Feed<'a> {
    pub(crate) dense: &'a [f32],
    pub(crate) map: Map,
    pub(crate) output: Output<'a>,
}

impl Kernel for Feed<'_> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector>(self) {
        assert!(self.dense.len() >= self.map.len());
        match self.output {
            Output::ThroughRelu(mut e) => {
                e.check(1);
                assert_eq!(e.map, self.map);
                feed::<V, _>(self.dense, self.map, &mut e);
            }
            Output::ThroughPool(mut e) => {
                e.check(1);
                assert_eq!(e.map, self.map);
                feed::<V, _>(self.dense, self.map, &mut e);
            }
            _ => unreachable!("only gradients are fed"),
        }
        V::finish_streams();
    }
}

#[inline(always)]
fn feed<V: Vector, E: Epilogue>(dense: &[f32], map: Map, epilogue: &mut E) {
    if V::IS_BLOCK {
        feed_vectors::<V, E, 1>(dense, map, epilogue);
    } else {
        feed_vectors::<V, E, 2>(dense, map, epilogue);
    }
}

/// `Q` vectors at a time.
#[inline(always)]
fn feed_vectors<V: Vector, E: Epilogue, const Q: usize>(dense: &[f32], map: Map, epilogue: &mut E) {
    for y in 0..map.h {
        for c in (0..map.c).step_by(Q * V::LANES) {
            for x in 0..map.w {
                // SAFETY: the pixel is inside the map, which `dense` was checked to hold.
                unsafe {
                    let mut values = [[V::zero()]; Q];
                    for (q, value) in values.iter_mut().enumerate() {
                        *value = [V::load(dense.as_ptr().add(map.at(y, x) + c + q * V::LANES))];
                    }
                    epilogue.take(Run { image: 0, y, x, x_step: 1, pixels: 1 }, c, &values);
                }
            }
        }
        epilogue.settle();
    }
}

impl Convolve<'_> {
    /// Convolves with an instruction set. Each method with each epilogue is a kernel of its own: in one large function the
    /// compiler runs out of registers.
    pub(crate) fn run(self, simd: Simd) {
        let Convolve { shape, direction, maps, images, exact, weights, work, output } = self;
        let is_forward = direction == Direction::Forward;
        assert_eq!(output.map(), if is_forward { shape.output } else { shape.input_gradient() });
        let operands = Operands { shape, maps, images, exact, weights, work };
        match output {
            Output::Keep(e) => {
                assert!(e.out.len() >= images * e.map.len());
                if is_forward {
                    operands.forward(simd, e);
                } else {
                    operands.backward_unit(simd, e);
                }
            }
            Output::KeepWithSums(e) => {
                e.check(images);
                operands.forward(simd, e);
            }
            Output::BiasRelu(e) => {
                e.check(images);
                operands.forward(simd, e);
            }
            Output::ThroughRelu(e) => {
                e.check(images);
                operands.backward(simd, e);
            }
            Output::ThroughPool(e) => {
                e.check(images);
                operands.backward(simd, e);
            }
            Output::ToImages(e) => {
                e.check(images);
                operands.backward(simd, e);
            }
        }
    }
}

/// What a convolution reads, apart from its epilogue.
struct Operands<'a> {
    shape: &'a ConvShape,
    maps: &'a [f32],
    images: usize,
    exact: bool,
    weights: &'a [f32],
    work: Workspace<'a>,
}

impl<'a> Operands<'a> {
    fn forward(self, simd: Simd, epilogue: impl Epilogue) {
        let (from, to) = (self.shape.input, self.shape.output);
        if self.shape.uses_winograd() && !self.exact {
            simd.run(ByWinograd { from, to, operands: self, epilogue });
        } else {
            simd.run(Directly { direct: self.direct(from, to), exact: self.exact, epilogue });
        }
    }

    /// The gradient of the input.
    fn backward(self, simd: Simd, epilogue: impl Epilogue) {
        let (from, to) = (self.shape.output, self.shape.input_gradient());
        if self.shape.uses_winograd() {
            simd.run(ByWinograd { from, to, operands: self, epilogue });
        } else if self.shape.stride == 2 {
            simd.run(BackOverStride { operands: self, epilogue });
        } else {
            simd.run(Directly { direct: self.direct(from, to), exact: false, epilogue });
        }
    }

    /// The gradient of what a 1x1 kernel reads.
    fn backward_unit(self, simd: Simd, epilogue: impl Epilogue) {
        assert_eq!(self.shape.kernel, 1);
        let direct = self.direct(self.shape.output, self.shape.input_gradient());
        simd.run(Directly { direct, exact: false, epilogue });
    }

    fn direct(&self, input: Map, output: Map) -> Direct<'a> {
        let shape = self.shape;
        Direct {
            input,
            output,
            kernel: shape.kernel,
            // Gradients of stride 2 come here for 1x1 kernels only, whose map has just the pixels under them.
            stride: if input == shape.input { shape.stride } else { 1 },
            is_wide: shape.is_wide(),
            maps: self.maps,
            images: self.images,
            weights: self.weights,
            ahead: self.work.ahead,
        }
    }
}

/// See [`winograd::convolve`].
struct ByWinograd<'a, E> {
    from: Map,
    to: Map,
    operands: Operands<'a>,
    epilogue: E,
}

impl<E: Epilogue> Kernel for ByWinograd<'_, E> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector>(mut self) {
        let Operands { maps, images, weights, mut work, .. } = self.operands;
        winograd::convolve::<V, E>(self.from, self.to, maps, images, weights, &mut work, &mut self.epilogue);
        V::finish_streams();
    }
}

/// See [`Direct`].
struct Directly<'a, E> {
    direct: Direct<'a>,
    exact: bool,
    epilogue: E,
}

impl<E: Epilogue> Kernel for Directly<'_, E> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector>(mut self) {
        if V::ROUNDS_ONCE || !self.exact {
            self.direct.run::<V, E>(&mut self.epilogue);
        } else {
            self.direct.run::<V::Fused, E>(&mut self.epilogue);
        }
        V::finish_streams();
    }
}

/// See [`strided::convolve_backward`].
struct BackOverStride<'a, E> {
    operands: Operands<'a>,
    epilogue: E,
}

impl<E: Epilogue> Kernel for BackOverStride<'_, E> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector>(mut self) {
        let Operands { shape, maps, images, weights, work, .. } = self.operands;
        strided::convolve_backward::<V, E>(shape, maps, images, weights, work.ahead, &mut self.epilogue);
        V::finish_streams();
    }
}

/// Writes the gradient of images under a kernel that has no faster way. See [`direct::image_gradient`].
pub(crate) struct ImageGradient<'a> {
    pub(crate) shape: &'a ConvShape,
    /// PyTorch's.
    pub(crate) weights: &'a [f32],
    pub(crate) maps: &'a [f32],
    pub(crate) images: usize,
    pub(crate) out: &'a mut [f32],
}

impl Kernel for ImageGradient<'_> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector>(self) {
        direct::image_gradient::<V>(self.shape, self.weights, self.maps, self.images, self.out);
    }
}

/// Brings a block of 16 channels (of outputs, backward of inputs) of PyTorch's weights into the order
/// [`Convolve`] reads.
pub(crate) struct PackWeights<'a> {
    pub(crate) shape: &'a ConvShape,
    pub(crate) direction: Direction,
    /// `[out_channels, in_channels, kernel, kernel]`
    pub(crate) weights: &'a [f32],
    /// Factor per stored output channel (forward only).
    pub(crate) scale: Option<&'a [f32]>,
    pub(crate) block: usize,
    /// Work space of [`PackWeights::block_len`] values.
    pub(crate) plain: &'a mut [f32],
    /// The block's part of each row of [`PackedForm`].
    pub(crate) rows: &'a mut [&'a mut [f32]],
}

/// How packed weights lie: rows of blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackedForm {
    pub(crate) rows: usize,
    pub(crate) blocks: usize,
    /// Values of a block in a row.
    pub(crate) len: usize,
}

impl PackedForm {
    /// `exact`: as in [`Convolve`].
    pub(crate) fn new(shape: &ConvShape, direction: Direction, exact: bool) -> PackedForm {
        let (from, to) = match direction {
            Direction::Forward => (shape.input.c, shape.output.c),
            Direction::Backward => (shape.output.c, padded_channels(shape.in_channels)),
        };
        let blocks = to / CHANNEL_BLOCK;
        if shape.uses_winograd() && !(exact && direction == Direction::Forward) {
            return PackedForm { rows: winograd::PLACES, blocks, len: from * CHANNEL_BLOCK };
        }
        // The taps of a strided gradient are apart, others lie in rows.
        let is_strided = direction == Direction::Backward && shape.stride == 2;
        let rows = if is_strided { shape.taps() } else { shape.kernel };
        PackedForm { rows, blocks, len: shape.taps() / rows * from * CHANNEL_BLOCK }
    }

    pub(crate) fn total(self) -> usize {
        self.rows * self.blocks * self.len
    }
}

impl PackWeights<'_> {
    /// Length that packed weights of a shape need at most, in either direction.
    pub(crate) fn len(shape: &ConvShape) -> usize {
        let pairs = padded_channels(shape.in_channels) * shape.output.c;
        if shape.uses_winograd() { winograd::PLACES * pairs } else { shape.taps() * pairs }
    }

    /// Length of a block before any transform.
    pub(crate) fn block_len(shape: &ConvShape) -> usize {
        shape.taps() * padded_channels(shape.in_channels).max(shape.output.c) * CHANNEL_BLOCK
    }
}

impl Kernel for PackWeights<'_> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector>(self) {
        let PackWeights { shape, weights, block, plain, rows, .. } = self;
        match (self.direction, shape.stride, shape.kernel) {
            (Direction::Forward, ..) => weights::pack_forward(shape, weights, self.scale, block, plain),
            (Direction::Backward, 2, 3) => weights::pack_strided_backward(shape, weights, block, plain),
            (Direction::Backward, ..) => weights::pack_backward(shape, weights, block, plain),
        }
        if rows.len() == winograd::PLACES {
            let pairs = rows[0].len();
            winograd::transform_weights::<V>(plain, pairs, rows);
        } else {
            let mut from = &plain[..];
            for row in rows {
                let (taps, rest) = from.split_at(row.len());
                row.copy_from_slice(taps);
                from = rest;
            }
        }
    }
}

/// Gradient of the weights from a group of images: added to `gradient` (or, where `is_first`, written over
/// it) in the form of [`FinishWeightGradient`].
pub(crate) struct WeightGradient<'a> {
    pub(crate) shape: &'a ConvShape,
    /// Padded maps of the inputs and of the output gradients.
    pub(crate) inputs: &'a [f32],
    pub(crate) gradients: &'a [f32],
    pub(crate) images: usize,
    pub(crate) gradient: &'a mut [f32],
    pub(crate) is_first: bool,
    pub(crate) work: Workspace<'a>,
}

impl WeightGradient<'_> {
    /// Sums with an instruction set.
    pub(crate) fn run(self, simd: Simd) {
        if self.shape.uses_winograd() {
            simd.run(WinogradWeightGradient(self));
        } else {
            simd.run(DirectWeightGradient(self));
        }
    }
}

/// See [`winograd::weight_gradient`].
struct WinogradWeightGradient<'a>(WeightGradient<'a>);

impl Kernel for WinogradWeightGradient<'_> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector>(self) {
        let WeightGradient { shape, inputs, gradients, images, gradient, is_first, mut work } = self.0;
        winograd::weight_gradient::<V>(shape, inputs, gradients, images, gradient, is_first, &mut work);
    }
}

/// See [`GradientOperands`].
struct DirectWeightGradient<'a>(WeightGradient<'a>);

impl Kernel for DirectWeightGradient<'_> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector>(self) {
        let WeightGradient { shape, inputs, gradients, images, gradient, is_first, work } = self.0;
        if is_first {
            gradient[..shape.weight_len()].fill(0.0);
        }
        GradientOperands { shape, inputs, gradients, images, ahead: work.ahead }.add_to::<V>(gradient);
    }
}

/// Turns the sums of [`WeightGradient`] into a gradient in the order of packed weights.
pub(crate) struct FinishWeightGradient<'a> {
    pub(crate) shape: &'a ConvShape,
    pub(crate) gradient: &'a [f32],
    pub(crate) out: &'a mut [f32],
}

impl Kernel for FinishWeightGradient<'_> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector>(self) {
        if self.shape.uses_winograd() {
            winograd::transform_weight_gradient::<V>(self.shape, self.gradient, self.out);
        } else {
            let len = self.shape.weight_len();
            self.out[..len].copy_from_slice(&self.gradient[..len]);
        }
    }
}

/// Adds the gradients of the parts of a batch in order, for one block of output channels, and leaves them in
/// PyTorch's order.
pub(crate) struct SumWeightGradient<'a> {
    pub(crate) shape: &'a ConvShape,
    pub(crate) parts: &'a [f32],
    /// Number of the block.
    pub(crate) block: usize,
    /// `[output channels of the block, in_channels, kernel, kernel]`
    pub(crate) out: &'a mut [f32],
}

impl Kernel for SumWeightGradient<'_> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector>(self) {
        let shape = self.shape;
        let (ci, co, kernel, taps) = (shape.input.c, shape.output.c, shape.kernel, shape.taps());
        for i in 0..shape.in_channels {
            for tap in 0..taps {
                let row = tap / kernel * co / CHANNEL_BLOCK + self.block;
                let at = ((row * kernel + tap % kernel) * ci + i) * CHANNEL_BLOCK;
                let mut sums = [0.0; CHANNEL_BLOCK];
                for part in self.parts.chunks_exact(shape.weight_len()) {
                    for (sum, value) in sums.iter_mut().zip(&part[at..at + CHANNEL_BLOCK]) {
                        *sum += value;
                    }
                }
                for (of_output, sum) in self.out.chunks_exact_mut(taps * shape.in_channels).zip(sums) {
                    of_output[i * taps + tap] = sum;
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "conv_tests.rs"]
mod tests;
