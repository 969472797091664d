//! Many samples, shard by shard: any number of processes on any number of machines predict or embed their part of a large input.
//!
//! All rows of all inputs are numbered in order, and shard `i` of `n` takes the `i`-th of `n` equal parts of them. Each
//! shard becomes one Parquet file with its rows in order, written whole or not at all. So a shard can be started again whatever
//! happened to it, a finished one is recognised and left as it is, and together the files hold every row once.

mod inputs;
mod shard;
mod table;

use std::path::{Path, PathBuf};

use gpn_encode::{EmbeddingCache, EncoderConfig};
use gpn_files::AtomicFile;
use serde::Serialize;

use self::inputs::{Inputs, Takes};
pub use self::shard::Shard;
use self::table::{ColumnSet, Finished, RowOut, Table};
use crate::classifier::{Classifier, PredictRequest};
use crate::embed::{is_encoder, open_model};
use crate::encoder::SampleEncoder;
use crate::error::{Error, Result};
use crate::output::create_folder;
use crate::sample::Sample;
use crate::watch::{Event, Watch};

/// Samples read, embedded and answered at a time: bounds the memory.
const CHUNK: usize = 1024;
/// What is said of the file of other work.
const OTHER_WORK: &str = "it was made from another model, other inputs or other settings";

/// The samples of a shard, and where its answers go.
#[derive(Clone, Debug)]
pub struct ShardRequest<'a> {
    /// Parquet tables (with a column `embedding`, `image`, `path` or `text`, as the model takes it) or folders of them, lists of files
    /// or of texts (`.txt`, one a line), image files or folders of them. The same for every shard.
    pub inputs: &'a [PathBuf],
    /// Which part of them.
    pub shard: Shard,
    /// The folder for the files of all shards; it is made where there is none.
    pub out: &'a Path,
    /// Whether a file that was made from something else is replaced.
    pub replace: bool,
}

/// A finished shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShardDone {
    /// Its file.
    pub file: PathBuf,
    /// Rows in it.
    pub rows: usize,
    /// How many of these could not be read; their column `error` says why.
    pub failed: usize,
    /// The first of the reasons.
    pub first_error: Option<String>,
    /// Whether it had been finished before, so that nothing was done.
    pub was_done: bool,
}

/// Predicts the classes of the samples of a shard.
///
/// The table has the columns `row` (from 0, over all shards), `file`, the likeliest class with `id`, `name` and `probability`, the `ids`
/// and `probabilities` of as many classes as the request asks for, `sure` and `sure_probability` where it asks for a
/// confidence, `unknown` where the model was fitted to a catalogue, and `error`.
pub fn predict_shard(
    classifier: &Classifier,
    predict: &PredictRequest,
    request: &ShardRequest<'_>,
    watch: &Watch<'_>,
) -> Result<ShardDone> {
    if predict.explain {
        return Err(Error::input(
            "the request",
            "a table has no place for explanations; ask for them by sample",
        ));
    }
    let model = blake3::hash(&classifier.to_bytes()?).to_hex().to_string();
    let work = serde_json::json!({ "predict": predict, "model": model });
    let columns = ColumnSet::Prediction {
        is_cautious: predict.confidence.is_some(),
        is_fitted: classifier.is_fitted(),
    };
    let predictor = classifier.predictor(predict)?;
    let answer = |samples: &[Sample], watch: &Watch<'_>| {
        let predictions = predictor.predict(samples, watch)?;
        Ok(predictions.into_iter().map(|prediction| prediction.map(RowOut::Prediction)).collect())
    };
    let takes = taken_by(classifier);
    run(request, &Work { described: &work, takes, columns, answer: &answer }, watch)
}

/// Embeds the samples of a shard by a model's own network or encoder.
///
/// The table has the columns `row` (from 0, over all shards), `file`, `embedding` and `error`.
pub fn embed_shard(
    classifier: &Classifier,
    request: &ShardRequest<'_>,
    watch: &Watch<'_>,
) -> Result<ShardDone> {
    let model = blake3::hash(&classifier.to_bytes()?).to_hex().to_string();
    let work = serde_json::json!({ "embed": model });
    let answer = |samples: &[Sample], watch: &Watch<'_>| Ok(as_rows(classifier.embed(samples, watch)?));
    let takes = taken_by(classifier);
    run(request, &Work { described: &work, takes, columns: ColumnSet::Embedding, answer: &answer }, watch)
}

/// The same by a frozen encoder.
pub fn encode_shard(
    encoder: &SampleEncoder,
    request: &ShardRequest<'_>,
    watch: &Watch<'_>,
) -> Result<ShardDone> {
    let work = serde_json::json!({ "encode": encoder.id() });
    let answer = |samples: &[Sample], watch: &Watch<'_>| {
        Ok(as_rows(encoder.encode(&samples.iter().collect::<Vec<_>>(), watch)?))
    };
    let takes = if encoder.takes_images() { Takes::IMAGES } else { Takes::TEXTS };
    run(request, &Work { described: &work, takes, columns: ColumnSet::Embedding, answer: &answer }, watch)
}

