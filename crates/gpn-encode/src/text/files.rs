//! The files that sentence-transformers keeps beside a model.

use std::path::{Path, PathBuf};

use gpn_data::format::archive::read_small_file;
use serde_json::Value;

use crate::config::Pooling;
use crate::error::{EncodeError, Result};

/// Largest of these files.
const MAX_BYTES: u64 = 16 << 20;

/// What the files beside a model say; nothing where there are none.
#[derive(Debug, Default, PartialEq)]
pub(super) struct SentenceFiles {
    /// Most tokens of a text.
    pub(super) max_tokens: Option<usize>,
    /// Most tokens that the model has places for.
    pub(super) positions: Option<usize>,
    /// How tokens become one vector, or the name of a way that is not supported.
    pub(super) pooling: Option<std::result::Result<Pooling, String>>,
    /// Whether embeddings have length 1.
    pub(super) normalise: bool,
    /// Whether texts are written in lower case first.
    pub(super) lowercase: bool,
    /// A module that changes embeddings after they are pooled.
    pub(super) further_module: Option<String>,
}

/// The ONNX file of a text encoder.
pub(super) fn model_file(folder: &Path) -> Result<PathBuf> {
    if !folder.is_dir() {
        let reason = if folder.exists() {
            "it is a file; a text encoder is a folder with model.onnx and tokenizer.json"
        } else {
            "there is no such folder"
        };
        return Err(EncodeError::unfit(folder, reason));
    }
    let places = ["model.onnx", "onnx/model.onnx"].map(|name| folder.join(name));
    places.into_iter().find(|path| path.is_file()).ok_or_else(|| {
        EncodeError::unfit(folder, "it has neither model.onnx nor onnx/model.onnx; export the model to ONNX")
    })
}

impl SentenceFiles {
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let mut found = Self::default();
        if let Some(config) = json(&folder.join("sentence_bert_config.json"))? {
            found.max_tokens = whole(&config["max_seq_length"]);
            found.lowercase = config["do_lower_case"] == true;
        }
        if let Some(config) = json(&folder.join("tokenizer_config.json"))? {
            found.max_tokens = found.max_tokens.or(whole(&config["model_max_length"]));
        }
        if let Some(config) = json(&folder.join("config.json"))? {
            found.positions = whole(&config["max_position_embeddings"]);
        }
        let mut pooling_folder = "1_Pooling".to_owned();
        if let Some(modules) = json(&folder.join("modules.json"))? {
            for module in modules.as_array().into_iter().flatten() {
                let kind = module["type"].as_str().unwrap_or_default();
                match kind.rsplit('.').next().unwrap_or_default() {
                    "Transformer" | "Dropout" => {}
                    "Normalize" => found.normalise = true,
                    "Pooling" => {
                        if let Some(path) = module["path"].as_str() {
                            path.clone_into(&mut pooling_folder);
                        }
                    }
                    other => found.further_module = Some(other.to_owned()),
                }
            }
        }
        if let Some(config) = json(&folder.join(pooling_folder).join("config.json"))? {
            found.pooling = Some(pooling_of(&config));
        }
        Ok(found)
    }

    /// The output to take where a model has several: that of the tokens.
    pub(super) fn output(outputs: &[String]) -> Option<&str> {
        let wanted = ["sentence_embedding", "last_hidden_state", "token_embeddings"];
        let found = wanted.iter().find_map(|name| outputs.iter().find(|output| output == name));
        found.map(String::as_str)
    }
}

fn pooling_of(config: &Value) -> std::result::Result<Pooling, String> {
    if let Some(mode) = config["pooling_mode"].as_str() {
        return match mode {
            "mean" => Ok(Pooling::Mean),
            "cls" => Ok(Pooling::Cls),
            other => Err(other.to_owned()),
        };
    }
    let modes = config.as_object().into_iter().flatten();
    let modes: Vec<&str> = modes
        .filter(|(key, value)| key.starts_with("pooling_mode_") && **value == true)
        .map(|(key, _)| key.as_str())
        .collect();
    match modes.as_slice() {
        ["pooling_mode_mean_tokens"] => Ok(Pooling::Mean),
        ["pooling_mode_cls_token"] => Ok(Pooling::Cls),
        others => Err(others.join(" and ")),
    }
}

/// A whole number above 0 that is no stand-in for infinity.
fn whole(value: &Value) -> Option<usize> {
    value.as_u64().filter(|&number| (1..1 << 32).contains(&number)).map(|number| number as usize)
}

/// Reads a JSON file; `None` where there is none.
fn json(path: &Path) -> Result<Option<Value>> {
    if !path.is_file() {
        return Ok(None);
    }
    let bytes = read_small_file(path, MAX_BYTES)?;
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| EncodeError::damaged(path, format!("line {}: it is no JSON: {error}", error.line())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_sentence_transformers_are_understood() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        assert_eq!(SentenceFiles::read(folder.path()).unwrap(), SentenceFiles::default());
        write("sentence_bert_config.json", r#"{"max_seq_length": 256, "do_lower_case": false}"#);
        write("config.json", r#"{"max_position_embeddings": 512}"#);
        write(
            "modules.json",
            r#"[{"path": "", "type": "sentence_transformers.models.Transformer"},
                {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
                {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}]"#,
        );
        write(
            "1_Pooling/config.json",
            r#"{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}"#,
        );
        let expected = SentenceFiles {
            max_tokens: Some(256),
            positions: Some(512),
            pooling: Some(Ok(Pooling::Cls)),
            normalise: true,
            ..SentenceFiles::default()
        };
        assert_eq!(SentenceFiles::read(folder.path()).unwrap(), expected);
        write("1_Pooling/config.json", r#"{"pooling_mode_max_tokens": true}"#);
        let found = SentenceFiles::read(folder.path()).unwrap();
        assert_eq!(found.pooling, Some(Err("pooling_mode_max_tokens".into())));
        write("1_Pooling/config.json", "{");
        let message = SentenceFiles::read(folder.path()).unwrap_err().to_string();
        assert!(message.contains("config.json: line 1: it is no JSON"), "{message}");
    }
}
