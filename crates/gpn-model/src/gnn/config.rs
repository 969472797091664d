//! Settings of the network.

use serde::{Deserialize, Serialize};

/// Settings of a [`Gnn`](super::Gnn).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GnnConfig {
    /// Width h of the pair network, whose layers have 2h, 2h, h, h and 1 outputs; every block but the last appends
    /// h / 2 features to the nodes. Default: 96.
    pub hidden: usize,
    /// Number of graph blocks. Default: 3.
    pub blocks: usize,
}

impl Default for GnnConfig {
    fn default() -> Self {
        Self { hidden: 96, blocks: 3 }
    }
}
