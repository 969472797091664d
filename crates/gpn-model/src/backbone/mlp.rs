//! MLP: a few linear layers over given embeddings.

use serde::{Deserialize, Serialize};

/// Settings of the MLP: linear layers with ReLU between them, none after the last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MlpConfig {
    /// Outputs of each layer; the last is the length of an embedding. Default: 512, 256.
    pub layers: Vec<usize>,
}

impl Default for MlpConfig {
    fn default() -> Self {
        Self { layers: vec![512, 256] }
    }
}
