//! Backward pass through the last forward pass.

use std::ops::Range;

use super::batch::{Batch, nth, of};
use super::plan::{Activation, IMAGE, Layer, Shortcut, Source, Tail};
use super::worker::{Worker, group_size, groups, workspace};
use super::{Network, total};
use crate::ahead::Ahead;
use crate::buffer::Buffer;
use crate::conv::{
    Convolve, Direction, Feed, FinishWeightGradient, ImageGradient, Output, SumWeightGradient, WeightGradient,
};
use crate::epilogue::{ChannelSums, Keep, ProjectedSums, ShortcutGradient, ThroughRelu, ToImages};
use crate::error::{KernelError, check_len};
use crate::geometry::{CHANNEL_BLOCK, IMAGE_CHANNELS};
use crate::parallel::{Parts, Shared};
use crate::pool::{PoolNormBackward, ThroughPool};
use crate::prologue::NormBackward;
use crate::tail;
use crate::team::Team;

impl Network {
    /// Gradients of the last [`Network::forward`], in its mode.
    ///
    /// - `params`: those of the forward pass
    /// - `grad_embeddings`: `[n, embedding_len]`
    /// - `grads`: in the order of [`Network::parameters`], overwritten
    /// - `grad_images`: `[n, 3, h, w]`, overwritten, where it is wanted
    pub fn backward(
        &mut self,
        params: &[&[f32]],
        grad_embeddings: &[f32],
        grads: &mut [Vec<f32>],
        grad_images: Option<&mut [f32]>,
    ) -> Result<(), KernelError> {
        self.backward_with(params, grad_embeddings, grads, grad_images, &mut |_, _| {})
    }

    /// [`Network::backward`], which says on the way which gradients are final: `on_final(first, grads)` is
    /// called after each layer, from the last to the first, when those of parameter `first` and of all behind
    /// it are.
    pub fn backward_with(
        &mut self,
        params: &[&[f32]],
        grad_embeddings: &[f32],
        grads: &mut [Vec<f32>],
        grad_images: Option<&mut [f32]>,
        on_final: &mut dyn FnMut(usize, &[Vec<f32>]),
    ) -> Result<(), KernelError> {
        let n = self.last_batch.ok_or(KernelError::NoForward)?;
        Self::check_tensors(&self.plan.parameters, params, "parameters")?;
        Self::check_tensors(&self.plan.parameters, grads, "gradients")?;
        check_len("grad_embeddings", grad_embeddings.len(), n * self.embedding_len())?;
        if let Some(images) = &grad_images {
            check_len("grad_images", images.len(), n * self.image_len())?;
        }
        if n == 0 {
            for grad in grads {
                grad.fill(0.0);
            }
            return Ok(());
        }
        for activation in &self.plan.activations[IMAGE + 1..] {
            self.gradients[activation.gradient].reserve(n * activation.map.len());
        }
        for layer in &self.plan.layers {
            if let Some(buffer) = layer.projection {
                self.gradients[buffer].reserve(n * layer.shape.input_gradient().len());
            }
        }
        let parts = (0..self.plan.layers.len())
            .map(|l| self.parts(l, n).count() * self.plan.layers[l].shape.weight_len())
            .max();
        self.part_gradients.reserve(parts.unwrap_or(0));
        let wanted = Wanted { grads, grad_images, on_final };
        self.with_team(|net, team| net.backward_layers(team, params, n, grad_embeddings, wanted));
        Ok(())
    }

