//! Contraction: the graph of a part of the classes, connected through those left out.

use crate::builder::TaxonomyBuilder;
use crate::graph::{Node, Taxonomy};

/// The graph of the classes in `keep`. The children of a removed class are adopted by its parents, so a kept
/// class has as parents all kept classes from which a path of removed classes leads to it. Children of a
/// removed root become roots. Each edge counts once, and no reachability between kept classes is lost or made.
///
/// The classes take the order of `keep`.
/// O(classes + edges) where removed classes have one parent each; more parents cost the length of the lists of
/// kept classes above them.
///
/// ```
/// use gpn_taxonomy::{TaxonomyBuilder, contract};
///
/// let mut graph = TaxonomyBuilder::new();
/// let [thing, animal, pet, cat] = ["thing", "animal", "pet", "cat"].map(|id| graph.add_class(id));
/// for (parent, child) in [(thing, animal), (thing, pet), (animal, cat), (pet, cat)] {
///     graph.add_edge(parent, child, None);
/// }
/// let graph = contract(&graph.build()?.taxonomy, &[thing, animal, cat]);
/// // `pet` is gone: its child `cat` goes to its parent `thing`, besides its other parent `animal`.
/// assert_eq!(graph.edges().collect::<Vec<_>>(), [(0, 1), (1, 2), (0, 2)]);
/// # Ok::<(), gpn_taxonomy::TaxonomyError>(())
/// ```
pub fn contract(graph: &Taxonomy, keep: &[Node]) -> Taxonomy {
    let mut part = TaxonomyBuilder::new();
    let mut to = vec![Node::MAX; graph.len()];
    for &n in keep {
        to[n as usize] = part.copy_class(graph, n);
    }
    let above = KeptAbove::new(graph, &to);
    for (parent, child) in graph.edges() {
        let child = to[child as usize];
        if child == Node::MAX {
            continue;
        }
        if to[parent as usize] == Node::MAX {
            for &adopter in above.of(parent) {
                part.add_edge(adopter, child, None);
            }
        } else {
            part.add_edge(to[parent as usize], child, None);
        }
    }
    part.build_known_acyclic()
}

/// For each removed class the kept classes nearest above it.
struct KeptAbove {
    lists: Vec<Vec<Node>>,
    /// Which list a class has; classes with a single parent share its list.
    list_of: Vec<u32>,
}

impl KeptAbove {
    fn new(graph: &Taxonomy, to: &[Node]) -> Self {
        let mut above = Self { lists: vec![Vec::new()], list_of: vec![0; graph.len()] };
        let mut list_of_kept = vec![0; graph.len()];
        let mut last_seen = vec![Node::MAX; graph.len()];
        for &n in graph.topological_order() {
            if to[n as usize] != Node::MAX {
                continue;
            }
            let list = match graph.parents(n) {
                [] => 0,
                &[parent] if to[parent as usize] == Node::MAX => above.list_of[parent as usize],
                &[parent] => {
                    let list = &mut list_of_kept[parent as usize];
                    if *list == 0 {
                        *list = above.push(vec![to[parent as usize]]);
                    }
                    *list
                }
                parents => {
                    let mut union = Vec::new();
                    for &parent in parents {
                        let kept = [to[parent as usize]];
                        let more = if kept[0] == Node::MAX { above.of(parent) } else { &kept };
                        for &adopter in more {
                            if std::mem::replace(&mut last_seen[adopter as usize], n) != n {
                                union.push(adopter);
                            }
                        }
                    }
                    above.push(union)
                }
            };
            above.list_of[n as usize] = list;
        }
        above
    }

    fn push(&mut self, list: Vec<Node>) -> u32 {
        self.lists.push(list);
        self.lists.len() as u32 - 1
    }

    fn of(&self, removed: Node) -> &[Node] {
        &self.lists[self.list_of[removed as usize] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{chain, edges_of, graph_of};

    fn contracted(words: &str, keep: &str) -> String {
        let graph = graph_of(words);
        let keep: Vec<&str> = keep.split_whitespace().collect();
        edges_of(&contract(&graph, &graph.find_all(&keep).unwrap()))
    }

    #[test]
    fn children_are_adopted_once_by_all_parents() {
        assert_eq!(contracted("r>a r>b a>x b>x x>y x>z", "r a b y z"), "r>a r>b a>y b>y a>z b>z");
        assert_eq!(contracted("r>a r>b a>x b>x x>y", "r y"), "r>y");
        assert_eq!(contracted("r>a a>b b>c r>c", "r c"), "r>c");
    }

    #[test]
    fn a_removed_root_leaves_its_children() {
        assert_eq!(contracted("r>a r>b a>x b>x", "a b x"), "a>x b>x");
        assert_eq!(contracted("r>m m>a m>b a>x", "a b x"), "a>x");
    }

    #[test]
    fn everything_or_nothing_can_be_kept() {
        let words = "r>b r>a b>x a>x";
        assert_eq!(contracted(words, "x a b r"), words);
        assert_eq!(contracted(words, ""), "");
    }

    #[test]
    fn a_deep_chain_shrinks_to_its_ends() {
        let graph = contract(&chain(200_000), &[0, 199_999]);
        assert_eq!(edges_of(&graph), "0>199999");
    }
}
