//! Many samples through an encoder: each distinct one once, and none that the cache knows.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use gpn_data::Progress;
use rayon::prelude::*;

use crate::cache::{CachedEmbeddings, ContentHash, EmbeddingCache};
use crate::error::{EncodeError, Result};
use crate::watch::Counter;

/// Embeddings of samples, in their order.
#[derive(Debug)]
pub struct Encoded {
    /// One for each sample, or why there is none.
    pub embeddings: Vec<Result<Vec<f32>>>,
    /// Samples whose embedding was in the cache.
    pub from_cache: usize,
    /// Samples that the encoder was run on. Samples with the same content count once.
    pub computed: usize,
    /// What a person should know about the cache.
    pub notes: Vec<String>,
}

impl Encoded {
    /// All embeddings, or the first error.
    pub fn all(self) -> Result<Vec<Vec<f32>>> {
        self.embeddings.into_iter().collect()
    }
}

/// Looks every sample up in the cache, has the missing ones encoded and keeps them. `hash` tells samples apart by their content;
/// `encode` is given the places of distinct samples and a function that takes each result, with the hash of what was encoded.
pub(crate) fn through_cache(
    count: usize,
    cache: Option<CachedEmbeddings>,
    progress: &dyn Progress,
    name: impl Fn(usize) -> String,
    hash: impl Fn(usize) -> Result<ContentHash> + Sync,
    encode: impl FnOnce(&[usize], &Finished<'_>) -> Result<()>,
) -> Result<Encoded> {
    let counter = Counter::new(progress, count);
    let found: Vec<Looked> = (0..count)
        .into_par_iter()
        .map(|place| {
            let looked = match hash(place) {
                Err(error) => Looked::Broken(error),
                Ok(hash) => match cache.as_ref().and_then(|cache| cache.get(&hash)) {
                    Some(embedding) => Looked::Cached(embedding),
                    None => Looked::Missing(hash),
                },
            };
            counter.add(usize::from(!matches!(looked, Looked::Missing(_)))).map(|()| looked)
        })
        .collect::<Result<_>>()?;
    // The first of each distinct content is encoded, the others are copies of it.
    let mut first_of: HashMap<ContentHash, usize> = HashMap::new();
    let mut copies: Vec<(usize, usize)> = Vec::new();
    let mut missing = Vec::new();
    let mut from_cache = 0;
    let mut embeddings: Vec<Option<Result<Vec<f32>>>> = Vec::with_capacity(count);
    for (place, looked) in found.into_iter().enumerate() {
        embeddings.push(match looked {
            Looked::Broken(error) => Some(Err(error)),
            Looked::Cached(embedding) => {
                from_cache += 1;
                Some(Ok(embedding))
            }
            Looked::Missing(hash) => {
                let first = *first_of.entry(hash).or_insert(place);
                if first == place {
                    missing.push(place);
                } else {
                    copies.push((place, first));
                }
                None
            }
        });
    }
    let finished = Finished {
        cache: cache.as_ref(),
        counter: &counter,
        results: std::sync::Mutex::default(),
        computed: 0.into(),
    };
    if !missing.is_empty() {
        let encoded = encode(&missing, &finished);
        if let Some(cache) = &cache {
            // Kept whatever happened to the rest: it need not be encoded again.
            cache.flush();
        }
        encoded?;
    }
    let computed = finished.computed.load(Ordering::Relaxed);
    for (place, result) in finished.results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
        embeddings[place] = Some(result);
    }
    for (place, first) in copies {
        let copy = match &embeddings[first] {
            Some(Ok(embedding)) => Ok(embedding.clone()),
            Some(Err(error)) => Err(EncodeError::Sample {
                name: name(place),
                reason: format!("it has the same content as another sample: {error}"),
            }),
            None => Err(lost(first)),
        };
        counter.add(1)?;
        embeddings[place] = Some(copy);
    }
    counter.finish();
    let notes = cache.map(|cache| cache.notes()).unwrap_or_default();
    let embeddings = embeddings
        .into_iter()
        .enumerate()
        .map(|(place, found)| found.unwrap_or_else(|| Err(lost(place))))
        .collect();
    Ok(Encoded { embeddings, from_cache, computed, notes })
}

/// What the cache says about a sample.
enum Looked {
    Broken(EncodeError),
    Cached(Vec<f32>),
    Missing(ContentHash),
}

fn lost(place: usize) -> EncodeError {
    EncodeError::Sample {
        name: format!("sample {place}"),
        reason: "it was not encoded; this is a fault of the program, please report it".into(),
    }
}

/// Takes results as they come, from any thread.
pub(crate) struct Finished<'a> {
    cache: Option<&'a CachedEmbeddings>,
    counter: &'a Counter<'a>,
    results: std::sync::Mutex<Vec<(usize, Result<Vec<f32>>)>>,
    computed: AtomicUsize,
}

impl Finished<'_> {
    /// Takes the result of a sample; an error once the work is to stop.
    pub(crate) fn take(&self, place: usize, result: Result<(ContentHash, Vec<f32>)>) -> Result<()> {
        let result = result.map(|(hash, embedding)| {
            self.computed.fetch_add(1, Ordering::Relaxed);
            if let Some(cache) = self.cache {
                cache.put(hash, &embedding);
            }
            embedding
        });
        self.results.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((place, result));
        self.counter.add(1)
    }

    /// An error once the work is to stop.
    pub(crate) fn check(&self) -> Result<()> {
        self.counter.add(0)
    }
}

/// Opens the part of a cache that belongs to an encoder.
pub(crate) fn cached(
    cache: Option<&EmbeddingCache>,
    key: blake3::Hash,
    dim: usize,
) -> Option<CachedEmbeddings> {
    cache.map(|cache| cache.of(key, dim))
}

/// Scales a vector to length 1; one of zeros stays.
pub(crate) fn to_unit_length(values: &mut [f32]) {
    let length = values.iter().map(|&value| f64::from(value) * f64::from(value)).sum::<f64>().sqrt();
    if length > 0.0 {
        for value in values {
            *value = (f64::from(*value) / length) as f32;
        }
    }
}

/// Refuses embeddings that are of no use.
pub(crate) fn check_finite(values: Vec<f32>) -> Result<Vec<f32>, String> {
    match values.iter().position(|value| !value.is_finite()) {
        None => Ok(values),
        Some(column) => Err(format!(
            "value {column} of its embedding is {}; the encoder or its settings (`mean`, `std`, `range`) are wrong",
            values[column]
        )),
    }
}