    fn backward_layers(
        &mut self,
        team: &Team<'_, Worker>,
        params: &[&[f32]],
        n: usize,
        grad_embeddings: &[f32],
        wanted: Wanted<'_>,
    ) {
        let Wanted { grads, mut grad_images, on_final } = wanted;
        let wants_images = grad_images.is_some();
        // Weights of layers that read the images lead to the images only; `ImageGradient` takes larger
        // kernels as they are.
        let leads_on = |layer: &Layer| layer.input != IMAGE || (wants_images && layer.shape.kernel <= 3);
        self.pack_layers(team, leads_on, Direction::Backward, false, params);
        let mut summed = self.backward_tail(team, n, grad_embeddings);
        for l in (0..self.plan.layers.len()).rev() {
            let Layer { shape, projection, .. } = self.plan.layers[l];
            let sums = &mut self.sums[..2 * shape.output.c];
            // A shortcut's layer has sums of its own.
            let part_sums = &self.part_sums[usize::from(projection.is_some())];
            total(&part_sums[..summed.count() * 2 * shape.output.c], sums);
            // invariant: `check_tensors` found three tensors per layer.
            let [weight, gamma, beta] = &mut grads[3 * l..3 * l + 3] else { unreachable!() };
            self.norms[l].backward(sums, &mut self.form, gamma, beta);
            let parts = self.backward_layer(team, l, n, params[3 * l], grad_images.as_deref_mut());
            if projection.is_none() {
                summed = parts;
            }
            let parts = &self.part_gradients[..parts.count() * shape.weight_len()];
            let of_block = CHANNEL_BLOCK * shape.taps() * shape.in_channels;
            let len = weight.len();
            let blocks = Shared::new(weight, 1);
            team.for_each(shape.out_channels.div_ceil(CHANNEL_BLOCK), |block, _| {
                // SAFETY: every block is asked for once.
                let out = unsafe { blocks.items(block * of_block..((block + 1) * of_block).min(len)) };
                self.simd.run(SumWeightGradient { shape: &shape, parts, block, out });
            });
            on_final(3 * l, grads);
        }
    }

    /// Gradient of the last activation. Returns the parts whose channel sums it left.
    fn backward_tail(&mut self, team: &Team<'_, Worker>, n: usize, grad_embeddings: &[f32]) -> Parts {
        let last = self.plan.activations.len() - 1;
        let Activation { map, gradient, channels, .. } = self.plan.activations[last];
        let pad = self.index.of(map);
        // Taken out to be written while the rest is read.
        let mut buffer = std::mem::replace(&mut self.gradients[gradient], Buffer::zeroed(0));
        let mut part_sums = std::mem::take(&mut self.part_sums);
        let out = Shared::new(&mut buffer[..], map.len());
        let sums = SharedSums::new(&mut part_sums, map.c);
        let (simd, plan, batch) = (self.simd, &self.plan, self.batch());
        let parts = Parts::of(n, 1);
        team.for_each(parts.count(), |part, worker| {
            // SAFETY: every part is asked for once.
            let mut sums = unsafe { sums.of_part(part) };
            for image in parts.range(part) {
                let activated = &mut worker.pads[0][pad];
                batch.fill_again(last, image, activated);
                let dense = &mut worker.dense[0][..map.len()];
                let len = plan.embedding_len();
                let embedding = &grad_embeddings[image * len..(image + 1) * len];
                match plan.tail {
                    Tail::AveragePool => tail::spread_average(map, embedding, dense),
                    Tail::Flatten => tail::unflatten(map, channels, embedding, dense),
                    Tail::Mean => tail::spread_mean(map, embedding, dense),
                }
                // SAFETY: every image is asked for once.
                let out = unsafe { out.items(image..image + 1) };
                let group = image..image + 1;
                let output =
                    through(&batch, last, &group, activated, None, out, &mut sums, &mut worker.short);
                simd.run(Feed { dense, map, output });
            }
        });
        self.gradients[gradient] = buffer;
        self.part_sums = part_sums;
        parts
    }

