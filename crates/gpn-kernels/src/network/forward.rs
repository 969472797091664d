//! Forward pass that keeps what backward needs.

use super::batch::Batch;
use super::plan::{Source, Tail};
use super::worker::{Worker, group_size, groups, workspace};
use super::{Mode, Network, total};
use crate::conv::{Convolve, Direction, Output};
use crate::epilogue::{ChannelSums, KeepWithSums};
use crate::error::KernelError;
use crate::norm::{centre, sums_of_maps};
use crate::parallel::{Parts, Shared};
use crate::prologue;
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
        self.pack_layers(team, 0, Direction::Forward, exact, params);
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
                    total(&self.part_sums[..parts * 2 * map.c], sums);
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
        // A block output is written while its layer's input is made; the shortcuts read earlier ones.
        let number = match layer.source {
            Source::Block { kept: Some(number), .. } => number,
            _ => 0,
        };
        let (kept, to_keep) = self.kept.split_at_mut(number);
        let keeps = matches!(layer.source, Source::Block { kept: Some(_), .. });
        let keep = keeps.then(|| Shared::new(&mut to_keep[0][..], input.len()));
        let raw = Shared::new(&mut current[0][..], output.len());
        let sums = Shared::new(&mut self.part_sums, 2 * output.c);
        let batch = Batch::new(self.simd, &self.plan, &self.images, before, kept, &self.norms);
        let (simd, weights, exact) = (self.simd, &self.packed[l], n <= self.exact_batch);
        team.for_each(parts.count(), |part, worker| {
            // SAFETY: every part and every image is asked for once.
            let sums = unsafe { sums.items(part..part + 1) };
            sums.fill(0.0);
            for group in groups(&parts.range(part), group_size(input)) {
                let images = group.len();
                let next = group.end..(group.end + images).min(n);
                let maps = &mut worker.pads[0][pad];
                for (image, out) in group.clone().zip(maps.chunks_exact_mut(input.padded_len())) {
                    // SAFETY: as above.
                    let keep = keep.as_ref().map(|k| unsafe { k.items(image..image + 1) });
                    batch.fill(layer.source, l, input, image, out, keep);
                }
                let channel_sums = ChannelSums::new(&mut worker.short, sums, output.c);
                // SAFETY: as above.
                let out = unsafe { raw.items(group) };
                simd.run(Convolve {
                    shape: &layer.shape,
                    maps,
                    images,
                    exact,
                    weights,
                    work: workspace(&mut worker.tiles, batch.ahead(layer.source, l, &next)),
                    output: Output::KeepWithSums(KeepWithSums::new(out, images, output, channel_sums)),
                });
            }
        });
    }

    fn forward_tail(&mut self, team: &Team<'_, Worker>, n: usize, embeddings: &mut [f32]) {
        let plan = &self.plan;
        let pad = self.index.of(plan.tail_map);
        let embeddings = Shared::new(embeddings, plan.embedding_len());
        let batch = Batch::new(self.simd, plan, &self.images, &self.raw, &self.kept, &self.norms);
        let parts = Parts::of(n, 1);
        team.for_each(parts.count(), |part, worker| {
            for image in parts.range(part) {
                let map = &mut worker.pads[0][pad];
                batch.fill(plan.tail_source, plan.layers.len(), plan.tail_map, image, map, None);
                // SAFETY: every image is asked for once.
                read_tail(plan, map, unsafe { embeddings.items(image..image + 1) });
            }
        });
    }
}

/// The embedding of the last, padded map.
pub(super) fn read_tail(plan: &super::plan::Plan, map: &[f32], embedding: &mut [f32]) {
    match plan.tail {
        Tail::AveragePool => prologue::average_pool(plan.tail_map, map, embedding),
        Tail::Flatten => prologue::flatten(plan.tail_map, plan.tail_channels, map, embedding),
    }
}
