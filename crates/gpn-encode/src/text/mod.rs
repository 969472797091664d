//! Texts to embeddings.

mod files;
mod tokenizer;

use std::path::{Path, PathBuf};

use gpn_data::Progress;
use gpn_data::format::archive::read_small_file;
use rayon::prelude::*;

use self::files::{SentenceFiles, model_file};
use self::tokenizer::{Tokenizer, Tokens};
use crate::cache::{ContentHash, EmbeddingCache};
use crate::config::{EncoderConfig, Pooling, Runtime};
use crate::encode::{Encoded, cached, check_finite, through_cache, to_unit_length};
use crate::error::{EncodeError, Result};
use crate::id::{EncoderId, Preparation, TextPreparation};
use crate::onnx::{INT32, INT64, Input, OnnxModel};
use crate::runtime::{self, InputShapes, Output, Session, Tensor};

/// Largest tokenizer file.
const MAX_TOKENIZER_BYTES: u64 = 256 << 20;
/// Most tokens that a text may have.
const MAX_TOKENS: usize = 1 << 16;

/// A frozen encoder of sentences: a folder with an ONNX model and its `tokenizer.json`, as sentence-transformers lays it out.
///
/// ```no_run
/// use std::path::Path;
/// use gpn_encode::{EncoderConfig, TextEncoder};
///
/// let encoder = TextEncoder::open(Path::new("minilm"), &EncoderConfig::default())?;
/// let encoded = encoder.encode(&["a red apple", "a green pear"], None, &())?;
/// assert_eq!(encoded.all()?[0].len(), encoder.dim());
/// # Ok::<(), gpn_encode::EncodeError>(())
/// ```
pub struct TextEncoder {
    session: Box<dyn Session>,
    tokenizer: Tokenizer,
    preparation: TextPreparation,
    inputs: Vec<Input>,
    id: EncoderId,
    runtime: Runtime,
    path: PathBuf,
}

impl TextEncoder {
    /// Whether a folder looks like a text encoder: it has a `tokenizer.json`.
    pub fn is_at(folder: &Path) -> bool {
        folder.join("tokenizer.json").is_file()
    }

    /// Reads a folder, checks its settings and runs the model once.
    pub fn open(folder: &Path, config: &EncoderConfig) -> Result<Self> {
        let path = model_file(folder)?;
        let model = OnnxModel::open(&path)?;
        let config = config
            .clone()
            .or(EncoderConfig::beside(&path)?)
            .or(EncoderConfig::of_metadata(&path, &model.metadata)?);
        config.refuse_image_settings(&path)?;
        let files = SentenceFiles::read(folder)?;
        let tokenizer_path = folder.join("tokenizer.json");
        if !tokenizer_path.is_file() {
            return Err(EncodeError::unfit(
                folder,
                "it has no tokenizer.json, which a text encoder needs; save it with the model",
            ));
        }
        let tokenizer_bytes = read_small_file(&tokenizer_path, MAX_TOKENIZER_BYTES)?;
        let damaged = |reason: String| EncodeError::damaged(&tokenizer_path, reason);
        let mut tokenizer = Tokenizer::from_bytes(&tokenizer_bytes).map_err(damaged)?;
        let truncated = tokenizer.max_tokens();
        let max_tokens =
            config.max_tokens.or(files.max_tokens).or(truncated).or(files.positions).unwrap_or(512);
        let wrong = |field, reason| EncodeError::Setting { place: path.display().to_string(), field, reason };
        // A text has at least one token beside those that mark its begin and end.
        let marks = tokenizer.tokens("").map_or(0, |tokens| tokens.ids.len());
        if !(marks + 1..=MAX_TOKENS).contains(&max_tokens) {
            let reason = format!("is {max_tokens}; it must be between {} and {MAX_TOKENS}", marks + 1);
            return Err(wrong("max_tokens", reason));
        }
        tokenizer.truncate(max_tokens).map_err(damaged)?;
        check_inputs(&model)?;
        let output = model.output(config.output.as_deref().or(SentenceFiles::output(&model.outputs)))?;
        let runtime = config.runtime.unwrap_or_default();
        let library = config.onnxruntime_library.as_deref();
        let session = runtime::open(&model, &output, &InputShapes::Tokens, runtime, library)?;
        let pooling = match (config.pooling, files.pooling) {
            (Some(pooling), _) | (None, Some(Ok(pooling))) => pooling,
            (None, Some(Err(other))) => {
                return Err(wrong(
                    "pooling",
                    format!("is {other}, which is not supported; `mean` and `cls` are"),
                ));
            }
            (None, None) => Pooling::Mean,
        };
        let preparation = TextPreparation { max_tokens, pooling, lowercase: files.lowercase };
        let mut hasher = blake3::Hasher::new();
        hasher.update(model.hash.as_bytes()).update(blake3::hash(&tokenizer_bytes).as_bytes());
        let id = EncoderId {
            file: folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned(),
            blake3: hasher.finalize().to_hex().to_string(),
            dim: 0,
            output,
            normalise: config.normalise.unwrap_or(files.normalise),
            preprocessing: Preparation::Texts(preparation.clone()),
        };
        let mut encoder = Self {
            session,
            tokenizer,
            preparation,
            inputs: model.inputs,
            id,
            runtime,
            path: folder.to_owned(),
        };
        let unfit = |reason: String| EncodeError::unfit(&path, reason);
        let tokens = encoder.tokens("one").map_err(unfit)?;
        let (embedding, is_pooled) = encoder.run(&tokens).map_err(unfit)?;
        if let Some(module) = files.further_module.filter(|_| !is_pooled) {
            return Err(EncodeError::unfit(
                folder,
                format!(
                    "its module {module} comes after the model; export a model whose output is the sentence's embedding"
                ),
            ));
        }
        encoder.id.dim = embedding.len();
        Ok(encoder)
    }

