//! One convolution of a group of images: the choice of method, and the epilogue it ends in.

use crate::direct;
use crate::epilogue::{BiasRelu, Epilogue, Keep, KeepWithSums, Run, ThroughPool, ThroughRelu, ToImages};
use crate::geometry::{CHANNEL_BLOCK, ConvShape, Map, padded_channels};
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

impl Output<'_> {
    /// The map of the outputs.
    fn map(&self) -> Map {
        match self {
            Self::Keep(e) => e.map,
            Self::KeepWithSums(e) => e.map(),
            Self::ThroughRelu(e) => e.map,
            Self::ThroughPool(e) => e.map,
            Self::BiasRelu(e) => e.map,
            // An image stores its channels without padding; its gradient is computed with it.
            Self::ToImages(e) => Map { c: padded_channels(e.map.c), ..e.map },
        }
    }

    /// Whether the outputs are gradients of inputs.
    fn is_backward(&self) -> bool {
        matches!(self, Self::ThroughRelu(_) | Self::ThroughPool(_) | Self::ToImages(_))
    }
}

/// Convolves the padded maps of a group of images.
pub(crate) struct Convolve<'a> {
    pub(crate) shape: &'a ConvShape,
    pub(crate) maps: &'a [f32],
    pub(crate) images: usize,
    /// Whether a forward convolution is computed by its definition even where Winograd is faster.
    pub(crate) exact: bool,
    /// As left by [`PackWeights`] for the same shape and the direction of the output.
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
    maps: &'a [f32],
    images: usize,
    exact: bool,
    weights: &'a [f32],
    work: Workspace<'a>,
}

impl Kernel for Convolve<'_> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector>(self) {
        let Convolve { shape, maps, images, exact, weights, work, output } = self;
        assert_eq!(output.map(), if output.is_backward() { shape.input_gradient() } else { shape.output });
        let operands = Operands { shape, maps, images, exact, weights, work };
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
        V::finish_streams();
    }
}

impl Operands<'_> {
    #[inline(always)]
    fn run<V: Vector, E: Epilogue<V> + Epilogue<V::Fused>>(mut self, epilogue: &mut E) {
        let (shape, maps, images, weights) = (self.shape, self.maps, self.images, self.weights);
        let ahead = self.work.ahead;
        if <E as Epilogue<V>>::IS_BACKWARD {
            let (from, to) = (shape.output, shape.input_gradient());
            if shape.uses_winograd() {
                winograd::convolve::<V, E>(from, to, maps, images, weights, &mut self.work, epilogue);
            } else if shape.stride == 2 {
                direct::convolve_strided_backward::<V, E>(shape, maps, images, weights, ahead, epilogue);
            } else {
                direct::convolve::<V, E>((from, to), 1, maps, images, weights, ahead, epilogue);
            }
        } else if shape.uses_winograd() && !self.exact {
            let (from, to) = (shape.input, shape.output);
            winograd::convolve::<V, E>(from, to, maps, images, weights, &mut self.work, epilogue);
        } else {
            let (from_to, stride) = ((shape.input, shape.output), shape.stride);
            if V::ROUNDS_ONCE || !self.exact {
                direct::convolve::<V, E>(from_to, stride, maps, images, weights, ahead, epilogue);
            } else {
                direct::convolve::<V::Fused, E>(from_to, stride, maps, images, weights, ahead, epilogue);
            }
        }
    }
}

/// Brings PyTorch's weights into the order [`Convolve`] reads.
pub(crate) struct PackWeights<'a> {
    pub(crate) shape: &'a ConvShape,
    pub(crate) direction: Direction,
    /// As in [`Convolve`].
    pub(crate) exact: bool,
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
        let transforms = shape.uses_winograd() && !(self.exact && self.direction == Direction::Forward);
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
            let (inputs, gradients) = (self.inputs, self.gradients);
            direct::add_weight_gradient::<V>(
                shape,
                inputs,
                gradients,
                images,
                self.gradient,
                self.work.ahead,
            );
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

