//! The leaves below each class: whose samples it has.

use crate::graph::{Node, Taxonomy};

/// The leaves below a class, ascending; a leaf has itself.
///
/// O(classes + edges below the class, and one pass over a flag per class).
///
/// ```
/// use gpn_taxonomy::{TaxonomyBuilder, leaf_counts, leaves_below};
///
/// let mut graph = TaxonomyBuilder::new();
/// let [animal, pet, cat, wolf] = ["animal", "pet", "cat", "wolf"].map(|id| graph.add_class(id));
/// for (parent, child) in [(animal, pet), (animal, cat), (animal, wolf), (pet, cat)] {
///     graph.add_edge(parent, child, None);
/// }
/// let graph = graph.build()?.taxonomy;
/// assert_eq!(leaves_below(&graph, animal), [cat, wolf]);
/// assert_eq!(leaf_counts(&graph), [2, 1, 1, 1]);
/// # Ok::<(), gpn_taxonomy::TaxonomyError>(())
/// ```
pub fn leaves_below(graph: &Taxonomy, n: Node) -> Vec<Node> {
    let mut reached = vec![false; graph.len()];
    let mut open = vec![n];
    let mut leaves = Vec::new();
    while let Some(n) = open.pop() {
        if std::mem::replace(&mut reached[n as usize], true) {
            continue;
        }
        let children = graph.children(n);
        if children.is_empty() {
            leaves.push(n);
        }
        open.extend_from_slice(children);
    }
    leaves.sort_unstable();
    leaves
}

/// The number of leaves below each class, every leaf counted once however many paths lead to it.
///
/// O(classes + edges) in a tree; each class with several parents adds the number of its ancestors.
pub fn leaf_counts(graph: &Taxonomy) -> Vec<u32> {
    sum_over_leaves(graph, |_| 1u32, |sum, more| *sum += more)
}

/// For each class the sum of a weight over the distinct leaves below it.
pub(crate) fn sum_over_leaves<W: Copy + Default>(
    graph: &Taxonomy,
    weight: impl Fn(Node) -> W,
    add: impl Fn(&mut W, W),
) -> Vec<W> {
    // First along single parents, where no leaf can arrive twice.
    let mut sums: Vec<W> =
        graph.nodes().map(|n| if graph.children(n).is_empty() { weight(n) } else { W::default() }).collect();
    for &n in graph.topological_order().iter().rev() {
        if let &[parent] = graph.parents(n) {
            let more = sums[n as usize];
            add(&mut sums[parent as usize], more);
        }
    }
    // What has gathered at a class with several parents belongs to each of its ancestors once. These sums are
    // disjoint, since a leaf's way along single parents ends in one place.
    let shared: Vec<(Node, W)> =
        graph.nodes().filter(|&n| graph.parents(n).len() > 1).map(|n| (n, sums[n as usize])).collect();
    let mut last_seen = vec![Node::MAX; graph.len()];
    let mut open = Vec::new();
    for (n, more) in shared {
        open.extend_from_slice(graph.parents(n));
        while let Some(ancestor) = open.pop() {
            if std::mem::replace(&mut last_seen[ancestor as usize], n) != n {
                add(&mut sums[ancestor as usize], more);
                open.extend_from_slice(graph.parents(ancestor));
            }
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{chain, graph_of};

    #[test]
    fn counts_are_the_lengths_of_the_lists() {
        for words in [
            "r>a r>b a>x b>x x>y x>z b>z lone",
            "a>b b>c a>c c>d c>e b>e q>e q>a",
            "r>a r>b r>c a>m b>m c>m m>n m>o a>n",
        ] {
            let graph = graph_of(words);
            let lengths: Vec<u32> = graph.nodes().map(|n| leaves_below(&graph, n).len() as u32).collect();
            assert_eq!(leaf_counts(&graph), lengths, "{words}");
        }
    }

    #[test]
    fn a_deep_chain_has_one_leaf() {
        let graph = chain(200_000);
        assert_eq!(leaf_counts(&graph)[0], 1);
        assert_eq!(leaves_below(&graph, 0), [199_999]);
    }
}