    /// Gradient of the weights of layer `l`, and of the activation that it reads (or of the images). Returns
    /// the parts that it left sums of.
    fn backward_layer(
        &mut self,
        team: &Team<'_, Worker>,
        l: usize,
        n: usize,
        raw_weights: &[f32],
        grad_images: Option<&mut [f32]>,
    ) -> Parts {
        let parts = self.parts(l, n);
        let layer = self.plan.layers[l];
        let shape = layer.shape;
        let (input, output) = (shape.input, shape.output);
        let (input_pad, output_pad) = (self.index.of(input), self.index.of(output));
        let Activation { map: gradient_map, gradient: of_output, .. } = self.plan.activations[layer.output];
        let of_input = match layer.projection {
            Some(buffer) => Some(buffer),
            None if layer.input == IMAGE => None,
            None => Some(self.plan.activations[layer.input].gradient),
        };
        // Taken out to be written while the rest is read.
        let mut before =
            of_input.map(|buffer| std::mem::replace(&mut self.gradients[buffer], Buffer::zeroed(0)));
        let mut part_sums = std::mem::take(&mut self.part_sums);
        let mut part_gradients = std::mem::replace(&mut self.part_gradients, Buffer::zeroed(0));
        let out = Shared::new(before.as_deref_mut().unwrap_or_default(), shape.input_gradient().len());
        let wants_images = grad_images.is_some();
        let grad_images = Shared::new(grad_images.unwrap_or_default(), IMAGE_CHANNELS * input.h * input.w);
        let sums = SharedSums::new(&mut part_sums, shape.input_gradient().c);
        let weight_gradients = Shared::new(&mut part_gradients[..], shape.weight_len());
        let (simd, batch, form, weights) = (self.simd, self.batch(), &self.form, &self.packed[l]);
        let gradients = &self.gradients;
        team.for_each(parts.count(), |part, worker| {
            // SAFETY: every part is asked for once, and a shortcut's layer leaves no sums.
            let mut sums = layer.projection.is_none().then(|| unsafe { sums.of_part(part) });
            let range = parts.range(part);
            let [input_pads, gradient_pads, ..] = &mut worker.pads[..] else { return };
            let (inputs, output_gradients) = (&mut input_pads[input_pad], &mut gradient_pads[output_pad]);
            for group in groups(&range, group_size(&shape, input)) {
                let (first, images) = (group.start, group.len());
                let next = group.end..(group.end + images).min(n);
                let maps = inputs.chunks_exact_mut(input.padded_len());
                let gradient_maps = output_gradients.chunks_exact_mut(output.padded_len());
                for (image, (map, out)) in group.clone().zip(maps.zip(gradient_maps)) {
                    batch.fill_again(layer.input, image, map);
                    let gradient = nth(&gradients[of_output], gradient_map, image);
                    let raw = nth(&batch.raw[l], output, image);
                    if let Some(pooling) = batch.pooling(layer.output, &(image..image + 1)) {
                        let pooled = gradient_map;
                        simd.run(PoolNormBackward { gradient, pooled, pooling, raw, form, out });
                    } else {
                        simd.run(NormBackward { gradient, raw, map: output, form, out });
                    }
                }
                let gradient_ahead = of(&gradients[of_output], gradient_map, &next);
                let raw_ahead = of(&batch.raw[l], output, &next);
                WeightGradient {
                    shape: &shape,
                    inputs,
                    gradients: output_gradients,
                    images,
                    gradient: &mut worker.gradient,
                    is_first: first == range.start,
                    work: workspace(&mut worker.tiles, Ahead::new([gradient_ahead, raw_ahead, &[]])),
                }
                .run(simd);
                let past = layer.past.map(|past| {
                    let data = &gradients[past.buffer][first * past.map.len()..];
                    ShortcutGradient { data, map: past.map, stride: past.stride }
                });
                if layer.input == IMAGE && !wants_images {
                    continue;
                }
                let ahead = batch.ahead_again(layer.input, &next);
                let output = if layer.projection.is_some() {
                    // SAFETY: every image is asked for once.
                    Output::Keep(Keep { out: unsafe { out.items(group) }, map: shape.input_gradient() })
                } else if let Some(sums) = sums.as_mut().filter(|_| layer.input != IMAGE) {
                    // SAFETY: as above.
                    let out = unsafe { out.items(group.clone()) };
                    through(&batch, layer.input, &group, inputs, past, out, sums, &mut worker.short)
                } else {
                    // SAFETY: as above.
                    let out = unsafe { grad_images.items(group) };
                    if shape.kernel > 3 {
                        let maps = &output_gradients[..];
                        simd.run(ImageGradient { shape: &shape, weights: raw_weights, maps, images, out });
                        continue;
                    }
                    Output::ToImages(ToImages { out, map: input, channels: IMAGE_CHANNELS, shortcut: past })
                };
                Convolve {
                    shape: &shape,
                    direction: Direction::Backward,
                    maps: output_gradients,
                    images,
                    exact: false,
                    weights,
                    work: workspace(&mut worker.tiles, ahead),
                    output,
                }
                .run(simd);
            }
            simd.run(FinishWeightGradient {
                shape: &shape,
                gradient: &worker.gradient,
                // SAFETY: every part is asked for once.
                out: unsafe { weight_gradients.items(part..part + 1) },
            });
        });
        if let (Some(buffer), Some(gradient)) = (of_input, before) {
            self.gradients[buffer] = gradient;
        }
        self.part_sums = part_sums;
        self.part_gradients = part_gradients;
        parts
    }
}

