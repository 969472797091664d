//! Forward pass that keeps what backward needs.

use super::batch::Batch;
use super::plan::{Plan, Tail};
use super::worker::{Worker, group_size, groups, workspace};
use super::{Mode, Network, total};
use crate::conv::{Convolve, Direction, Output};
use crate::epilogue::{ChannelSums, KeepWithSums};
use crate::error::KernelError;
use crate::norm::{centre, sums_of_maps};
use crate::parallel::{Parts, Shared};
use crate::tail;
use crate::team::Team;

impl Network {
    /// Embeds a batch and keeps what [`Network::backward`] needs.
    ///
    /// - `params`: in the order of [`Network::parameters`]
    /// - `buffers`: in the order of [`Network::buffers`]; changed in [`Mode::Train`]
    /// - `images`: `[n, 3, h, w]`, normalised
    /// - `embeddings`: `[n, embedding_len]`, overwritten
    pub fn forward(
        &mut self,
        mode: Mode,
        params: &[&[f32]],
        buffers: &mut [Vec<f32>],
        images: &[f32],
        n: usize,
        embeddings: &mut [f32],
    ) -> Result<(), KernelError> {
        Self::check_tensors(&self.plan.parameters, params, "parameters")?;
        Self::check_tensors(&self.plan.buffers, buffers, "buffers")?;
        self.check_batch(images.len(), n, embeddings.len())?;
        self.last_batch = Some(n);
        if n == 0 {
            return Ok(());
        }
        self.images.reserve(images.len());
        self.images[..images.len()].copy_from_slice(images);
        for (raw, layer) in self.raw.iter_mut().zip(&self.plan.layers) {
            raw.reserve(n * layer.shape.output.len());
        }
        for (kept, map) in self.kept.iter_mut().zip(&self.plan.kept) {
            kept.reserve(n * map.len());
        }
        self.with_team(|net, team| net.forward_layers(team, mode, params, buffers, n, embeddings));
        Ok(())
    }

    fn forward_layers(
        &mut self,
        team: &Team<'_, Worker>,
        mode: Mode,
        params: &[&[f32]],
        buffers: &mut [Vec<f32>],
        n: usize,
        embeddings: &mut [f32],
    ) {
        let exact = n <= self.exact_batch;
        self.pack_layers(team, |_| true, Direction::Forward, exact, params);
        for l in 0..self.plan.layers.len() {
            self.forward_layer(team, l, n);
            let map = self.plan.layers[l].shape.output;
            let gamma_beta = (params[3 * l + 1], params[3 * l + 2]);
            // invariant: `check_tensors` found two buffers per layer.
            let [mean, var] = &mut buffers[2 * l..2 * l + 2] else { unreachable!() };
            if mode == Mode::Train {
                let parts = self.parts(l, n).count();
                let sums = &mut self.sums[..2 * map.c];
                let count = n * map.h * map.w;
                if exact {
                    sums_of_maps(&self.raw[l][..n * map.len()], sums);
                } else {
                    total(&self.part_sums[0][..parts * 2 * map.c], sums);
                    centre(sums, count);
                }
                self.norms[l].set_from_batch(gamma_beta, sums, count, mean, var);
            } else {
                self.norms[l].set_from_running(gamma_beta, mean, var, map.c);
            }
        }
        self.forward_tail(team, n, embeddings);
    }

    /// Input, convolution and channel sums of one layer.
    fn forward_layer(&mut self, team: &Team<'_, Worker>, l: usize, n: usize) {
        let parts = self.parts(l, n);
        let layer = &self.plan.layers[l];
        let (input, output) = (layer.shape.input, layer.shape.output);
        let pad = self.index.of(input);
        let (before, current) = self.raw.split_at_mut(l);
        // An activation is kept while it is made for its first reader; shortcuts read those kept before.
        let (kept, to_keep) = self.kept.split_at_mut(layer.keeps.unwrap_or(self.plan.kept.len()));
        let keep = layer.keeps.map(|_| Shared::new(&mut to_keep[0][..], input.len()));
        let raw = Shared::new(&mut current[0][..], output.len());
        let sums = Shared::new(&mut self.part_sums[0], 2 * output.c);
        let (simd, plan, norms) = (self.simd, &self.plan, &self.norms[..]);
        let batch = Batch { simd, plan, images: &self.images, raw: before, kept, norms };
        let (weights, exact) = (&self.packed[l], n <= self.exact_batch);
        team.for_each(parts.count(), |part, worker| {
            // SAFETY: every part and every image is asked for once.
            let sums = unsafe { sums.items(part..part + 1) };
            sums.fill(0.0);
            for group in groups(&parts.range(part), group_size(&layer.shape, input)) {
                let images = group.len();
                let next = group.end..(group.end + images).min(n);
                let maps = &mut worker.pads[0][pad];
                for (image, out) in group.clone().zip(maps.chunks_exact_mut(input.padded_len())) {
                    // SAFETY: as above.
                    match keep.as_ref().map(|k| unsafe { k.items(image..image + 1) }) {
                        Some(keep) => batch.fill(layer.input, image, out, Some(keep)),
                        None => batch.fill_again(layer.input, image, out),
                    }
                }
                let sums = ChannelSums::new(&mut worker.short[0], sums, output.c);
                // SAFETY: as above.
                let out = unsafe { raw.items(group) };
                Convolve {
                    shape: &layer.shape,
                    direction: Direction::Forward,
                    maps,
                    images,
                    exact,
                    weights,
                    work: workspace(&mut worker.tiles, batch.ahead(layer.input, &next)),
                    output: Output::KeepWithSums(KeepWithSums { out, map: output, sums }),
                }
                .run(simd);
            }
        });
    }

    fn forward_tail(&mut self, team: &Team<'_, Worker>, n: usize, embeddings: &mut [f32]) {
        let plan = &self.plan;
        let (last, pad) = (plan.activations.len() - 1, self.index.of(plan.last().map));
        let embeddings = Shared::new(embeddings, plan.embedding_len());
        let batch = self.batch();
        let parts = Parts::of(n, 1);
        team.for_each(parts.count(), |part, worker| {
            for image in parts.range(part) {
                let map = &mut worker.pads[0][pad];
                batch.fill(last, image, map, None);
                // SAFETY: every image is asked for once.
                read_tail(plan, map, unsafe { embeddings.items(image..image + 1) });
            }
        });
    }

    /// Everything that the forward pass has kept.
    pub(super) fn batch(&self) -> Batch<'_> {
        Batch {
            simd: self.simd,
            plan: &self.plan,
            images: &self.images,
            raw: &self.raw,
            kept: &self.kept,
            norms: &self.norms,
        }
    }
}

/// The embedding of the last, padded map.
pub(super) fn read_tail(plan: &Plan, padded: &[f32], embedding: &mut [f32]) {
    let last = plan.last();
    match plan.tail {
        Tail::AveragePool => tail::average_pool(last.map, padded, embedding),
        Tail::Flatten => tail::flatten(last.map, last.channels, padded, embedding),
        Tail::Mean => tail::mean(last.map, padded, embedding),
    }
}
