//! The part of the class graph on which a task propagates.

use crate::graph::{Node, Taxonomy};
use crate::neighbours::HopSearch;

/// The classes around the targets of a task and all edges among them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskGraph {
    /// The classes: targets first, in the order given, then the others, ascending.
    pub nodes: Vec<Node>,
    /// `(parent, child)` as rows of `nodes`, in the order of rows: by parent, then by child.
    pub edges: Vec<(u32, u32)>,
}

/// Chooses some of a list at random: gets the list and how many to take, and puts those into the third argument.
pub type Choose<'a> = dyn FnMut(&[Node], usize, &mut Vec<Node>) + 'a;

/// Lists longer than this are halved when they are thinned.
const LONGEST_WHOLE_LIST: usize = 5;

/// The targets, everything within `hops` hops of them through parents and children, and all edges among these
/// classes. Targets count once.
///
/// With `thin`, a list of parents or of children with more than five entries is halved at random whenever it is
/// followed (half of an odd length is rounded to the even neighbour); all edges among the classes reached are
/// kept nevertheless. `thin` makes the choice.
///
/// O(classes reached and their edges, sorted).
///
/// ```
/// use gpn_taxonomy::{HopSearch, TaxonomyBuilder, task_graph};
///
/// let mut graph = TaxonomyBuilder::new();
/// let [animal, cat, dog, mastiff] = ["animal", "cat", "dog", "mastiff"].map(|id| graph.add_class(id));
/// for (parent, child) in [(animal, cat), (animal, dog), (dog, mastiff)] {
///     graph.add_edge(parent, child, None);
/// }
/// let graph = graph.build()?.taxonomy;
/// let task = task_graph(&graph, &[mastiff, cat], 1, None, &mut HopSearch::new(&graph));
/// assert_eq!(task.nodes, [mastiff, cat, animal, dog]);
/// assert_eq!(task.edges, [(2, 1), (2, 3), (3, 0)]);
/// # Ok::<(), gpn_taxonomy::TaxonomyError>(())
/// ```
pub fn task_graph(
    graph: &Taxonomy,
    targets: &[Node],
    hops: usize,
    mut thin: Option<&mut Choose<'_>>,
    search: &mut HopSearch,
) -> TaskGraph {
    search.begin(graph);
    for &target in targets {
        search.reach(target);
    }
    let target_count = search.reached.len();
    let mut chosen = Vec::new();
    let mut from = 0;
    for _ in 0..hops {
        let to = search.reached.len();
        if from == to {
            break;
        }
        for at in from..to {
            let n = search.reached[at];
            for list in [graph.parents(n), graph.children(n)] {
                let list = match &mut thin {
                    Some(choose) if list.len() > LONGEST_WHOLE_LIST => {
                        chosen.clear();
                        choose(list, half_to_even(list.len()), &mut chosen);
                        &chosen
                    }
                    _ => list,
                };
                for &neighbour in list {
                    search.reach(neighbour);
                }
            }
        }
        from = to;
    }
    search.sort_from(target_count);
    // Asked for its parents: at the rim stand classes with many children and few of them reached.
    let mut edges = Vec::new();
    for (row, &n) in search.reached.iter().enumerate() {
        edges
            .extend(graph.parents(n).iter().filter_map(|&parent| Some((search.row_of(parent)?, row as u32))));
    }
    edges.sort_unstable();
    TaskGraph { nodes: search.reached.clone(), edges }
}

/// Half of a length, where a half goes to the even neighbour: 7 -> 4, 9 -> 4.
fn half_to_even(len: usize) -> usize {
    let half = len / 2;
    half + usize::from(len % 2 == 1 && half % 2 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::graph_of;

    #[test]
    fn hops_turn_at_every_class() {
        // y is reached from x down through a and b: up, then down again.
        let graph = graph_of("r>a a>x a>y y>z");
        let ids = |hops| {
            let task = task_graph(&graph, &[2], hops, None, &mut HopSearch::new(&graph));
            task.nodes.iter().map(|&n| graph.id(n)).collect::<Vec<_>>().join(" ")
        };
        assert_eq!([ids(0), ids(1), ids(2), ids(9)], ["x", "x a", "x r a y", "x r a y z"]);
    }

    #[test]
    fn repeated_targets_count_once() {
        let graph = graph_of("r>a r>b");
        let task = task_graph(&graph, &[2, 1, 2], 1, None, &mut HopSearch::new(&graph));
        assert_eq!(task, TaskGraph { nodes: vec![2, 1, 0], edges: vec![(2, 0), (2, 1)] });
        assert_eq!(task_graph(&graph, &[], 3, None, &mut HopSearch::new(&graph)), TaskGraph::default());
    }

    #[test]
    fn long_lists_are_halved() {
        let graph = graph_of("r>a r>b r>c r>d r>e r>f r>g s>r");
        let mut asked = Vec::new();
        let mut first = |list: &[Node], count: usize, out: &mut Vec<Node>| {
            asked.push((list.len(), count));
            out.extend_from_slice(&list[..count]);
        };
        let task = task_graph(&graph, &[0], 1, Some(&mut first), &mut HopSearch::new(&graph));
        assert_eq!(task.nodes, [0, 1, 2, 3, 4, 8]);
        assert_eq!(asked, [(7, 4)]);
    }

    #[test]
    fn halves_go_to_the_even_neighbour() {
        assert_eq!([6, 7, 8, 9, 10, 11, 13].map(half_to_even), [3, 4, 4, 4, 5, 6, 6]);
    }
}
