//! Settings of the graph that a task propagates on.

use gpn_model::SpanningTree;
use serde::{Deserialize, Serialize};

/// Settings of the graph a task propagates on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PathwayConfig {
    /// How edges are thinned. Default `nearest`.
    pub spanning_tree: SpanningTree,
    /// Halve lists of parents or children longer than five at random, in training. Default false.
    pub halve_lists: bool,
    /// Without a hierarchy, nearest training classes that a new class is linked to. Default 2.
    pub nearest: usize,
}

impl Default for PathwayConfig {
    fn default() -> Self {
        Self { spanning_tree: SpanningTree::default(), halve_lists: false, nearest: 2 }
    }
}