/// What a backward pass leaves, and whom it tells.
struct Wanted<'a> {
    grads: &'a mut [Vec<f32>],
    grad_images: Option<&'a mut [f32]>,
    on_final: &'a mut dyn FnMut(usize, &[Vec<f32>]),
}

/// Where the gradient of an activation goes: through it, to the batch norms it was made from. `activated`:
/// its padded maps of a group of images; `out`: the gradients of the group.
#[expect(clippy::too_many_arguments, reason = "the borrows of a worker's parts cannot travel together")]
fn through<'a>(
    batch: &Batch<'a>,
    number: usize,
    group: &Range<usize>,
    activated: &'a [f32],
    shortcut: Option<ShortcutGradient<'a>>,
    out: &'a mut [f32],
    sums: &'a mut [&mut [f64]; 2],
    short: &'a mut [Vec<f32>; 2],
) -> Output<'a> {
    let Activation { source, map, .. } = batch.plan.activations[number];
    let Source::Layer { main, shortcut: made_with, slope, .. } = source else {
        unreachable!("the gradient of images goes through nothing")
    };
    let [main_sums, past_sums] = sums;
    let [main_short, past_short] = short;
    let sums = ChannelSums::new(main_short, main_sums, map.c);
    let projected = match made_with {
        Shortcut::Projected(layer) => Some(ProjectedSums {
            raw: batch.raw_of(layer, group),
            sums: ChannelSums::new(past_short, past_sums, map.c),
        }),
        _ => None,
    };
    if let Some(pooling) = batch.pooling(number, group) {
        Output::ThroughPool(ThroughPool { activated, pooling, shortcut, out, map, sums, projected })
    } else {
        let raw = batch.raw_of(main, group);
        Output::ThroughRelu(ThroughRelu { activated, raw, shortcut, slope, out, map, sums, projected })
    }
}

/// The channel sums of the parts of a batch, for a layer and for the shortcut's beside it.
struct SharedSums<'a>([Shared<'a, f64>; 2]);

impl<'a> SharedSums<'a> {
    fn new(sums: &'a mut [Vec<f64>; 2], channels: usize) -> Self {
        SharedSums(sums.each_mut().map(|sums| Shared::new(sums, 2 * channels)))
    }

    /// The sums of a part, set to zero.
    ///
    /// # Safety
    /// While the result lives, nobody else asks for this part.
    unsafe fn of_part(&self, part: usize) -> [&'a mut [f64]; 2] {
        // SAFETY: the caller's promise.
        self.0.each_ref().map(|sums| unsafe {
            let sums = sums.items(part..part + 1);
            sums.fill(0.0);
            sums
        })
    }
}
