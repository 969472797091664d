//! One convolution of a group of images: the choice of method, and the epilogue it ends in.

use crate::direct;
use crate::epilogue::{BiasRelu, Epilogue, Keep, KeepWithSums, Run, ThroughPool, ThroughRelu, ToImages};
use crate::geometry::{ConvShape, Map, padded_channels};
use crate::simd::{Kernel, Vector};
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

/// Convolves the padded maps of a group of images.
pub(crate) struct Convolve<'a> {
    pub(crate) shape: &'a ConvShape,
    pub(crate) direction: Direction,
    pub(crate) maps: &'a [f32],
    pub(crate) images: usize,
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
    }
}

#[inline(always)]
fn feed<V: Vector, E: Epilogue<V>>(dense: &[f32], map: Map, epilogue: &mut E) {
    for y in 0..map.h {
        for c in (0..map.c).step_by(V::LANES) {
            for x in 0..map.w {
                // SAFETY: the pixel is inside the map, which `dense` was checked to hold.
                unsafe {
                    let value = V::load(dense.as_ptr().add(map.at(y, x) + c));
                    epilogue.take(Run { image: 0, y, x, x_step: 1, pixels: 1 }, c, &[value]);
                }
            }
        }
        epilogue.settle();
    }
}

/// What a convolution reads, apart from its epilogue.
struct Operands<'a> {
    shape: &'a ConvShape,
    direction: Direction,
    maps: &'a [f32],
    images: usize,
    weights: &'a [f32],
    work: Workspace<'a>,
}

impl Kernel for Convolve<'_> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector>(self) {
        let Convolve { shape, direction, maps, images, weights, work, output } = self;
        let operands = Operands { shape, direction, maps, images, weights, work };
        match output {
            Output::Keep(mut e) => {
                assert!(e.out.len() >= images * e.map.len());
                operands.run::<V, _>(&mut e);
            }
            Output::KeepWithSums(mut e) => operands.run::<V, _>(&mut e),
            Output::ThroughRelu(mut e) => {
                e.check(images);
                operands.run::<V, _>(&mut e);
            }
            Output::ThroughPool(mut e) => {
                e.check(images);
                operands.run::<V, _>(&mut e);
            }
            Output::BiasRelu(mut e) => {
                e.check(images);
                operands.run::<V, _>(&mut e);
            }
            Output::ToImages(mut e) => operands.run::<V, _>(&mut e),
        }
    }
}

impl Operands<'_> {
    #[inline(always)]
    fn run<V: Vector, E: Epilogue<V>>(mut self, epilogue: &mut E) {
        let (shape, maps, images, weights) = (self.shape, self.maps, self.images, self.weights);
        let (from, to) = match self.direction {
            Direction::Forward => (shape.input, shape.output),
            Direction::Backward => (shape.output, shape.input_gradient()),
        };
        if shape.uses_winograd() {
            let is_precise = self.direction == Direction::Forward;
            winograd::convolve::<V, E>(from, to, maps, images, weights, is_precise, &mut self.work, epilogue);
        } else if self.direction == Direction::Backward && shape.stride == 2 {
            direct::convolve_strided_backward::<V, E>(shape, maps, images, weights, epilogue);
        } else {
            direct::convolve::<V, E>(from, to, shape.stride, maps, images, weights, epilogue);
        }
    }
}

/// Brings PyTorch's weights into the order [`Convolve`] reads.
pub(crate) struct PackWeights<'a> {
    pub(crate) shape: &'a ConvShape,
    pub(crate) direction: Direction,
    /// `[out_channels, in_channels, 3, 3]`
    pub(crate) weights: &'a [f32],
    /// Factor per output channel (forward only).
    pub(crate) scale: Option<&'a [f32]>,
    /// Work space of [`PackWeights::len`] values.
    pub(crate) plain: &'a mut [f32],
    pub(crate) out: &'a mut [f32],
}

impl PackWeights<'_> {
    /// Length that packed weights of a shape need at most, in either direction.
    pub(crate) fn len(shape: &ConvShape) -> usize {
        let pairs = padded_channels(shape.in_channels) * shape.output.c;
        if shape.uses_winograd() { winograd::PLACES * pairs } else { 9 * pairs }
    }
}

impl Kernel for PackWeights<'_> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector>(self) {
        let shape = self.shape;
        let transforms = shape.uses_winograd();
        let (plain, out) = if transforms { (self.plain, Some(self.out)) } else { (self.out, None) };
        match (self.direction, shape.stride) {
            (Direction::Forward, _) => weights::pack_forward(shape, self.weights, self.scale, plain),
            (Direction::Backward, 1) => weights::pack_backward(shape, self.weights, plain),
            (Direction::Backward, _) => weights::pack_strided_backward(shape, self.weights, plain),
        }
        if let Some(out) = out {
            winograd::transform_weights::<V>(plain, shape.input.c * shape.output.c, out);
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

impl Kernel for WeightGradient<'_> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector>(mut self) {
        let (shape, images) = (self.shape, self.images);
        if shape.uses_winograd() {
            winograd::weight_gradient::<V>(
                shape,
                self.inputs,
                self.gradients,
                images,
                self.gradient,
                self.is_first,
                &mut self.work,
            );
        } else {
            if self.is_first {
                self.gradient[..9 * shape.input.c * shape.output.c].fill(0.0);
            }
            direct::add_weight_gradient::<V>(shape, self.inputs, self.gradients, images, self.gradient);
        }
    }
}

/// Turns the sums of [`WeightGradient`] into a gradient `[3][3][input.c][output.c]`.
pub(crate) struct FinishWeightGradient<'a> {
    pub(crate) shape: &'a ConvShape,
    pub(crate) gradient: &'a [f32],
    pub(crate) out: &'a mut [f32],
}

impl Kernel for FinishWeightGradient<'_> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector>(self) {
        let pairs = self.shape.input.c * self.shape.output.c;
        if self.shape.uses_winograd() {
            winograd::transform_weight_gradient::<V>(self.gradient, pairs, self.out);
        } else {
            self.out[..9 * pairs].copy_from_slice(&self.gradient[..9 * pairs]);
        }
    }
}
