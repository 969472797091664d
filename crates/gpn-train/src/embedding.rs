//! Samples of a benchmark to embeddings, batch by batch.

use gpn_data::benchmark::Store;
use gpn_data::loader::{Inputs, View};
use gpn_data::rng::{Purpose, Stream};
use gpn_model::{Embedder, InputShape};
use rayon::prelude::*;

use crate::distributed::Ranks;
use crate::error::TrainError;

/// Samples embedded at once.
const BATCH: usize = 256;
/// Samples that one thread prepares for it.
const PART: usize = 32;
/// Batches that each rank embeds between two meetings of all.
const TURN: usize = 16;

/// The streams that the crops of one pass over the samples are drawn from: one for each part of the samples.
#[derive(Clone, Copy)]
pub(crate) struct Crops {
    seed: u64,
    refresh: u64,
}

impl Crops {
    /// The streams of a refresh of the memory.
    pub(crate) fn of_refresh(seed: u64, refresh: u64) -> Self {
        Self { seed, refresh }
    }

    pub(crate) fn of(self, part: usize) -> Stream {
        Stream::of_part(self.seed, Purpose::MemoryCrops, self.refresh, part as u32)
    }
}

/// Embeds samples after the test transform, in order, handing over `[some, dim]` at a time. Ranks divide the work, and each
/// gets all embeddings.
pub(crate) fn embed_samples(
    embedder: &Embedder,
    store: &Store,
    samples: &[u32],
    ranks: Ranks<'_>,
    take: impl FnMut(&[f32]),
) -> Result<(), TrainError> {
    // The test transform draws nothing.
    embed_viewed(embedder, store, samples, &View::Eval, Crops::of_refresh(0, 0), ranks, take)
}

/// The same after the transform of a view.
pub(crate) fn embed_viewed(
    embedder: &Embedder,
    store: &Store,
    samples: &[u32],
    view: &View,
    crops: Crops,
    ranks: Ranks<'_>,
    mut take: impl FnMut(&[f32]),
) -> Result<(), TrainError> {
    let size = input_size(embedder);
    let embedded = |number: usize| -> Result<Vec<f32>, TrainError> {
        let batch = &samples[number * BATCH..samples.len().min((number + 1) * BATCH)];
        let parts: Vec<Vec<f32>> = batch
            .par_chunks(PART)
            .enumerate()
            .map(|(place, part)| {
                let mut inputs = Vec::new();
                let mut stream = crops.of(number * (BATCH / PART) + place);
                Inputs::new(size, view)?.fill(store, part, &mut stream, &mut inputs)?;
                Ok(inputs)
            })
            .collect::<Result<_, TrainError>>()?;
        Ok(embedder.embed(&parts.concat())?)
    };
    let batches = samples.len().div_ceil(BATCH);
    if ranks.is_alone() {
        for number in 0..batches {
            ranks.stop.check()?;
            take(&embedded(number)?);
        }
        return Ok(());
    }
    let turn = TURN * ranks.group.size();
    for first in (0..batches).step_by(turn) {
        let count = turn.min(batches - first);
        let rows = |rank: usize| {
            let own = ranks.part_of(rank, count);
            let end = |batch: usize| samples.len().min((first + batch) * BATCH);
            end(own.end) - end(own.start)
        };
        let mut own = Vec::new();
        for place in ranks.part_of(ranks.group.rank(), count) {
            // Where one rank stops here, all stop when they meet.
            if !ranks.stop.is_stopped() {
                own.extend(embedded(first + place)?);
            }
        }
        let dim = embedder.embedding_len();
        own.resize(rows(ranks.group.rank()) * dim, 0.0);
        let lengths: Vec<usize> = (0..ranks.group.size()).map(|rank| rows(rank) * dim).collect();
        take(&ranks.together(own, &lengths)?);
    }
    Ok(())
}

/// Height and width of the images that an embedder takes; not used for embeddings.
pub(crate) fn input_size(embedder: &Embedder) -> u32 {
    match embedder.input() {
        InputShape::Image { height, .. } => height as u32,
        InputShape::Embedding { .. } => 1,
    }
}
