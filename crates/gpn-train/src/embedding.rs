//! Samples of a benchmark to embeddings, batch by batch.

use gpn_data::benchmark::Store;
use gpn_data::loader::{Inputs, View};
use gpn_data::rng::{Purpose, Stream};
use gpn_model::{Embedder, InputShape};
use rayon::prelude::*;

use crate::error::TrainError;
use crate::stop::StopHandle;

/// Samples embedded at once.
const BATCH: usize = 256;
/// Samples that one thread prepares for it.
const PART: usize = 32;

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

/// Embeds samples after the test transform, in order, handing over `[some, dim]` at a time.
pub(crate) fn embed_samples(
    embedder: &Embedder,
    store: &Store,
    samples: &[u32],
    stop: &StopHandle,
    take: impl FnMut(&[f32]),
) -> Result<(), TrainError> {
    // The test transform draws nothing.
    embed_viewed(embedder, store, samples, &View::Eval, Crops::of_refresh(0, 0), stop, take)
}

/// The same after the transform of a view.
pub(crate) fn embed_viewed(
    embedder: &Embedder,
    store: &Store,
    samples: &[u32],
    view: &View,
    crops: Crops,
    stop: &StopHandle,
    mut take: impl FnMut(&[f32]),
) -> Result<(), TrainError> {
    let size = input_size(embedder);
    for (number, batch) in samples.chunks(BATCH).enumerate() {
        stop.check()?;
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
        take(&embedder.embed(&parts.concat())?);
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
