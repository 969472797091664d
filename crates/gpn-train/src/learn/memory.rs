//! Refreshing the memory: the prototype of each training class is the mean embedding of its samples.

use gpn_data::benchmark::Store;
use gpn_data::loader::{Inputs, View};
use gpn_data::rng::{Purpose, Stream};
use gpn_model::{Embedder, Memory, Mode, Trainable as _};
use rayon::prelude::*;

use crate::distributed::Ranks;
use crate::embedding::{Crops, embed_viewed, input_size};
use crate::error::TrainError;
use crate::settings::{MemoryConfig, MemoryNorm, MemoryView};

/// Samples embedded at once where they share batch-norm statistics. The number is the authors': it decides what is computed.
const TRAINING_BATCH: usize = 200;
/// Classes whose samples are prepared at once for it.
const CLASSES_AHEAD: usize = 16;

/// What a refresh looks at.
pub struct Refresh<'a> {
    /// The samples of the benchmark.
    pub store: &'a Store,
    /// The samples of each training class.
    pub samples_of: &'a [Vec<u32>],
    /// Which of them, and how they are embedded.
    pub config: &'a MemoryConfig,
    /// The training transform, for [`MemoryView::Training`].
    pub augmented: &'a View,
    /// Seed of the run.
    pub seed: u64,
    /// The number of this refresh, which decides what is drawn.
    pub number: u64,
}

impl Refresh<'_> {
    /// Computes the prototypes of all classes. On an error the embedder is as before.
    ///
    /// Ranks divide the work where batch norm is in evaluation mode. In training mode running statistics move from class to
    /// class, and each rank does all of it.
    pub fn run<'a>(
        &self,
        embedder: &mut Embedder,
        ranks: impl Into<Ranks<'a>>,
    ) -> Result<Memory, TrainError> {
        let ranks = ranks.into();
        let dim = embedder.embedding_len();
        let mut stream = Stream::new(self.seed, Purpose::Memory, self.number);
        let chosen: Vec<Vec<u32>> = self
            .samples_of
            .iter()
            .map(|samples| match self.config.samples {
                0 => samples.clone(),
                wished => stream.choose(samples, wished.min(samples.len())),
            })
            .collect();
        let view = match self.config.view {
            MemoryView::Test => &View::Eval,
            MemoryView::Training => self.augmented,
        };
        let crops = Crops::of_refresh(self.seed, self.number);
        let sums = match self.config.norm {
            MemoryNorm::Evaluation => sums_in_evaluation(embedder, self.store, &chosen, view, crops, ranks)?,
            MemoryNorm::Training => {
                let buffers = embedder.buffers().clone();
                // No gradient follows, so that nothing hangs on the last bits.
                let exact = embedder.set_exact_batch(0);
                let sums = sums_in_training(embedder, self.store, &chosen, view, crops, ranks);
                embedder.set_exact_batch(exact);
                sums.inspect_err(|_| embedder.set_buffers(buffers))?
            }
        };
        let mut prototypes = Vec::with_capacity(sums.len());
        for (sum, samples) in sums.chunks_exact(dim).zip(&chosen) {
            let count = samples.len().max(1) as f64;
            prototypes.extend(sum.iter().map(|value| (value / count) as f32));
        }
        Ok(Memory::new(dim, prototypes))
    }
}

fn sums_in_evaluation(
    embedder: &Embedder,
    store: &Store,
    chosen: &[Vec<u32>],
    view: &View,
    crops: Crops,
    ranks: Ranks<'_>,
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
    embed_viewed(embedder, store, &samples, view, crops, ranks, |embeddings| {
        for embedding in embeddings.chunks_exact(dim) {
            let class = owners[place].0;
            add(&mut sums[class * dim..][..dim], embedding);
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
    ranks: Ranks<'_>,
) -> Result<Vec<f64>, TrainError> {
    let (dim, size) = (embedder.embedding_len(), input_size(embedder));
    let mut sums = vec![0.0; chosen.len() * dim];
    let classes: Vec<(usize, &Vec<u32>)> = chosen.iter().enumerate().collect();
    // Several classes are prepared at once, and embedded one after the other.
    for some in classes.chunks(CLASSES_AHEAD) {
        let prepared: Vec<Vec<Vec<f32>>> = some
            .par_iter()
            .map(|&(class, samples)| {
                let (mut inputs, mut stream) = (Inputs::new(size, view)?, crops.of(class));
                let batch = |batch: &[u32]| {
                    let mut values = Vec::new();
                    inputs.fill(store, batch, &mut stream, &mut values)?;
                    Ok(values)
                };
                samples.chunks(TRAINING_BATCH).map(batch).collect()
            })
            .collect::<Result<_, TrainError>>()?;
        for (&(class, _), batches) in some.iter().zip(&prepared) {
            for batch in batches {
                ranks.check()?;
                for embedding in embedder.forward(batch, Mode::Train)?.chunks_exact(dim) {
                    add(&mut sums[class * dim..][..dim], embedding);
                }
            }
        }
    }
    Ok(sums)
}

fn add(sums: &mut [f64], embedding: &[f32]) {
    for (sum, &value) in sums.iter_mut().zip(embedding) {
        *sum += f64::from(value);
    }
}
