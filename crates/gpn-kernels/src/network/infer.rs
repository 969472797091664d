//! Inference: batch norm folded into the convolutions, a few images at a time through all layers while they
//! are in the cache.

use super::Network;
use super::forward::read_tail;
use super::plan::Source;
use super::worker::{Worker, workspace};
use crate::ahead::Ahead;
use crate::buffer::Buffer;
use crate::conv::{Convolve, Direction, Output};
use crate::crew::Crew;
use crate::epilogue::{BiasRelu, Keep, Shortcut};
use crate::error::KernelError;
use crate::parallel::{Parts, Shared};
use crate::prologue::{self, ActivateAndPool};

impl Network {
    /// Embeds a batch with the running statistics and keeps nothing: the same numbers as
    /// [`Network::forward`] in [`super::Mode::Eval`] up to rounding, and faster. A forward pass
    /// before it can still be followed by its backward pass.
    pub fn infer(
        &mut self,
        params: &[&[f32]],
        buffers: &[Vec<f32>],
        images: &[f32],
        n: usize,
        embeddings: &mut [f32],
    ) -> Result<(), KernelError> {
        Self::check_tensors(&self.plan.parameters, params, "parameters")?;
        Self::check_tensors(&self.plan.buffers, buffers, "buffers")?;
        self.check_batch(images.len(), n, embeddings.len())?;
        for (l, layer) in self.plan.layers.iter().enumerate() {
            let gamma_beta = (params[3 * l + 1], params[3 * l + 2]);
            let (mean, var) = (&buffers[2 * l], &buffers[2 * l + 1]);
            self.folded[l].set_from_running(gamma_beta, mean, var, layer.shape.output.c);
        }
        self.with_crew(|net, crew| {
            let folded = std::mem::take(&mut net.folded);
            net.pack(crew, 0, Direction::Forward, false, params, Some(&folded));
            net.folded = folded;
            net.infer_all(crew, images, n, embeddings);
        });
        Ok(())
    }

    fn infer_all(&self, crew: &Crew<'_, Worker>, images: &[f32], n: usize, embeddings: &mut [f32]) {
        let together = self.index.inference_group();
        let parts = Parts::of(n, together);
        let embeddings = Shared::new(embeddings, self.embedding_len());
        let tail_pad = self.index.of(self.plan.tail_map);
        crew.for_each(parts.count(), |part, worker| {
            let range = parts.range(part);
            for first in range.clone().step_by(together) {
                let group = first..(first + together).min(range.end);
                self.infer_group(&images[first * self.image_len()..], group.len(), worker);
                let map = self.plan.tail_map;
                let maps = worker.pads[0][tail_pad].chunks_exact(map.padded_len());
                for (image, map) in group.zip(maps) {
                    // SAFETY: every image is asked for once.
                    read_tail(&self.plan, map, unsafe { embeddings.items(image..image + 1) });
                }
            }
        });
    }

    /// Takes a group of images from the first layer to the tail's padded map. Block inputs live in the first
    /// pads, what is inside a block in the second.
    fn infer_group(&self, images: &[f32], count: usize, worker: &mut Worker) {
        let layers = &self.plan.layers;
        for (l, layer) in layers.iter().enumerate() {
            let (input, output) = (layer.shape.input, layer.shape.output);
            let starts_block = layer.shortcut_from_input.is_some();
            let shortcut_stride = if l > 0 { layers[l - 1].shortcut_from_input } else { None };
            let target = layers.get(l + 1).map_or(self.plan.tail_source, |next| next.source);
            let [first, second] = &mut worker.pads;
            if layer.source == Source::Image {
                let maps = first[self.index.of(input)].chunks_exact_mut(input.padded_len());
                for (image, map) in images.chunks_exact(self.image_len()).take(count).zip(maps) {
                    prologue::image(input, image, map);
                }
            }
            let to = if starts_block { &mut *second } else { &mut *first };
            let place = self.index.of(output);
            // Taken out to be written while others are read; pooling goes by way of the dense maps.
            let mut out = Buffer::zeroed(0);
            if target != Source::Pooled {
                std::mem::swap(&mut out, &mut to[place]);
            }
            let bias = &self.folded[l].shift[..];
            let from = if shortcut_stride.is_some() { &*second } else { &*first };
            let result = if target == Source::Pooled {
                Output::Keep(Keep { out: &mut worker.dense, map: output })
            } else {
                let shortcut = match shortcut_stride {
                    None => Shortcut::None,
                    Some(1) => Shortcut::InPlace,
                    Some(_) => {
                        let map = layers[l - 1].shape.input;
                        Shortcut::Subsampled(&first[self.index.of(map)], map)
                    }
                };
                Output::BiasRelu(BiasRelu { bias, shortcut, out: &mut out, map: output })
            };
            self.simd.run(Convolve {
                shape: &layer.shape,
                maps: &from[self.index.of(input)],
                images: count,
                exact: false,
                weights: &self.packed[l],
                work: workspace(&mut worker.tiles, Ahead::default()),
                output: result,
            });
            if target == Source::Pooled {
                self.pool(l, count, &worker.dense, &mut worker.pads[0]);
            } else {
                worker.pads[usize::from(starts_block)][place] = out;
            }
        }
    }

    /// Adds the shift, applies ReLU and pools the outputs of layer `l`.
    fn pool(&self, l: usize, count: usize, dense: &[f32], pads: &mut [Buffer]) {
        let map = self.plan.layers[l].shape.output;
        let pooled = self.plan.layers.get(l + 1).map_or(self.plan.tail_map, |next| next.shape.input);
        let outs = pads[self.index.of(pooled)].chunks_exact_mut(pooled.padded_len());
        for (raw, out) in dense.chunks_exact(map.len()).take(count).zip(outs) {
            // The scale is in the weights already.
            let (scale, shift) = (&self.ones[..], &self.folded[l].shift[..]);
            self.simd.run(ActivateAndPool { raw, map, scale, shift, out, pooled });
        }
    }
}
