//! Fitting a method to the samples of the training classes, after the network is trained.

use gpn_data::benchmark::{Benchmark, Part, Split, Store};
use gpn_model::Embedder;
use gpn_model::methods::Method;
use gpn_model::prior::{TextRows, TrainingSamples};

use crate::distributed::Ranks;
use crate::embedding::embed_samples;
use crate::error::TrainError;

/// What a method is fitted with.
pub struct Fitting<'a> {
    /// The trained backbone.
    pub embedder: &'a Embedder,
    /// The benchmark that it was trained on.
    pub benchmark: &'a Benchmark,
    /// Embeddings of the training classes' texts, where there are any.
    pub texts: Option<&'a TextRows>,
    /// What is drawn depends on it.
    pub seed: u64,
}

/// Fits a method to samples, if it needs that.
pub fn fit_method<'a>(
    method: &mut dyn Method,
    with: &Fitting<'_>,
    ranks: impl Into<Ranks<'a>>,
) -> Result<(), TrainError> {
    if !method.is_fitted_to_samples() {
        return Ok(());
    }
    let ranks = ranks.into();
    let data_set = with.benchmark.data_set(Split::Train);
    let store = with.benchmark.store();
    let rows_of = |part| -> Result<Vec<Vec<f32>>, TrainError> {
        let samples = data_set.rows.iter().map(|&row| with.benchmark.samples(row, part));
        embedded(with.embedder, store, samples, ranks)
    };
    let (rows, held_out) = (rows_of(Part::Train)?, rows_of(Part::Val)?);
    method.fit(&TrainingSamples {
        dim: with.embedder.embedding_len(),
        rows: &rows,
        held_out: &held_out,
        graph: &data_set.whole_graph,
        texts: with.texts,
        seed: with.seed,
    })?;
    Ok(())
}

/// The embeddings of each class's samples.
fn embedded<'a>(
    embedder: &Embedder,
    store: &Store,
    classes: impl Iterator<Item = &'a [u32]> + Clone,
    ranks: Ranks<'_>,
) -> Result<Vec<Vec<f32>>, TrainError> {
    let dim = embedder.embedding_len();
    let all: Vec<u32> = classes.clone().flatten().copied().collect();
    let mut values = Vec::with_capacity(all.len() * dim);
    embed_samples(embedder, store, &all, ranks, |embeddings| values.extend_from_slice(embeddings))?;
    let mut rest = &values[..];
    Ok(classes
        .map(|samples| {
            let (own, others) = rest.split_at(samples.len() * dim);
            rest = others;
            own.to_vec()
        })
        .collect())
}