/// The same by what is at a path: an `.onnx` file, the folder of a text encoder, or a trained model (its file or run directory).
/// `config` and `cache` are for encoders.
pub fn embed_shard_by(
    path: &Path,
    config: &EncoderConfig,
    cache: Option<EmbeddingCache>,
    request: &ShardRequest<'_>,
    watch: &Watch<'_>,
) -> Result<ShardDone> {
    if is_encoder(path) {
        encode_shard(&SampleEncoder::open(path, config, cache)?, request, watch)
    } else {
        embed_shard(&open_model(path, config)?, request, watch)
    }
}

fn as_rows(embeddings: Vec<Result<Vec<f32>>>) -> Vec<Result<RowOut>> {
    embeddings.into_iter().map(|embedding| embedding.map(RowOut::Embedding)).collect()
}

fn taken_by(classifier: &Classifier) -> Takes {
    match (classifier.encoder_takes_images(), classifier.input()) {
        (Some(true), _) => Takes { embeddings: true, ..Takes::IMAGES },
        (Some(false), _) => Takes { embeddings: true, ..Takes::TEXTS },
        (None, gpn_model::InputShape::Image { .. }) => Takes::IMAGES,
        (None, gpn_model::InputShape::Embedding { .. }) => Takes::EMBEDDINGS,
    }
}

type Answer<'a> = dyn Fn(&[Sample], &Watch<'_>) -> Result<Vec<Result<RowOut>>> + 'a;

/// What is done with samples.
struct Work<'a> {
    /// All that the answers depend on besides the samples.
    described: &'a serde_json::Value,
    takes: Takes,
    columns: ColumnSet,
    answer: &'a Answer<'a>,
}

fn run(request: &ShardRequest<'_>, work: &Work<'_>, watch: &Watch<'_>) -> Result<ShardDone> {
    let shard = request.shard;
    inputs::check_apart(request.inputs, request.out)?;
    let inputs = Inputs::open(request.inputs, work.takes)?;
    let siblings = shard.siblings(request.out)?;
    let file = request.out.join(shard.file_name());
    let range = shard.range(inputs.rows());
    let of_all = hash(&serde_json::json!({ "work": work.described, "inputs": inputs.described() }));
    let fingerprint = hash(&serde_json::json!({ "work": of_all, "shard": shard }));
    if let Some(before) = table::finished(&file, request.replace)? {
        if before.fingerprint == fingerprint {
            return Ok(ShardDone {
                file,
                rows: range.len(),
                failed: before.failed,
                first_error: None,
                was_done: true,
            });
        }
        if !request.replace {
            return Err(Error::NotThisShard { path: file, reason: OTHER_WORK });
        }
    }
    if !request.replace {
        check_sibling(&siblings, &of_all)?;
    }
    create_folder(request.out)?;
    let io = |source| Error::Io { action: "write", path: file.clone(), source };
    let mut table = Table::new(AtomicFile::create(&file).map_err(io)?, &file, work.columns)?;
    let (mut failed, mut first_error) = (0, None);
    let mut samples = inputs.samples(range.clone());
    let mut next = range.start;
    // Progress is told here, for the shard as a whole.
    let inner = Watch::default().with_stop(watch.stop_handle());
    while next < range.end {
        if watch.tell(&Event::Encoded { done: next - range.start, total: range.len() }).is_break() {
            return Err(Error::interrupted());
        }
        let read = samples.read(CHUNK.min(range.end - next))?;
        let readable: Vec<Sample> = read.iter().filter_map(|row| row.sample.as_ref().ok()).cloned().collect();
        let mut answers = (work.answer)(&readable, &inner)?.into_iter();
        for (number, row) in (next..).zip(&read) {
            let answer = match &row.sample {
                // invariant: there is one answer for each sample.
                Ok(_) => answers.next().unwrap().map_err(|error| error.to_string()),
                Err(reason) => Err(format!("{}: {reason}", row.name)),
            };
            if let Err(reason) = &answer {
                failed += 1;
                first_error.get_or_insert_with(|| reason.clone());
            }
            table.push(number, &row.name, answer)?;
        }
        next += read.len();
    }
    table.finish(Finished { fingerprint, work: of_all, failed })?;
    let _ = watch.tell(&Event::Encoded { done: range.len(), total: range.len() });
    Ok(ShardDone { file, rows: range.len(), failed, first_error, was_done: false })
}

fn hash(described: &serde_json::Value) -> String {
    blake3::hash(described.to_string().as_bytes()).to_hex().to_string()
}

/// Refuses to write beside a shard that was made from something else. One of them is enough: each was compared with another.
fn check_sibling(siblings: &[PathBuf], work: &str) -> Result<()> {
    let finished = |path: &PathBuf| table::finished(path, true).ok().flatten();
    let sibling = siblings.iter().find_map(|path| Some((path, finished(path)?)));
    match sibling.filter(|(_, sibling)| sibling.work != work) {
        None => Ok(()),
        Some((path, _)) => Err(Error::Conflict {
            what: path.display().to_string(),
            reason: format!("{OTHER_WORK}; name another folder for this shard"),
        }),
    }
}