    /// What tells this encoder from others.
    pub fn id(&self) -> &EncoderId {
        &self.id
    }

    /// Length of the embeddings.
    pub fn dim(&self) -> usize {
        self.id.dim
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Encodes texts, spread over rayon's threads, each alone: in a batch its embedding would depend on the others by a rounding. A text
    /// that cannot be encoded is an error in its place; the outer error is [`EncodeError::Interrupted`] alone.
    pub fn encode(
        &self,
        texts: &[impl AsRef<str> + Sync],
        cache: Option<&EmbeddingCache>,
        progress: &dyn Progress,
    ) -> Result<Encoded> {
        let cache = cached(cache, self.id.cache_key(self.runtime), self.id.dim);
        let hash = |index: usize| Ok(hash_of(texts[index].as_ref()));
        let name = |index: usize| shortened(texts[index].as_ref());
        through_cache(texts.len(), cache, progress, name, hash, |missing, finished| {
            missing.par_iter().try_for_each(|&index| {
                finished.check()?;
                let text = texts[index].as_ref();
                let result = (self.tokens(text))
                    .and_then(|tokens| self.run(&tokens))
                    .and_then(|(embedding, _)| check_finite(embedding))
                    .map(|embedding| (hash_of(text), embedding))
                    .map_err(|reason| EncodeError::Sample { name: name(index), reason });
                finished.take(index, result)
            })
        })
    }

    fn tokens(&self, text: &str) -> Result<Tokens, String> {
        let lowered = self.preparation.lowercase.then(|| text.to_lowercase());
        let text = lowered.as_deref().unwrap_or(text);
        let tokens = self.tokenizer.tokens(text)?;
        if tokens.ids.is_empty() {
            return Err("it has no tokens".into());
        }
        Ok(tokens)
    }

    /// Runs the model on a text, and tells whether its output is already one vector.
    fn run(&self, text: &Tokens) -> Result<(Vec<f32>, bool), String> {
        let length = text.ids.len();
        let shape = vec![1, length];
        let inputs = self.inputs.iter().map(|input| {
            let numbers = match input.name.as_str() {
                "attention_mask" => vec![1; length],
                "token_type_ids" => text.types.clone(),
                _ => text.ids.clone(),
            };
            if input.element == INT32 {
                Tensor::I32(shape.clone(), numbers.into_iter().map(|number| number as i32).collect())
            } else {
                Tensor::I64(shape.clone(), numbers.into_iter().map(i64::from).collect())
            }
        });
        let Output { shape, values } = self.session.run(inputs.collect())?;
        let (mut embedding, is_pooled) = match *shape.as_slice() {
            [1, dim] if dim > 0 => (values, true),
            [1, tokens, dim] if tokens == length && dim > 0 => {
                (pooled(&values, dim, self.preparation.pooling), false)
            }
            _ => {
                return Err(format!(
                    "its output `{}` has the shape {shape:?} for a text of {length} tokens; [texts, tokens, D] or \
                     [texts, D] is needed",
                    self.id.output
                ));
            }
        };
        if self.id.normalise {
            to_unit_length(&mut embedding);
        }
        Ok((embedding, is_pooled))
    }
}

/// One vector from those of a text's tokens.
fn pooled(states: &[f32], dim: usize, pooling: Pooling) -> Vec<f32> {
    match pooling {
        Pooling::Cls => states[..dim].to_vec(),
        Pooling::Mean => {
            let mut sums = vec![0.0; dim];
            for state in states.chunks_exact(dim) {
                for (sum, &value) in sums.iter_mut().zip(state) {
                    *sum += f64::from(value);
                }
            }
            let tokens = (states.len() / dim) as f64;
            sums.into_iter().map(|sum| (sum / tokens) as f32).collect()
        }
    }
}

/// Refuses models whose inputs are not those of a text encoder.
fn check_inputs(model: &OnnxModel) -> Result<()> {
    let unfit = |reason: String| Err(EncodeError::unfit(&model.path, reason));
    let known = ["input_ids", "attention_mask", "token_type_ids"];
    let names: Vec<&str> = model.inputs.iter().map(|input| input.name.as_str()).collect();
    if !names.contains(&"input_ids") || names.iter().any(|name| !known.contains(name)) {
        return unfit(format!(
            "a text encoder has the input input_ids, and perhaps attention_mask and token_type_ids; this model has {}",
            names.join(", ")
        ));
    }
    for input in &model.inputs {
        if ![INT32, INT64].contains(&input.element) {
            return unfit(format!("its input `{}` does not take whole numbers", input.name));
        }
        let fixed =
            input.shape.as_ref().is_some_and(|shape| shape.len() != 2 || shape.iter().any(Option::is_some));
        if fixed {
            return unfit(format!(
                "its input `{}` is {}; export it with texts and tokens of any number (dynamic axes)",
                input.name,
                input.shape_text()
            ));
        }
    }
    Ok(())
}

/// What a cache tells texts apart by.
fn hash_of(text: &str) -> ContentHash {
    blake3::hash(text.as_bytes()).into()
}

/// A text as messages show it.
fn shortened(text: &str) -> String {
    let line: String = text.chars().take(60).collect();
    if line.len() < text.len() { format!("text \"{line}...\"") } else { format!("text \"{line}\"") }
}
