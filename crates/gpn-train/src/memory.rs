//! The memory: one prototype for each training class.

use gpn_data::benchmark::Store;
use gpn_data::loader::{Inputs, View};
use gpn_data::rng::{Purpose, Stream};
use gpn_model::{Embedder, Mode};
use serde::{Deserialize, Serialize};

use crate::error::TrainError;

/// Which batch-norm statistics the memory is computed with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryNorm {
    /// Running statistics, as at test time.
    #[default]
    Evaluation,
    /// Statistics of each class's own samples, which also move the running ones, as in the authors' code.
    Training,
}

/// Which images the memory is computed from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryView {
    /// Images after the test transform.
    #[default]
    Test,
    /// Random crops, mirrored at random, drawn anew at each refresh, as in the authors' code.
    Training,
}

/// Settings of the memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryConfig {
    /// Episodes between two refreshes; 0 for as often as `share` allows. Default 0.
    pub refresh_every: u64,
    /// Episode of the second refresh (the first comes before all episodes); the others follow `refresh_every` apart.
    /// 0 for no other rhythm than `refresh_every`. Default 0.
    pub refresh_from: u64,
    /// Largest share of the work that refreshes may take, by the number of samples they look at; used where
    /// `refresh_every` is 0. Default 0.1.
    pub share: f64,
    /// Samples of each class that a refresh looks at; 0 for all. Default 0.
    pub samples: usize,
    /// Batch-norm statistics of a refresh. Default `evaluation`.
    pub norm: MemoryNorm,
    /// Images that a refresh looks at. Default `test`.
    pub view: MemoryView,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self {
            refresh_every: 0,
            refresh_from: 0,
            share: 0.1,
            samples: 0,
            norm: MemoryNorm::default(),
            view: MemoryView::default(),
        }
    }
}

impl MemoryConfig {
    /// The same as used at test time, whatever training uses.
    #[must_use]
    pub fn as_tested(&self) -> Self {
        Self { norm: MemoryNorm::Evaluation, view: MemoryView::Test, ..self.clone() }
    }

    /// Whether a refresh comes before episode `t`; `refresh_every` is worked out.
    pub fn is_due(&self, t: u64) -> bool {
        t == 0
            || t.checked_sub(self.refresh_from).is_some_and(|since| since.is_multiple_of(self.refresh_every))
    }
}

/// Prototypes of all training classes, `[classes, dim]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// Length of a prototype.
    pub dim: usize,
    /// The prototypes, one after the other.
    pub prototypes: Vec<f32>,
}

impl Memory {
    /// The prototype of a class.
    pub fn of(&self, class: u32) -> &[f32] {
        &self.prototypes[class as usize * self.dim..][..self.dim]
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.prototypes.len().checked_div(self.dim).unwrap_or(0)
    }

    /// Computes the prototype of each class as the mean embedding of its samples.
    ///
    /// `samples_of[class]` lists the samples; refresh number `refresh` chooses among them where not all are wished.
    /// `augmented` is the training transform, for [`MemoryView::Training`].
    #[expect(clippy::too_many_arguments, reason = "what a refresh looks at, and how")]
    pub fn refresh(
        &mut self,
        embedder: &mut Embedder,
        store: &Store,
        samples_of: &[Vec<u32>],
        config: &MemoryConfig,
        augmented: &View,
        seed: u64,
        refresh: u64,
    ) -> Result<(), TrainError> {
        self.dim = embedder.embedding_len();
        self.prototypes.clear();
        let mut stream = Stream::new(seed, Purpose::Memory, refresh);
        let chosen: Vec<Vec<u32>> = samples_of
            .iter()
            .map(|samples| match config.samples {
                0 => samples.clone(),
                wished => stream.choose(samples, wished.min(samples.len())),
            })
            .collect();
        let view = match config.view {
            MemoryView::Test => &View::Eval,
            MemoryView::Training => augmented,
        };
        let crops = Crops { seed, first: CROPS + (refresh << 32) };
        let sums = match config.norm {
            MemoryNorm::Evaluation => sums_in_evaluation(embedder, store, &chosen, view, crops)?,
            MemoryNorm::Training => sums_in_training(embedder, store, &chosen, view, crops)?,
        };
        for (sum, samples) in sums.chunks_exact(self.dim).zip(&chosen) {
            let count = samples.len().max(1) as f64;
            self.prototypes.extend(sum.iter().map(|value| (value / count) as f32));
        }
        Ok(())
    }
}

