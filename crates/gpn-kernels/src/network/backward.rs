//! Backward pass through the last forward pass.

use super::batch::{Batch, of};
use super::plan::{Source, Tail};
use super::worker::{Worker, group_size, groups, workspace};
use super::{Network, total};
use crate::ahead::Ahead;
use crate::buffer::Buffer;
use crate::conv::{
    Convolve, Direction, Feed, FinishWeightGradient, Output, SumWeightGradient, WeightGradient,
};
use crate::epilogue::{ChannelSums, ShortcutGradient, ThroughPool, ThroughRelu, ToImages};
use crate::error::{KernelError, check_len};
use crate::geometry::{CHANNEL_BLOCK, IMAGE_CHANNELS, Map};
use crate::parallel::{MOST_PARTS, Parts, Shared};
use crate::prologue::{self, NormBackward, PoolNormBackward};
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
        for l in 0..self.plan.layers.len() {
            self.gradients[l % 3].reserve(n * self.gradient_map(l).len());
        }
        let largest = self.plan.layers.iter().map(|l| 9 * l.shape.input.c * l.shape.output.c).max();
        self.part_gradients.reserve(MOST_PARTS * largest.unwrap_or(0));
        self.with_team(|net, team| net.backward_layers(team, params, n, grad_embeddings, grads, grad_images));
        Ok(())
    }

    fn backward_layers(
        &mut self,
        team: &Team<'_, Worker>,
        params: &[&[f32]],
        n: usize,
        grad_embeddings: &[f32],
        grads: &mut [Vec<f32>],
        mut grad_images: Option<&mut [f32]>,
    ) {
        // The first layer's weights lead to the images only.
        let first = usize::from(grad_images.is_none());
        self.pack_layers(team, first, Direction::Backward, false, params);
        let mut summed = self.backward_tail(team, n, grad_embeddings);
        for l in (0..self.plan.layers.len()).rev() {
            let shape = self.plan.layers[l].shape;
            let sums = &mut self.sums[..2 * shape.output.c];
            total(&self.part_sums[..summed.count() * 2 * shape.output.c], sums);
            // invariant: `check_tensors` found three tensors per layer.
            let [weight, gamma, beta] = &mut grads[3 * l..3 * l + 3] else { unreachable!() };
            self.norms[l].backward(sums, &mut self.form, gamma, beta);
            summed = self.backward_layer(team, l, n, grad_images.as_deref_mut());
            let parts = &self.part_gradients[..summed.count() * 9 * shape.input.c * shape.output.c];
            let of_block = CHANNEL_BLOCK * 9 * shape.in_channels;
            let blocks = Shared::new(weight, 1);
            team.for_each(shape.out_channels.div_ceil(CHANNEL_BLOCK), |block, _| {
                let end = ((block + 1) * of_block).min(9 * shape.in_channels * shape.out_channels);
                // SAFETY: every block is asked for once.
                let out = unsafe { blocks.items(block * of_block..end) };
                self.simd.run(SumWeightGradient { shape: &shape, parts, block, out });
            });
        }
    }

    /// The map in which the gradient of layer `l`'s batch norm is kept: that of whatever reads its output.
    fn gradient_map(&self, l: usize) -> Map {
        self.plan.layers.get(l + 1).map_or(self.plan.tail_map, |next| next.shape.input)
    }

    /// Gradient of the last batch norm. Returns the parts whose channel sums it left.
    fn backward_tail(&mut self, team: &Team<'_, Worker>, n: usize, grad_embeddings: &[f32]) -> Parts {
        let plan = &self.plan;
        let last = plan.layers.len() - 1;
        let (map, raw_map) = (plan.tail_map, plan.layers[last].shape.output);
        let pad = self.index.of(map);
        let out = Shared::new(&mut self.gradients[last % 3][..], map.len());
        let sums = Shared::new(&mut self.part_sums, 2 * map.c);
        let batch = Batch::new(self.simd, plan, &self.images, &self.raw, &self.kept, &self.norms);
        let (simd, norm, raw) = (self.simd, &self.norms[last], &self.raw[last]);
        let parts = Parts::of(n, 1);
        team.for_each(parts.count(), |part, worker| {
            // SAFETY: every part and every image is asked for once.
            let sums = unsafe { sums.items(part..part + 1) };
            sums.fill(0.0);
            for image in parts.range(part) {
                let activated = &mut worker.pads[0][pad];
                batch.fill_again(plan.tail_source, last + 1, map, image, activated);
                let dense = &mut worker.dense[..map.len()];
                let len = plan.embedding_len();
                let embedding = &grad_embeddings[image * len..(image + 1) * len];
                // SAFETY: as above.
                let out = unsafe { out.items(image..image + 1) };
                let sums = ChannelSums::new(&mut worker.short, sums, map.c);
                let raw = super::batch::nth(raw, raw_map, image);
                let output = match plan.tail {
                    Tail::AveragePool => {
                        prologue::spread_average(map, embedding, dense);
                        Output::ThroughRelu(ThroughRelu { activated, raw, shortcut: None, out, map, sums })
                    }
                    Tail::Flatten => {
                        prologue::unflatten(map, plan.tail_channels, embedding, dense);
                        let (scale, shift) = (&norm.scale[..], &norm.shift[..]);
                        Output::ThroughPool(ThroughPool {
                            activated,
                            raw,
                            raw_map,
                            scale,
                            shift,
                            out,
                            map,
                            sums,
                        })
                    }
                };
                simd.run(Feed { dense, map, output });
            }
        });
        parts
    }

    /// Gradient of the weights of layer `l`, and of the batch norm before it (or of the images). Returns the parts
    /// that it left sums of.
    fn backward_layer(
        &mut self,
        team: &Team<'_, Worker>,
        l: usize,
        n: usize,
        grad_images: Option<&mut [f32]>,
    ) -> Parts {
        let parts = self.parts(l, n);
        let plan = &self.plan;
        let layer = &plan.layers[l];
        let shape = layer.shape;
        let (input, output) = (shape.input, shape.output);
        let (input_pad, output_pad) = (self.index.of(input), self.index.of(output));
        let next_source = plan.layers.get(l + 1).map_or(plan.tail_source, |next| next.source);
        let gradient_map = self.gradient_map(l);
        // The buffer of layer l - 1 is taken out, so that those of l and l + 1 can be read beside it.
        let mut before = std::mem::replace(&mut self.gradients[(l + 2) % 3], Buffer::zeroed(0));
        let (gradients, past) = (&self.gradients[l % 3], &self.gradients[(l + 1) % 3]);
        let out = Shared::new(&mut before[..], input.len());
        let wants_images = grad_images.is_some();
        let grad_images = Shared::new(grad_images.unwrap_or_default(), IMAGE_CHANNELS * input.h * input.w);
        let sums = Shared::new(&mut self.part_sums, 2 * shape.input_gradient().c);
        let weight_len = 9 * input.c * output.c;
        let part_gradients = Shared::new(&mut self.part_gradients[..], weight_len);
        let batch = Batch::new(self.simd, plan, &self.images, &self.raw, &self.kept, &self.norms);
        let (simd, norms, form, weights) = (self.simd, &self.norms, &self.form, &self.packed[l]);
        team.for_each(parts.count(), |part, worker| {
            // SAFETY: every part and every image is asked for once.
            let sums = unsafe { sums.items(part..part + 1) };
            sums.fill(0.0);
            let range = parts.range(part);
            let [input_pads, gradient_pads] = &mut worker.pads;
            let (inputs, output_gradients) = (&mut input_pads[input_pad], &mut gradient_pads[output_pad]);
            for group in groups(&range, group_size(input)) {
                let (first, images) = (group.start, group.len());
                let next = group.end..(group.end + images).min(n);
                let maps = inputs.chunks_exact_mut(input.padded_len());
                let gradient_maps = output_gradients.chunks_exact_mut(output.padded_len());
                for (image, (map, out)) in group.clone().zip(maps.zip(gradient_maps)) {
                    batch.fill_again(layer.source, l, input, image, map);
                    let gradient = super::batch::nth(gradients, gradient_map, image);
                    let raw = super::batch::nth(&batch.raw[l], output, image);
                    if next_source == Source::Pooled {
                        let pooled = gradient_map;
                        let norm = &norms[l];
                        simd.run(PoolNormBackward { gradient, pooled, raw, map: output, norm, form, out });
                    } else {
                        simd.run(NormBackward { gradient, raw, map: output, form, out });
                    }
                }
                let gradient_ahead = of(gradients, gradient_map, &next);
                let raw_ahead = of(&batch.raw[l], output, &next);
                simd.run(WeightGradient {
                    shape: &shape,
                    inputs,
                    gradients: output_gradients,
                    images,
                    gradient: &mut worker.gradient,
                    is_first: first == range.start,
                    work: workspace(&mut worker.tiles, Ahead::new([gradient_ahead, raw_ahead, &[]])),
                });
                let output = match layer.source {
                    Source::Image if !wants_images => continue,
                    Source::Image => {
                        // SAFETY: as above.
                        let out = unsafe { grad_images.items(group) };
                        Output::ToImages(ToImages { out, map: input, channels: IMAGE_CHANNELS })
                    }
                    source => {
                        let raw_map = plan.layers[l - 1].shape.output;
                        let raw = &batch.raw[l - 1][first * raw_map.len()..];
                        let sums = ChannelSums::new(&mut worker.short, sums, input.c);
                        // SAFETY: as above.
                        let out = unsafe { out.items(group) };
                        let (activated, map) = (&inputs[..], input);
                        if source == Source::Pooled {
                            let (scale, shift) = (&norms[l - 1].scale[..], &norms[l - 1].shift[..]);
                            let through =
                                ThroughPool { activated, raw, raw_map, scale, shift, out, map, sums };
                            Output::ThroughPool(through)
                        } else {
                            let shortcut = layer.shortcut_from_input.map(|stride| {
                                let map = plan.layers[l + 1].shape.output;
                                ShortcutGradient { data: &past[first * map.len()..], map, stride }
                            });
                            Output::ThroughRelu(ThroughRelu { activated, raw, shortcut, out, map, sums })
                        }
                    }
                };
                simd.run(Convolve {
                    shape: &shape,
                    maps: output_gradients,
                    images,
                    exact: false,
                    weights,
                    work: workspace(&mut worker.tiles, batch.ahead_again(layer.source, l, &next)),
                    output,
                });
            }
            simd.run(FinishWeightGradient {
                shape: &shape,
                gradient: &worker.gradient,
                // SAFETY: as above.
                out: unsafe { part_gradients.items(part..part + 1) },
            });
        });
        self.gradients[(l + 2) % 3] = before;
        parts
    }
}
