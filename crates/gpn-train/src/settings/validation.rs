//! Settings of the validation tasks.

use serde::{Deserialize, Serialize};

/// Settings of validation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ValidationConfig {
    /// Number of tasks; 0 for no validation. Default 400.
    pub tasks: u64,
    /// Episodes between two validations; 0 for about twenty in a run, each after a refresh of the memory. Default 0.
    pub every: u64,
}

impl Default for ValidationConfig {
    fn default() -> Self {
        Self { tasks: 400, every: 0 }
    }
}