/// Samples embedded at once.
const BATCH: usize = 256;
/// Samples that one thread prepares for it.
const PART: usize = 32;
/// The same as `BATCH` where they share batch-norm statistics: the number is the authors', since it decides what is computed.
const TRAINING_BATCH: usize = 200;
/// Crops are drawn from streams that the choice of samples does not use.
const CROPS: u64 = 1 << 63;

/// The streams that the crops of one refresh are drawn from: one for each part of the samples.
#[derive(Clone, Copy)]
struct Crops {
    seed: u64,
    first: u64,
}

impl Crops {
    fn of(self, part: usize) -> Stream {
        Stream::new(self.seed, Purpose::Memory, self.first + part as u64)
    }
}

fn sums_in_evaluation(
    embedder: &mut Embedder,
    store: &Store,
    chosen: &[Vec<u32>],
    view: &View,
    crops: Crops,
) -> Result<Vec<f64>, TrainError> {
    let dim = embedder.embedding_len();
    let owners: Vec<(usize, u32)> = chosen
        .iter()
        .enumerate()
        .flat_map(|(class, samples)| samples.iter().map(move |&sample| (class, sample)))
        .collect();
    let mut sums = vec![0.0; chosen.len() * dim];
    let samples: Vec<u32> = owners.iter().map(|&(_, sample)| sample).collect();
    let mut place = 0;
    embed_viewed(embedder, store, &samples, view, crops, |embeddings| {
        for embedding in embeddings.chunks_exact(dim) {
            let class = owners[place].0;
            for (sum, &value) in sums[class * dim..][..dim].iter_mut().zip(embedding) {
                *sum += f64::from(value);
            }
            place += 1;
        }
    })?;
    Ok(sums)
}

fn sums_in_training(
    embedder: &mut Embedder,
    store: &Store,
    chosen: &[Vec<u32>],
    view: &View,
    crops: Crops,
) -> Result<Vec<f64>, TrainError> {
    let dim = embedder.embedding_len();
    let mut prepare = Inputs::new(input_size(embedder), view)?;
    let (mut inputs, mut sums) = (Vec::new(), Vec::with_capacity(chosen.len() * dim));
    for (class, samples) in chosen.iter().enumerate() {
        let mut stream = crops.of(class);
        let start = sums.len();
        sums.resize(start + dim, 0.0);
        for batch in samples.chunks(TRAINING_BATCH) {
            prepare.fill(store, batch, &mut stream, &mut inputs)?;
            for embedding in embedder.forward(&inputs, Mode::Train)?.chunks_exact(dim) {
                for (sum, &value) in sums[start..].iter_mut().zip(embedding) {
                    *sum += f64::from(value);
                }
            }
        }
    }
    Ok(sums)
}

/// Embeds samples after the test transform, in order, handing over `[some, dim]` at a time.
pub(crate) fn embed_samples(
    embedder: &mut Embedder,
    store: &Store,
    samples: &[u32],
    take: impl FnMut(&[f32]),
) -> Result<(), TrainError> {
    // The test transform draws nothing.
    embed_viewed(embedder, store, samples, &View::Eval, Crops { seed: 0, first: CROPS }, take)
}

fn embed_viewed(
    embedder: &mut Embedder,
    store: &Store,
    samples: &[u32],
    view: &View,
    crops: Crops,
    mut take: impl FnMut(&[f32]),
) -> Result<(), TrainError> {
    use rayon::prelude::*;

    let size = input_size(embedder);
    for (number, batch) in samples.chunks(BATCH).enumerate() {
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

/// Height and width of the images an embedder takes; of no matter for embeddings.
pub(crate) fn input_size(embedder: &Embedder) -> u32 {
    match embedder.input() {
        gpn_model::InputShape::Image { height, .. } => height as u32,
        gpn_model::InputShape::Embedding { .. } => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refreshes_follow_their_rhythm() {
        let due = |refresh_from| -> Vec<u64> {
            let config = MemoryConfig { refresh_every: 300, refresh_from, ..MemoryConfig::default() };
            (0..1_000).filter(|&t| config.is_due(t)).collect()
        };
        assert_eq!(due(0), [0, 300, 600, 900]);
        assert_eq!(due(100), [0, 100, 400, 700]);
    }
}
