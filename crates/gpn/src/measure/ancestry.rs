//! Which classes lie above a class, and where two classes meet.

use std::cmp::Ordering;

use gpn_taxonomy::{Node, Taxonomy};

/// The ancestors of some classes of a graph, computed once.
///
/// O(classes asked for × their ancestors) of time and memory, beside one pass over the graph.
pub(super) struct Ancestry {
    /// Longest way down to a leaf, of each class.
    height: Vec<u32>,
    /// Height of a class above all roots.
    above_roots: u32,
    /// Whether all classes lie below one.
    has_single_root: bool,
    /// Where the ancestors of a class stand in `items`; an empty range for a class that was not asked for.
    ranges: Vec<(usize, usize)>,
    /// The class and its ancestors, the lowest first, those of equal height by position.
    items: Vec<Node>,
}

impl Ancestry {
    /// Takes the ancestors of `classes`, which must be positions in the graph.
    pub(super) fn new(graph: &Taxonomy, classes: impl IntoIterator<Item = Node>) -> Self {
        let mut height = vec![0u32; graph.len()];
        for &n in graph.topological_order().iter().rev() {
            height[n as usize] =
                graph.children(n).iter().map(|&child| height[child as usize] + 1).max().unwrap_or(0);
        }
        let mut roots = graph.roots();
        let has_single_root = roots.next().is_some() && roots.next().is_none();
        let highest = height.iter().copied().max().unwrap_or(0);
        let above_roots = if has_single_root { highest } else { highest + 1 };
        let mut ranges = vec![(0, 0); graph.len()];
        let mut items = Vec::new();
        let mut last_seen = vec![Node::MAX; graph.len()];
        let mut open = Vec::new();
        for class in classes {
            if ranges[class as usize].1 > 0 {
                continue;
            }
            let start = items.len();
            open.push(class);
            while let Some(n) = open.pop() {
                if std::mem::replace(&mut last_seen[n as usize], class) != class {
                    items.push(n);
                    open.extend_from_slice(graph.parents(n));
                }
            }
            items[start..].sort_unstable_by_key(|&n| (height[n as usize], n));
            ranges[class as usize] = (start, items.len());
        }
        Self { height, above_roots, has_single_root, ranges, items }
    }

    /// The class and its ancestors, the lowest first.
    pub(super) fn of(&self, class: Node) -> &[Node] {
        let (start, end) = self.ranges[class as usize];
        &self.items[start..end]
    }

    /// How many classes stand on all ways from the top to this one, the one root not counted.
    pub(super) fn count_below_root(&self, class: Node) -> usize {
        self.of(class).len() - usize::from(self.has_single_root)
    }

    /// Whether all classes lie below one.
    pub(super) fn has_single_root(&self) -> bool {
        self.has_single_root
    }

    /// The largest height at which two classes can meet.
    pub(super) fn above_roots(&self) -> u32 {
        self.above_roots
    }

    /// Whether `class` is `above` or lies below it.
    pub(super) fn is_at_or_below(&self, class: Node, above: Node) -> bool {
        let key = |n: Node| (self.height[n as usize], n);
        class == above || self.of(class).binary_search_by_key(&key(above), |&n| key(n)).is_ok()
    }

    /// The classes that two classes both are or lie below, the lowest first.
    pub(super) fn common(&self, a: Node, b: Node) -> impl Iterator<Item = Node> + '_ {
        let (mut left, mut right) = (self.of(a), self.of(b));
        let key = |n: Node| (self.height[n as usize], n);
        std::iter::from_fn(move || {
            while let (Some((&x, after_x)), Some((&y, after_y))) = (left.split_first(), right.split_first()) {
                match key(x).cmp(&key(y)) {
                    Ordering::Less => left = after_x,
                    Ordering::Greater => right = after_y,
                    Ordering::Equal => {
                        (left, right) = (after_x, after_y);
                        return Some(x);
                    }
                }
            }
            None
        })
    }

    /// How far an answer is from the truth: the height of the lowest class that both lie below, 0 for an answer at or below
    /// the truth. Of several common ancestors that of least height counts. Classes below different roots meet above all roots.
    pub(super) fn distance(&self, truth: Node, answer: Node) -> u32 {
        if self.is_at_or_below(answer, truth) {
            return 0;
        }
        self.common(truth, answer).next().map_or(self.above_roots, |n| self.height[n as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::sample::graph_of;

    #[test]
    fn classes_meet_at_the_lowest_common_ancestor() {
        let graph = graph_of("all>animal all>car animal>cat animal>bird bird>owl bird>hen");
        let ancestry = Ancestry::new(&graph, graph.nodes());
        let at = |id: &str| graph.find(id).unwrap();
        let distance = |a: &str, b: &str| ancestry.distance(at(a), at(b));
        assert_eq!([distance("owl", "owl"), distance("owl", "hen"), distance("owl", "cat")], [0, 1, 2]);
        assert_eq!(distance("owl", "car"), 3);
        // Below the truth is right; above it is a mistake of the height of the answer.
        assert_eq!([distance("bird", "hen"), distance("hen", "bird")], [0, 1]);
        assert!(ancestry.is_at_or_below(at("owl"), at("animal")));
        assert!(!ancestry.is_at_or_below(at("animal"), at("owl")));
        assert_eq!(ancestry.count_below_root(at("owl")), 3);
    }

    #[test]
    fn with_several_parents_the_nearer_meeting_counts() {
        // `pet` is as low as a common ancestor gets, though both also meet in `animal`.
        let graph = graph_of(
            "animal>mammal mammal>feline feline>cat animal>fish fish>gold animal>pet pet>cat pet>gold",
        );
        let at = |id: &str| graph.find(id).unwrap();
        let ancestry = Ancestry::new(&graph, [at("cat"), at("gold")]);
        assert_eq!(ancestry.distance(at("cat"), at("gold")), 1);
        let common: Vec<&str> = ancestry.common(at("cat"), at("gold")).map(|n| graph.id(n)).collect();
        assert_eq!(common, ["pet", "animal"]);
    }

    #[test]
    fn several_roots_meet_above_all() {
        let graph = graph_of("a>x b>y y>z");
        let ancestry = Ancestry::new(&graph, graph.nodes());
        let at = |id: &str| graph.find(id).unwrap();
        assert_eq!(ancestry.distance(at("x"), at("z")), 3);
        assert_eq!(ancestry.count_below_root(at("x")), 2);
    }
}
