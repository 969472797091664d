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

/// Settings of the memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryConfig {
    /// Episodes between two refreshes; 0 for as often as `share` allows. Default 0.
    pub refresh_every: u64,
    /// Largest share of the work that refreshes may take, by the number of samples they look at; used where
    /// `refresh_every` is 0. Default 0.1.
    pub share: f64,
    /// Samples of each class that a refresh looks at; 0 for all. Default 0.
    pub samples: usize,
    /// Batch-norm statistics of a refresh. Default `evaluation`.
    pub norm: MemoryNorm,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self { refresh_every: 0, share: 0.1, samples: 0, norm: MemoryNorm::default() }
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

    /// Computes the prototype of each class as the mean embedding of its samples (test transform).
    ///
    /// `samples_of[class]` lists the samples; refresh number `refresh` chooses among them where not all are wished.
    pub fn refresh(
        &mut self,
        embedder: &mut Embedder,
        store: &Store,
        samples_of: &[Vec<u32>],
        config: &MemoryConfig,
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
        let sums = match config.norm {
            MemoryNorm::Evaluation => sums_in_evaluation(embedder, store, &chosen)?,
            MemoryNorm::Training => sums_in_training(embedder, store, &chosen)?,
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

fn sums_in_evaluation(
    embedder: &mut Embedder,
    store: &Store,
    chosen: &[Vec<u32>],
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
    embed_samples(embedder, store, &samples, |embeddings| {
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
) -> Result<Vec<f64>, TrainError> {
    let dim = embedder.embedding_len();
    let mut prepare = Inputs::new(input_size(embedder), &View::Eval)?;
    let (mut inputs, mut sums) = (Vec::new(), Vec::with_capacity(chosen.len() * dim));
    // The test transform draws nothing.
    let mut stream = Stream::new(0, Purpose::Memory, 0);
    for samples in chosen {
        let start = sums.len();
        sums.resize(start + dim, 0.0);
        for batch in samples.chunks(BATCH) {
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
    mut take: impl FnMut(&[f32]),
) -> Result<(), TrainError> {
    use rayon::prelude::*;

    let size = input_size(embedder);
    for batch in samples.chunks(BATCH) {
        let parts: Vec<Vec<f32>> = batch
            .par_chunks(32)
            .map(|part| {
                let mut inputs = Vec::new();
                // The test transform draws nothing.
                let mut stream = Stream::new(0, Purpose::Memory, 0);
                Inputs::new(size, &View::Eval)?.fill(store, part, &mut stream, &mut inputs)?;
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
