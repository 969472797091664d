//! Samples from outside a benchmark to embeddings.

use gpn_model::{Embedder, InputShape};
use rayon::prelude::*;

use super::Classifier;
use crate::error::{Error, Result};
use crate::sample::{Preparation, Sample};
use crate::watch::Watch;

/// Samples prepared and embedded at once.
const BATCH: usize = 256;
/// Samples that a thread prepares at a time.
const PART: usize = 16;

/// Embeds prepared samples so that each comes out the same to the last bit, whatever the others are.
///
/// Backbones for images compute every image alike. Matrix products over given embeddings do not: a single row takes another
/// path than many, so they are always handed over in full batches.
fn embed_alike(embedder: &Embedder, mut inputs: Vec<f32>) -> Result<Vec<f32>> {
    let len = embedder.input().len();
    let wanted = inputs.len() / len * embedder.embedding_len();
    if inputs.is_empty() {
        return Ok(Vec::new());
    }
    if matches!(embedder.input(), InputShape::Embedding { .. }) {
        inputs.resize(inputs.len().next_multiple_of(BATCH * len), 0.0);
    }
    let mut embeddings = embedder.embed(&inputs)?;
    embeddings.truncate(wanted);
    Ok(embeddings)
}

impl Classifier {
    /// Embeddings of the model's own backbone, `[n, dim]`, in the space in which prototypes lie and distances are taken.
    pub fn in_space(&self, embeddings: &[f32]) -> Result<Vec<f32>> {
        match self.model.network.method.prior() {
            Some(prior) => Ok(prior.metric().apply(embeddings)?),
            None => Ok(embeddings.to_vec()),
        }
    }

    pub(super) fn embed_all(&self, samples: &[&Sample], watch: &Watch<'_>) -> Result<Vec<Result<Vec<f32>>>> {
        let unseen: Vec<&Sample> =
            samples.iter().copied().filter(|sample| sample.given_embedding().is_none()).collect();
        let mut embedded = self.embed_unseen(&unseen, watch)?.into_iter();
        let dim = self.model.memory.dim;
        let of = |sample: &&Sample| match sample.given_embedding() {
            Some(given) if given.len() == dim && given.iter().all(|value| value.is_finite()) => {
                Ok(given.to_vec())
            }
            Some(given) => {
                let reason =
                    format!("the embedding has {} numbers; {dim} finite ones are expected", given.len());
                Err(Error::input(&sample.name, reason))
            }
            // invariant: there is one result for each sample without an embedding.
            None => embedded.next().unwrap(),
        };
        Ok(samples.iter().map(of).collect())
    }

    fn embed_unseen(&self, samples: &[&Sample], watch: &Watch<'_>) -> Result<Vec<Result<Vec<f32>>>> {
        if let Some(encoder) = &self.encoder {
            return encoder.encode(samples, watch);
        }
        let (input, stored_size) = (self.input(), self.model.info.stored_size);
        let embedder = &self.model.network.embedder;
        let dim = embedder.embedding_len();
        let mut results = Vec::with_capacity(samples.len());
        for batch in samples.chunks(BATCH) {
            watch.stop().check()?;
            let prepared: Vec<Vec<Result<Vec<f32>>>> = batch
                .par_chunks(PART)
                .map(|part| {
                    let mut preparation = Preparation::new(input, stored_size)?;
                    Ok(part.iter().map(|sample| preparation.input(sample)).collect())
                })
                .collect::<Result<_>>()?;
            let prepared: Vec<Result<Vec<f32>>> = prepared.into_iter().flatten().collect();
            let embeddings = embed_alike(embedder, prepared.iter().flatten().flatten().copied().collect())?;
            let mut rows = embeddings.chunks_exact(dim);
            for (sample, prepared) in batch.iter().zip(prepared) {
                results.push(prepared.and_then(|_| {
                    // invariant: there is one embedding for each sample that could be read.
                    let embedding = rows.next().unwrap();
                    if embedding.iter().all(|value| value.is_finite()) {
                        return Ok(embedding.to_vec());
                    }
                    let reason = "its embedding has values that are not finite; the model is of no use";
                    Err(Error::input(&sample.name, reason))
                }));
            }
        }
        Ok(results)
    }
}

#[cfg(test)]
mod tests {
    use gpn_model::{BackboneKind, Device};

    use super::*;

    #[test]
    fn an_embedding_does_not_depend_on_its_batch() {
        let image = |side| InputShape::Image { height: side, width: side };
        let given = InputShape::Embedding { len: 100 };
        for (kind, input, count) in [
            (BackboneKind::ResNet08, image(32), 37),
            (BackboneKind::ResNet08, image(84), 19),
            (BackboneKind::ResNet20, image(32), 7),
            (BackboneKind::Conv4, image(32), 37),
            (BackboneKind::ResNet12, image(32), 5),
            (BackboneKind::ResNet18, image(32), 5),
            (BackboneKind::Mlp, given, 300),
            (BackboneKind::Identity, given, 3),
        ] {
            let embedder = Embedder::new(&kind.config(), input, &Device::cpu(), 1).unwrap();
            let samples: Vec<f32> =
                (0..count * input.len()).map(|i| ((i * 31 % 1009) as f32 - 500.0) / 300.0).collect();
            let together = embed_alike(&embedder, samples.clone()).unwrap();
            let alone: Vec<f32> = samples
                .chunks_exact(input.len())
                .flat_map(|sample| embed_alike(&embedder, sample.to_vec()).unwrap())
                .collect();
            assert!(together == alone, "{}", kind.name());
        }
    }
}
