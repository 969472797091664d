//! Inference: batch norm folded into the convolutions, a group of images at a time through all layers. Small
//! images stay in the cache on the way.

use super::forward::read_tail;
use super::plan::{IMAGE, Layer, Shortcut, Source};
use super::worker::{Worker, workspace};
use super::{Network, rows_of};
use crate::ahead::Ahead;
use crate::buffer::Buffer;
use crate::conv::{Convolve, Direction, Output, PackWeights, PackedForm};
use crate::epilogue::{BiasRelu, Keep, Shortcut as Past};
use crate::error::{KernelError, check_len};
use crate::norm::BatchNorm;
use crate::parallel::{Parts, Shared};
use crate::pool::{ActivateAndPool, Normalised, Pooling};
use crate::prologue;
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
    /// Packs the weights for [`Network::infer`]: `params` in the order of [`Network::parameters`] and running
    /// statistics `buffers` in the order of [`Network::buffers`]. For a small backbone this takes about a
    /// fifth of the time of one image, so keep the result while the weights stay the same.
    pub fn pack(&self, params: &[&[f32]], buffers: &[Vec<f32>]) -> Result<PackedWeights, KernelError> {
        Self::check_tensors(&self.plan.parameters, params, "parameters")?;
        Self::check_tensors(&self.plan.buffers, buffers, "buffers")?;
        let longest = self.plan.layers.iter().map(|l| PackWeights::block_len(&l.shape)).max().unwrap_or(0);
        let mut plain = Buffer::zeroed(longest);
        let mut norm = BatchNorm::default();
        let mut layers: Vec<PackedLayer> = Vec::with_capacity(self.plan.layers.len());
        for (l, layer) in self.plan.layers.iter().enumerate() {
            let gamma_beta = (params[3 * l + 1], params[3 * l + 2]);
            let (mean, var) = (&buffers[2 * l], &buffers[2 * l + 1]);
            norm.set_from_running(gamma_beta, mean, var, layer.shape.output.c);
            let mut weights = Buffer::zeroed(PackWeights::len(&layer.shape));
            let form = PackedForm::new(&layer.shape, Direction::Forward, false);
            let rows = Shared::new(&mut weights[..], form.len);
            for block in 0..form.blocks {
                self.simd.run(PackWeights {
                    shape: &layer.shape,
                    direction: Direction::Forward,
                    weights: params[3 * l],
                    scale: Some(&norm.scale),
                    block,
                    plain: &mut plain,
                    // SAFETY: every block is asked for once.
                    rows: &mut unsafe { rows_of(&rows, form, block) },
                });
            }
            let mut shift = norm.shift.clone();
            if let (Some(_), Source::Layer { main, .. }) =
                (layer.projection, self.plan.activations[layer.output].source)
            {
                // The output of the main convolution waits without its shift.
                for (shift, main) in shift.iter_mut().zip(&layers[main].shift) {
                    *shift += main;
                }
            }
            layers.push(PackedLayer { weights, shift });
        }
        Ok(PackedWeights { layers })
    }

    /// Embeds a batch with the running statistics and keeps nothing: the same numbers as
    /// [`Network::forward`] in [`super::Mode::Eval`] up to rounding, and faster. A forward pass
    /// before it can still be followed by its backward pass.
    ///
    /// Any number of threads may call this at once. A call uses the threads of the current rayon pool that no
    /// other pass uses: a single image, or a call on a busy machine, runs on the calling thread alone.
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
        let last = self.plan.last();
        let tail_pad = self.index.of(last.map);
        let reservation = Reservation::free_threads(parts.count());
        let workers = self.take_workers(&reservation);
        Team::run_task(&workers, parts.count(), |part, worker| {
            let range = parts.range(part);
            for first in range.clone().step_by(together) {
                let group = first..(first + together).min(range.end);
                self.infer_group(weights, &images[first * self.image_len()..], group.len(), worker);
                let maps = worker.pads[last.pad][tail_pad].chunks_exact(last.map.padded_len());
                for (image, map) in group.zip(maps) {
                    // SAFETY: every image is asked for once.
                    read_tail(&self.plan, map, unsafe { embeddings.items(image..image + 1) });
                }
            }
        });
        self.workers.put(workers);
        Ok(())
    }

    /// Takes a group of images from the first layer to the tail's padded map.
    fn infer_group(&self, packed: &PackedWeights, images: &[f32], count: usize, worker: &mut Worker) {
        let image = self.plan.activations[IMAGE].map;
        let maps = worker.pads[0][self.index.of(image)].chunks_exact_mut(image.padded_len());
        for (pixels, map) in images.chunks_exact(self.image_len()).take(count).zip(maps) {
            prologue::image(image, pixels, map);
        }
        for (l, layer) in self.plan.layers.iter().enumerate() {
            self.infer_layer(packed, l, layer, count, worker);
        }
    }

    /// The output of a layer, and the activation that is made from it. A shortcut's convolution comes after
    /// the main one, whose output waits in a dense map.
    fn infer_layer(
        &self,
        packed: &PackedWeights,
        l: usize,
        layer: &Layer,
        count: usize,
        worker: &mut Worker,
    ) {
        let plan = &self.plan;
        let (input, output) = (&plan.activations[layer.input], &plan.activations[layer.output]);
        let Source::Layer { shortcut, slope, pool, .. } = output.source else { return };
        let waits = matches!(shortcut, Shortcut::Projected(projection) if projection != l);
        let is_projection = layer.projection.is_some();
        let PackedLayer { weights, shift } = &packed.layers[l];
        let Worker { pads, tiles, dense, .. } = worker;
        let [main, second] = dense;
        let place = self.index.of(output.map);
        // Taken out to be written while others are read; while a layer waits, its input may still be there.
        let mut out = Buffer::zeroed(0);
        if !waits {
            std::mem::swap(&mut out, &mut pads[output.pad][place]);
        }
        let map = layer.shape.output;
        let result = if waits {
            Output::Keep(Keep { out: main, map })
        } else if pool.is_some() {
            Output::Keep(Keep { out: if is_projection { second } else { main }, map })
        } else {
            let shortcut = match shortcut {
                Shortcut::None => Past::None,
                Shortcut::Projected(_) => Past::Dense(main),
                Shortcut::Identity { stride: 1, .. } => Past::InPlace,
                Shortcut::Identity { of, .. } => {
                    let origin = &plan.activations[of];
                    Past::Subsampled(&pads[origin.pad][self.index.of(origin.map)], origin.map)
                }
            };
            Output::BiasRelu(BiasRelu { bias: shift, shortcut, slope, out: &mut out, map })
        };
        Convolve {
            shape: &layer.shape,
            direction: Direction::Forward,
            maps: &pads[input.pad][self.index.of(input.map)],
            images: count,
            exact: false,
            weights,
            work: workspace(tiles, Ahead::default()),
            output: result,
        }
        .run(self.simd);
        if let Some(window) = pool.filter(|_| !waits) {
            let outs = out.chunks_exact_mut(output.map.padded_len());
            for (image, out) in outs.enumerate().take(count) {
                let range = image * map.len()..(image + 1) * map.len();
                // The scales are in the weights already, and the sum of the shifts comes with the shortcut.
                let scale = &self.ones[..];
                let shortcut =
                    is_projection.then(|| Normalised { raw: &second[range.clone()], scale, shift });
                let shift = if is_projection { &self.zeros } else { shift };
                let main = Normalised { raw: &main[range], scale, shift };
                let pooling = Pooling { window, map, main, shortcut, slope };
                self.simd.run(ActivateAndPool { pooling, out, pooled: output.map });
            }
        }
        if !waits {
            worker.pads[output.pad][place] = out;
        }
    }
}
