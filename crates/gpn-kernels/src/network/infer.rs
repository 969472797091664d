//! Inference: batch norm folded into the convolutions, a few images at a time through all layers while they
//! are in the cache.

use super::Network;
use super::forward::read_tail;
use super::plan::Source;
use super::worker::{Worker, workspace};
use crate::ahead::Ahead;
use crate::buffer::Buffer;
use crate::conv::{Convolve, Direction, Output, PackWeights};
use crate::epilogue::{BiasRelu, Keep, Shortcut};
use crate::error::{KernelError, check_len};
use crate::norm::BatchNorm;
use crate::parallel::{Parts, Shared};
use crate::prologue::{self, ActivateAndPool};
use crate::reservation::Reservation;
use crate::team::Team;

/// Weights as inference reads them: batch norm folded in, in the order of the convolutions. Made by
/// [`Network::pack`] and good for any number of calls.
pub struct PackedWeights {
    layers: Vec<PackedLayer>,
}

struct PackedLayer {
    weights: Buffer,
    /// Added to each output channel.
    shift: Vec<f32>,
}

impl Network {
    /// Packs the weights for [`Network::infer`]: `params` in the order of [`Network::parameters`] and running statistics
    /// `buffers` in the order of [`Network::buffers`]. For a small backbone this takes about a fifth of the time of one
    /// image, so keep the result while the weights stay the same.
    pub fn pack(&self, params: &[&[f32]], buffers: &[Vec<f32>]) -> Result<PackedWeights, KernelError> {
        Self::check_tensors(&self.plan.parameters, params, "parameters")?;
        Self::check_tensors(&self.plan.buffers, buffers, "buffers")?;
        let longest = self.plan.layers.iter().map(|l| PackWeights::len(&l.shape)).max().unwrap_or(0);
        let mut plain = Buffer::zeroed(longest);
        let mut norm = BatchNorm::default();
        let mut layers = Vec::with_capacity(self.plan.layers.len());
        for (l, layer) in self.plan.layers.iter().enumerate() {
            let gamma_beta = (params[3 * l + 1], params[3 * l + 2]);
            let (mean, var) = (&buffers[2 * l], &buffers[2 * l + 1]);
            norm.set_from_running(gamma_beta, mean, var, layer.shape.output.c);
            let mut weights = Buffer::zeroed(PackWeights::len(&layer.shape));
            self.simd.run(PackWeights {
                shape: &layer.shape,
                direction: Direction::Forward,
                exact: false,
                weights: params[3 * l],
                scale: Some(&norm.scale),
                plain: &mut plain,
                out: &mut weights,
            });
            layers.push(PackedLayer { weights, shift: norm.shift.clone() });
        }
        Ok(PackedWeights { layers })
    }

    /// Embeds a batch with the running statistics and keeps nothing: the same numbers as
    /// [`Network::forward`] in [`super::Mode::Eval`] up to rounding, and faster. A forward pass
    /// before it can still be followed by its backward pass.
    ///
    /// Any number of threads may call this at once. A call uses the threads of the current rayon pool that no other pass
    /// uses: a single image, or a call on a busy machine, runs on the calling thread alone.
    pub fn infer(
        &self,
        weights: &PackedWeights,
        images: &[f32],
        n: usize,
        embeddings: &mut [f32],
    ) -> Result<(), KernelError> {
        self.check_batch(images.len(), n, embeddings.len())?;
        check_len("list of packed layers", weights.layers.len(), self.plan.layers.len())?;
        for (layer, packed) in self.plan.layers.iter().zip(&weights.layers) {
            check_len("packed weights", packed.weights.len(), PackWeights::len(&layer.shape))?;
            check_len("packed shift", packed.shift.len(), layer.shape.output.c)?;
        }
        let together = self.index.inference_group();
        let parts = Parts::of(n, together);
        let embeddings = Shared::new(embeddings, self.embedding_len());
        let tail_pad = self.index.of(self.plan.tail_map);
        let reservation = Reservation::free_threads(parts.count());
        let workers = self.take_workers(&reservation);
        Team::run_task(&workers, parts.count(), |part, worker| {
            let range = parts.range(part);
            for first in range.clone().step_by(together) {
                let group = first..(first + together).min(range.end);
                self.infer_group(weights, &images[first * self.image_len()..], group.len(), worker);
                let map = self.plan.tail_map;
                let maps = worker.pads[0][tail_pad].chunks_exact(map.padded_len());
                for (image, map) in group.zip(maps) {
                    // SAFETY: every image is asked for once.
                    read_tail(&self.plan, map, unsafe { embeddings.items(image..image + 1) });
                }
            }
        });
        self.workers.put(workers);
        Ok(())
    }

    /// Takes a group of images from the first layer to the tail's padded map. Block inputs live in the first
    /// pads, what is inside a block in the second.
    fn infer_group(&self, packed: &PackedWeights, images: &[f32], count: usize, worker: &mut Worker) {
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
            let PackedLayer { weights, shift } = &packed.layers[l];
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
                Output::BiasRelu(BiasRelu { bias: shift, shortcut, out: &mut out, map: output })
            };
            self.simd.run(Convolve {
                shape: &layer.shape,
                maps: &from[self.index.of(input)],
                images: count,
                exact: false,
                weights,
                work: workspace(&mut worker.tiles, Ahead::default()),
                output: result,
            });
            if target == Source::Pooled {
                self.pool(l, shift, count, &worker.dense, &mut worker.pads[0]);
            } else {
                worker.pads[usize::from(starts_block)][place] = out;
            }
        }
    }

    /// Adds the shift, applies ReLU and pools the outputs of layer `l`.
    fn pool(&self, l: usize, shift: &[f32], count: usize, dense: &[f32], pads: &mut [Buffer]) {
        let map = self.plan.layers[l].shape.output;
        let pooled = self.plan.layers.get(l + 1).map_or(self.plan.tail_map, |next| next.shape.input);
        let outs = pads[self.index.of(pooled)].chunks_exact_mut(pooled.padded_len());
        for (raw, out) in dense.chunks_exact(map.len()).take(count).zip(outs) {
            // The scale is in the weights already.
            self.simd.run(ActivateAndPool { raw, map, scale: &self.ones, shift, out, pooled });
        }
    }
}
