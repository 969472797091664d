//! How deep classes lie.

use crate::graph::Taxonomy;

/// The depth of each class below the roots; a root has depth 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Levels {
    /// Edges on the shortest path from a root.
    pub shortest: Vec<u32>,
    /// Edges on the longest path from a root.
    pub longest: Vec<u32>,
}

/// Depths of all classes. O(classes + edges).
///
/// ```
/// use gpn_taxonomy::{TaxonomyBuilder, levels};
///
/// let mut graph = TaxonomyBuilder::new();
/// let [thing, animal, cat] = ["thing", "animal", "cat"].map(|id| graph.add_class(id));
/// for (parent, child) in [(thing, animal), (animal, cat), (thing, cat)] {
///     graph.add_edge(parent, child, None);
/// }
/// let levels = levels(&graph.build()?.taxonomy);
/// assert_eq!(levels.longest, [0, 1, 2]);
/// assert_eq!(levels.shortest, [0, 1, 1]);
/// # Ok::<(), gpn_taxonomy::TaxonomyError>(())
/// ```
pub fn levels(graph: &Taxonomy) -> Levels {
    let mut shortest = vec![0; graph.len()];
    let mut longest = vec![0; graph.len()];
    for &n in graph.topological_order() {
        let parents = graph.parents(n);
        shortest[n as usize] = parents.iter().map(|&p| shortest[p as usize] + 1).min().unwrap_or(0);
        longest[n as usize] = parents.iter().map(|&p| longest[p as usize] + 1).max().unwrap_or(0);
    }
    Levels { shortest, longest }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{chain, graph_of};

    #[test]
    fn every_root_starts_at_zero() {
        let levels = levels(&graph_of("a>b b>c d>c lone"));
        assert_eq!(levels.longest, [0, 1, 2, 0, 0]);
        assert_eq!(levels.shortest, [0, 1, 1, 0, 0]);
    }

    #[test]
    fn a_deep_chain_is_walked() {
        assert_eq!(levels(&chain(200_000)).longest[199_999], 199_999);
    }
}