/// Adds the gradients `[3][3][input.c][output.c]` of the parts of a batch in order, for one block of output channels,
/// and leaves them in PyTorch's order.
pub(crate) struct SumWeightGradient<'a> {
    pub(crate) shape: &'a ConvShape,
    pub(crate) parts: &'a [f32],
    /// Number of the block.
    pub(crate) block: usize,
    /// `[output channels of the block, in_channels, 3, 3]`
    pub(crate) out: &'a mut [f32],
}

impl Kernel for SumWeightGradient<'_> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector>(self) {
        let (ci, co, inputs) = (self.shape.input.c, self.shape.output.c, self.shape.in_channels);
        for tap in 0..9 {
            for i in 0..inputs {
                let at = (tap * ci + i) * co + self.block * CHANNEL_BLOCK;
                let mut sums = [0.0; CHANNEL_BLOCK];
                for part in self.parts.chunks_exact(9 * ci * co) {
                    for (sum, value) in sums.iter_mut().zip(&part[at..at + CHANNEL_BLOCK]) {
                        *sum += value;
                    }
                }
                for (of_output, sum) in self.out.chunks_exact_mut(9 * inputs).zip(sums) {
                    of_output[i * 9 + tap] = sum;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ahead::Ahead;
    use crate::simd::Simd;
    use crate::winograd::workspace_len;

    fn values(n: usize, seed: usize) -> Vec<f32> {
        (0..n).map(|i| ((i * 7919 + seed * 104_729) % 2003) as f32 / 1001.5 - 1.0).collect()
    }

    /// Padded maps from `[images, channels, h, w]`.
    fn pad(map: Map, channels: usize, data: &[f32]) -> Vec<f32> {
        let plane = map.h * map.w;
        let mut out = vec![0.0; data.len() / (channels * plane) * map.padded_len()];
        for (i, &value) in data.iter().enumerate() {
            let (image, c, pixel) = (i / (channels * plane), i / plane % channels, i % plane);
            out[image * map.padded_len() + map.padded_at(pixel / map.w, pixel % map.w) + c] = value;
        }
        out
    }

    /// Calls `f(input index, weight index, output index)` for every product of a convolution.
    fn each_product(shape: &ConvShape, images: usize, mut f: impl FnMut(usize, usize, usize)) {
        let (ci, co, input, output) = (shape.in_channels, shape.out_channels, shape.input, shape.output);
        for n in 0..images {
            for (o, y, x) in (0..co * output.h * output.w)
                .map(|i| (i / (output.h * output.w), i / output.w % output.h, i % output.w))
            {
                for (i, tap) in (0..ci * 9).map(|i| (i / 9, i % 9)) {
                    let (row, column) = (y * shape.stride + tap / 3, x * shape.stride + tap % 3);
                    if (1..=input.h).contains(&row) && (1..=input.w).contains(&column) {
                        f(
                            ((n * ci + i) * input.h + row - 1) * input.w + column - 1,
                            (o * ci + i) * 9 + tap,
                            ((n * co + o) * output.h + y) * output.w + x,
                        );
                    }
                }
            }
        }
    }

    fn assert_close(what: &str, got: &[f32], expected: &[f64]) {
        let size = expected.iter().fold(1e-3_f64, |m, v| m.max(v.abs()));
        for (g, e) in got.iter().zip(expected) {
            assert!((f64::from(*g) - e).abs() < 1e-5 * size, "{what}: {g} instead of {e}");
        }
    }

    fn check(simd: Simd, shape: &ConvShape, images: usize) {
        let what = format!("{} {shape:?} {images} images", simd.name());
        let (ci, co, input, output) = (shape.in_channels, shape.out_channels, shape.input, shape.output);
        let x = values(images * ci * input.h * input.w, 1);
        let w = values(co * ci * 9, 2);
        let g = values(images * co * output.h * output.w, 3);
        let (mut y, mut gx, mut gw) = (vec![0.0; g.len()], vec![0.0; x.len()], vec![0.0; w.len()]);
        each_product(shape, images, |i, tap, o| {
            y[o] += f64::from(x[i]) * f64::from(w[tap]);
            gx[i] += f64::from(g[o]) * f64::from(w[tap]);
            gw[tap] += f64::from(x[i]) * f64::from(g[o]);
        });
        let channels = input.c.max(output.c).next_multiple_of(CHANNEL_BLOCK);
        let (mut first, mut second) =
            (vec![0.0; workspace_len(channels)], vec![0.0; workspace_len(channels)]);
        let mut packed = vec![0.0; PackWeights::len(shape)];
        let mut plain = packed.clone();
        let (inputs, gradients) = (pad(input, ci, &x), pad(output, co, &g));

        for exact in [false, true] {
            simd.run(PackWeights {
                shape,
                direction: Direction::Forward,
                exact,
                weights: &w,
                scale: None,
                plain: &mut plain,
                out: &mut packed,
            });
            let mut dense = vec![9.0; images * output.len()];
            simd.run(Convolve {
                shape,
                maps: &inputs,
                images,
                exact,
                weights: &packed,
                work: Workspace { first: &mut first, second: &mut second, ahead: Ahead::default() },
                output: Output::Keep(Keep { out: &mut dense, map: output }),
            });
            let mut got = vec![0.0; y.len()];
            for (i, value) in got.iter_mut().enumerate() {
                let plane = output.h * output.w;
                *value = dense[(i / (co * plane) * plane + i % plane) * output.c + i / plane % co];
            }
            assert_close(&format!("forward (exact: {exact}) {what}"), &got, &y);
        }

        let direction = Direction::Backward;
        simd.run(PackWeights {
            shape,
            direction,
            exact: false,
            weights: &w,
            scale: None,
            plain: &mut plain,
            out: &mut packed,
        });
        let mut got = vec![9.0; x.len()];
        simd.run(Convolve {
            shape,
            maps: &gradients,
            images,
            exact: false,
            weights: &packed,
            work: Workspace { first: &mut first, second: &mut second, ahead: Ahead::default() },
            output: Output::ToImages(ToImages { out: &mut got, map: input, channels: ci }),
        });
        assert_close(&format!("gradient of the input {what}"), &got, &gx);

        let mut sums = vec![9.0; PackWeights::len(shape)];
        simd.run(WeightGradient {
            shape,
            inputs: &inputs,
            gradients: &gradients,
            images,
            gradient: &mut sums,
            is_first: true,
            work: Workspace { first: &mut first, second: &mut second, ahead: Ahead::default() },
        });
        let mut finished = vec![0.0; 9 * input.c * output.c];
        simd.run(FinishWeightGradient { shape, gradient: &sums, out: &mut finished });
        let mut got = vec![9.0; w.len()];
        let of_block = CHANNEL_BLOCK * 9 * ci;
        for (block, out) in got.chunks_mut(of_block).enumerate() {
            simd.run(SumWeightGradient { shape, parts: &finished, block, out });
        }
        assert_close(&format!("gradient of the weights {what}"), &got, &gw);
    }

    #[test]
    fn convolutions_agree_with_the_definition_at_odd_sizes() {
        for simd in Simd::available() {
            for (h, w) in [(1, 1), (7, 9), (4, 4), (2, 5), (13, 33)] {
                for (channels, is_image) in
                    [((3, 16), true), ((3, 5), true), ((16, 16), false), ((20, 33), false)]
                {
                    for (stride, images) in [(1, 1), (1, 3), (2, 1), (2, 2)] {
                        check(simd, &ConvShape::new(h, w, channels, stride, is_image), images);
                    }
                }
            }
            check(simd, &ConvShape::new(8, 8, (64, 64), 1, false), 4);
            check(simd, &ConvShape::new(21, 21, (32, 64), 2, false), 1);
        }
    }
}
