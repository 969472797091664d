//! Classes that nobody can tell apart by their samples, because the same leaves lie below them.

use std::collections::HashMap;

use crate::builder::TaxonomyBuilder;
use crate::graph::{Node, Taxonomy};
use crate::leaves_below::sum_over_leaves;
use crate::levels::levels;

/// Groups of two or more classes with the same set of leaves. In a group the most specific class comes first:
/// the deepest by the longest path from a root, then the first of the graph. Groups are ordered by their first
/// class.
///
/// Sets are compared by the sum of a 128-bit random number per leaf; two different sets agree with a
/// probability of about 1e-38. Complexity as [`leaf_counts`](crate::leaf_counts).
///
/// ```
/// use gpn_taxonomy::{TaxonomyBuilder, collapse_chains, same_leaves};
///
/// let mut graph = TaxonomyBuilder::new();
/// let [thing, animal, pet, cat, car] = ["thing", "animal", "pet", "cat", "car"].map(|id| graph.add_class(id));
/// for (parent, child) in [(thing, animal), (animal, pet), (pet, cat), (thing, car)] {
///     graph.add_edge(parent, child, None);
/// }
/// let graph = graph.build()?.taxonomy;
/// assert_eq!(same_leaves(&graph), [[cat, pet, animal]]);
/// let collapsed = collapse_chains(&graph);
/// assert_eq!(collapsed.nodes().map(|n| collapsed.id(n)).collect::<Vec<_>>(), ["thing", "cat", "car"]);
/// # Ok::<(), gpn_taxonomy::TaxonomyError>(())
/// ```
pub fn same_leaves(graph: &Taxonomy) -> Vec<Vec<Node>> {
    let sets = sum_over_leaves(graph, random_number, |sum, more| *sum = sum.wrapping_add(more));
    let mut group_of_set = HashMap::new();
    let mut groups: Vec<Vec<Node>> = Vec::new();
    for n in graph.nodes() {
        let group = *group_of_set.entry(sets[n as usize]).or_insert(groups.len());
        if group == groups.len() {
            groups.push(Vec::new());
        }
        groups[group].push(n);
    }
    groups.retain(|group| group.len() > 1);
    let depth = levels(graph).longest;
    for group in &mut groups {
        group.sort_by_key(|&n| (std::cmp::Reverse(depth[n as usize]), n));
    }
    groups.sort_by_key(|group| group[0]);
    groups
}

/// Merges each group of [`same_leaves`] into its most specific class, which takes all parents and children of
/// the group. That class says most about its samples, and it is the leaf where the group has one, so leaves
/// keep their ids. Classes and edges keep their order. Complexity as [`same_leaves`].
pub fn collapse_chains(graph: &Taxonomy) -> Taxonomy {
    let mut merged: Vec<Node> = graph.nodes().collect();
    for group in same_leaves(graph) {
        for &n in &group[1..] {
            merged[n as usize] = group[0];
        }
    }
    let mut collapsed = TaxonomyBuilder::new();
    for n in graph.nodes().filter(|&n| merged[n as usize] == n) {
        collapsed.copy_class(graph, n);
    }
    for (parent, child) in graph.edges() {
        let (parent, child) = (merged[parent as usize], merged[child as usize]);
        if parent != child {
            let (parent, child) =
                (collapsed.add_class(graph.id(parent)), collapsed.add_class(graph.id(child)));
            collapsed.add_edge(parent, child, None);
        }
    }
    // Leaves shrink from parent to child, so a way back to a group would lie inside it: no cycle can form.
    collapsed.build_known_acyclic()
}

/// A fixed random-looking number for each leaf: two rounds of the SplitMix64 mixer.
fn random_number(leaf: Node) -> u128 {
    let mix = |seed: u64| {
        let mut z = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    };
    let leaf = u64::from(leaf);
    u128::from(mix(2 * leaf + 1)) << 64 | u128::from(mix(2 * leaf + 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{edges_of, graph_of};

    #[test]
    fn classes_beside_each_other_can_have_the_same_leaves() {
        let graph = graph_of("r>a r>b a>x b>x a>y b>y r>z z>q");
        let ids = |group: &Vec<Node>| group.iter().map(|&n| graph.id(n)).collect::<Vec<_>>().join(" ");
        assert_eq!(same_leaves(&graph).iter().map(ids).collect::<Vec<_>>(), ["a b", "q z"]);
        assert_eq!(edges_of(&collapse_chains(&graph)), "r>a a>x a>y r>q");
    }

    #[test]
    fn a_graph_without_chains_stays() {
        let words = "r>a r>b a>x a>y b>y b>z";
        assert!(same_leaves(&graph_of(words)).is_empty());
        assert_eq!(edges_of(&collapse_chains(&graph_of(words))), words);
    }

    #[test]
    fn a_whole_chain_becomes_its_leaf() {
        let collapsed = collapse_chains(&crate::sample::chain(1000));
        assert_eq!((collapsed.len(), collapsed.id(0)), (1, "999"));
    }
}
