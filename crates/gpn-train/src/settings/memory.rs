//! Settings of the memory: how often the prototypes of training classes are computed, and from what.

use serde::{Deserialize, Serialize};

/// Which batch-norm statistics the memory is computed with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryNorm {
    /// Running statistics, as at test time.
    #[default]
    Evaluation,
    /// Statistics of each class's own samples, which also move the running ones, as in the authors' code.
    Training,
}

/// Which images the memory is computed from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryView {
    /// Images after the test transform.
    #[default]
    Test,
    /// Random crops, mirrored at random, drawn anew at each refresh, as in the authors' code.
    Training,
}

/// Settings of the memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryConfig {
    /// Episodes between two refreshes; 0 for as often as `share` allows. Default 0.
    pub refresh_every: u64,
    /// Episode of the second refresh (the first comes before all episodes); the others follow `refresh_every` apart.
    /// 0 for no other rhythm than `refresh_every`. Default 0.
    pub refresh_from: u64,
    /// Largest share of the work that refreshes may take, by the number of samples they look at; used where
    /// `refresh_every` is 0. Default 0.1.
    pub share: f64,
    /// Samples of each class that a refresh looks at; 0 for all. Default 0.
    pub samples: usize,
    /// Batch-norm statistics of a refresh. Default `evaluation`.
    pub norm: MemoryNorm,
    /// Images that a refresh looks at. Default `test`.
    pub view: MemoryView,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self {
            refresh_every: 0,
            refresh_from: 0,
            share: 0.1,
            samples: 0,
            norm: MemoryNorm::default(),
            view: MemoryView::default(),
        }
    }
}

impl MemoryConfig {
    /// The same as used at test time, whatever training uses.
    #[must_use]
    pub fn as_tested(&self) -> Self {
        Self { norm: MemoryNorm::Evaluation, view: MemoryView::Test, ..self.clone() }
    }

    /// Whether a refresh comes before episode `t`; `refresh_every` is worked out.
    pub fn is_due(&self, t: u64) -> bool {
        t == 0
            || t.checked_sub(self.refresh_from).is_some_and(|since| since.is_multiple_of(self.refresh_every))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refreshes_follow_their_rhythm() {
        let due = |refresh_from| -> Vec<u64> {
            let config = MemoryConfig { refresh_every: 300, refresh_from, ..MemoryConfig::default() };
            (0..1_000).filter(|&t| config.is_due(t)).collect()
        };
        assert_eq!(due(0), [0, 300, 600, 900]);
        assert_eq!(due(100), [0, 100, 400, 700]);
    }
}
