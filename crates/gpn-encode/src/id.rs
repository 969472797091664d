//! What tells encoders apart.

use serde::{Deserialize, Serialize};

use crate::config::{Pooling, Runtime};
use crate::error::{EncodeError, Result};
use crate::preprocessing::Preprocessing;

/// What a model file records about the encoder of its embeddings, so that later samples go through the same one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EncoderId {
    /// Name of its file or folder, for messages.
    pub file: String,
    /// BLAKE3 of the model's bytes (with those of its external data, and of the tokenizer), in hexadecimal.
    pub blake3: String,
    /// Length of its embeddings.
    pub dim: usize,
    /// The model's output that is taken.
    pub output: String,
    /// Whether embeddings are scaled to length 1.
    pub normalise: bool,
    /// How samples are prepared.
    pub preprocessing: Preparation,
}

/// How the samples of an encoder are prepared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "samples", rename_all = "snake_case")]
pub enum Preparation {
    /// Photos.
    Images(Preprocessing),
    /// Texts.
    Texts(TextPreparation),
}

/// How texts are prepared, complete and checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TextPreparation {
    /// Most tokens of a text.
    pub max_tokens: usize,
    /// How the vectors of tokens become one.
    pub pooling: Pooling,
    /// Whether texts are written in lower case first.
    pub lowercase: bool,
}

impl EncoderId {
    /// Whether `found` gives the same embeddings; an error that says where it differs. The file's name does not matter.
    pub fn check(&self, found: &Self) -> Result<()> {
        let difference =
            if std::mem::discriminant(&self.preprocessing) != std::mem::discriminant(&found.preprocessing) {
                let kind = |id: &Self| match id.preprocessing {
                    Preparation::Images(_) => "images",
                    Preparation::Texts(_) => "texts",
                };
                format!("it encodes {}, not {}", kind(found), kind(self))
            } else if self.blake3 != found.blake3 {
                let short = |hash: &str| hash.chars().take(12).collect::<String>();
                format!(
                    "its content differs (BLAKE3 {}..., not {}...)",
                    short(&found.blake3),
                    short(&self.blake3)
                )
            } else if let Some((field, expected, found)) = first_difference(self, found) {
                format!("the setting `{field}` is {found}, not {expected}")
            } else {
                return Ok(());
            };
        Err(EncodeError::OtherEncoder { found: found.file.clone(), expected: self.file.clone(), difference })
    }

    /// What a cache tells embeddings apart by.
    pub(crate) fn cache_key(&self, runtime: Runtime) -> blake3::Hash {
        let unnamed = Self { file: String::new(), ..self.clone() };
        // invariant: a struct of numbers and texts becomes JSON.
        let text = serde_json::to_string(&(CACHE_VERSION, runtime, unnamed)).unwrap();
        blake3::hash(text.as_bytes())
    }
}

/// Changes whenever the same encoder and settings would give other embeddings than before.
const CACHE_VERSION: u32 = 1;

/// The first setting that differs: its name and both values.
fn first_difference(expected: &EncoderId, found: &EncoderId) -> Option<(String, String, String)> {
    let values = |id: &EncoderId| {
        // invariant: a struct of numbers and texts becomes JSON.
        let mut fields = serde_json::to_value(&id.preprocessing).unwrap();
        fields["output"] = id.output.clone().into();
        fields["normalise"] = id.normalise.into();
        fields["dim"] = id.dim.into();
        fields
    };
    let (expected, found) = (values(expected), values(found));
    let fields = expected.as_object()?;
    let (name, value) = fields.iter().find(|(name, value)| found.get(name.as_str()) != Some(value))?;
    Some((name.clone(), value.to_string(), found[name.as_str()].to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> EncoderId {
        let preprocessing =
            Preparation::Texts(TextPreparation { max_tokens: 128, pooling: Pooling::Mean, lowercase: false });
        EncoderId {
            file: "minilm".into(),
            blake3: "0123456789abcdef".into(),
            dim: 384,
            output: "last_hidden_state".into(),
            normalise: true,
            preprocessing,
        }
    }

    #[test]
    fn another_name_is_the_same_encoder() {
        id().check(&EncoderId { file: "copy".into(), ..id() }).unwrap();
        let text = serde_json::to_string(&id()).unwrap();
        assert_eq!(serde_json::from_str::<EncoderId>(&text).unwrap(), id());
    }

    #[test]
    fn what_differs_is_named() {
        let message = |found: &EncoderId| id().check(found).unwrap_err().to_string();
        let other = EncoderId { blake3: "fedcba9876543210".into(), ..id() };
        assert_eq!(
            message(&other),
            "encoder minilm: this is not the encoder that the model was made with (minilm): \
             its content differs (BLAKE3 fedcba987654..., not 0123456789ab...)"
        );
        let other = EncoderId { normalise: false, ..id() };
        assert!(message(&other).ends_with("the setting `normalise` is false, not true"));
        let shorter = TextPreparation { max_tokens: 64, pooling: Pooling::Mean, lowercase: false };
        let other = EncoderId { preprocessing: Preparation::Texts(shorter), ..id() };
        assert!(message(&other).ends_with("the setting `max_tokens` is 64, not 128"));
    }

    #[test]
    fn the_cache_tells_settings_and_runtimes_apart() {
        let key = id().cache_key(Runtime::Tract);
        assert_eq!(EncoderId { file: "copy".into(), ..id() }.cache_key(Runtime::Tract), key);
        assert_ne!(EncoderId { normalise: false, ..id() }.cache_key(Runtime::Tract), key);
        assert_ne!(id().cache_key(Runtime::OnnxRuntime), key);
    }
}
