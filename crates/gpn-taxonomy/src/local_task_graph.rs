//! Graphs of tasks on a changed class graph, at the cost of what the task reaches: the change is never made.

use std::collections::{HashMap, HashSet};

use crate::graph::{Node, Taxonomy};
use crate::task_graph::TaskGraph;

/// The task graph on [`contract`](fn@crate::contract)ed classes: what [`task_graph`](fn@crate::task_graph) gives where all
/// classes but those that `is_kept` names are contracted away first. Classes keep the numbers they have in `graph`;
/// targets must be kept.
///
/// O(classes reached and their edges, sorted), counting the classes left out between those reached.
///
/// ```
/// use gpn_taxonomy::{TaxonomyBuilder, contracted_task_graph};
///
/// let mut graph = TaxonomyBuilder::new();
/// let [animal, dog, mastiff] = ["animal", "dog", "mastiff"].map(|id| graph.add_class(id));
/// graph.add_edge(animal, dog, None);
/// graph.add_edge(dog, mastiff, None);
/// let graph = graph.build()?.taxonomy;
/// let task = contracted_task_graph(&graph, &[mastiff], 1, |class| class != dog);
/// assert_eq!(task.nodes, [mastiff, animal]);
/// assert_eq!(task.edges, [(1, 0)]);
/// # Ok::<(), gpn_taxonomy::TaxonomyError>(())
/// ```
pub fn contracted_task_graph(
    graph: &Taxonomy,
    targets: &[Node],
    hops: usize,
    is_kept: impl Fn(Node) -> bool,
) -> TaskGraph {
    let mut reached = Reached::default();
    reached.extend(targets);
    let target_count = reached.nodes.len();
    // What lies behind a class left out is reached with the first step into it, so no later step needs to enter.
    let (mut entered_up, mut entered_down) = (HashSet::new(), HashSet::new());
    let mut found = Vec::new();
    reached.grow(hops, |n, reached| {
        through(n, |n| graph.parents(n), &is_kept, &mut entered_up, &mut found);
        through(n, |n| graph.children(n), &is_kept, &mut entered_down, &mut found);
        reached.extend(&found);
        found.clear();
    });
    reached.sort_from(target_count);
    let mut entered = HashSet::new();
    reached.task_graph(|n, parents| {
        through(n, |n| graph.parents(n), &is_kept, &mut entered, parents);
        entered.clear();
    })
}

/// Adds to `found` the kept classes next to `n` in one direction, or behind classes left out that were not entered before.
fn through<'a>(
    n: Node,
    next: impl Fn(Node) -> &'a [Node],
    is_kept: impl Fn(Node) -> bool,
    entered: &mut HashSet<Node>,
    found: &mut Vec<Node>,
) {
    let mut open = vec![n];
    while let Some(n) = open.pop() {
        for &neighbour in next(n) {
            if is_kept(neighbour) {
                found.push(neighbour);
            } else if entered.insert(neighbour) {
                open.push(neighbour);
            }
        }
    }
}

/// The task graph around new classes, each of which is [`link`](fn@crate::link)ed as a parent to the classes listed for
/// it: the new ones, those linked to them, and everything within `hops` hops of the latter. New class `i` is number
/// `graph.len() + i`.
///
/// O(classes reached and their edges, sorted).
///
/// ```
/// use gpn_taxonomy::{TaxonomyBuilder, linked_task_graph};
///
/// let mut graph = TaxonomyBuilder::new();
/// let [animal, cat, dog] = ["animal", "cat", "dog"].map(|id| graph.add_class(id));
/// graph.add_edge(animal, cat, None);
/// graph.add_edge(animal, dog, None);
/// let graph = graph.build()?.taxonomy;
/// let task = linked_task_graph(&graph, &[vec![cat]], 1);
/// assert_eq!(task.nodes, [3, animal, cat]);
/// assert_eq!(task.edges, [(0, 2), (1, 2)]);
/// # Ok::<(), gpn_taxonomy::TaxonomyError>(())
/// ```
pub fn linked_task_graph<L: AsRef<[Node]>>(graph: &Taxonomy, links: &[L], hops: usize) -> TaskGraph {
    let first_new = graph.len() as Node;
    let mut reached = Reached::default();
    for link in links {
        reached.extend(link.as_ref());
    }
    reached.grow(hops, |n, reached| {
        reached.extend(graph.parents(n));
        reached.extend(graph.children(n));
    });
    reached.nodes.splice(0..0, (0..links.len() as Node).map(|new| first_new + new));
    reached.sort_from(links.len());
    let mut new_parents: HashMap<Node, Vec<Node>> = HashMap::new();
    for (link, new) in links.iter().zip(first_new..) {
        for &n in link.as_ref() {
            new_parents.entry(n).or_default().push(new);
        }
    }
    reached.task_graph(|n, parents| {
        if n < first_new {
            parents.extend_from_slice(graph.parents(n));
            parents.extend(new_parents.get(&n).into_iter().flatten());
        }
    })
}

/// Classes in the order in which they are reached, each with its place.
#[derive(Default)]
struct Reached {
    nodes: Vec<Node>,
    row: HashMap<Node, u32>,
}

impl Reached {
    fn extend(&mut self, nodes: &[Node]) {
        for &n in nodes {
            let next = self.nodes.len() as u32;
            self.row.entry(n).or_insert_with(|| {
                self.nodes.push(n);
                next
            });
        }
    }

    /// Goes some hops on from what is reached; `expand` reaches the neighbours of a class.
    fn grow(&mut self, hops: usize, mut expand: impl FnMut(Node, &mut Self)) {
        let mut from = 0;
        for _ in 0..hops {
            let to = self.nodes.len();
            if from == to {
                break;
            }
            for at in from..to {
                expand(self.nodes[at], self);
            }
            from = to;
        }
    }

    /// Sorts the classes from position `from` on and gives all their places.
    fn sort_from(&mut self, from: usize) {
        self.nodes[from..].sort_unstable();
        self.row = self.nodes.iter().copied().zip(0..).collect();
    }

    /// The classes with the edges among them; `add_parents` lists the parents of a class.
    fn task_graph(self, mut add_parents: impl FnMut(Node, &mut Vec<Node>)) -> TaskGraph {
        let (mut edges, mut parents) = (Vec::new(), Vec::new());
        for (&n, row) in self.nodes.iter().zip(0..) {
            add_parents(n, &mut parents);
            edges.extend(parents.drain(..).filter_map(|parent| Some((*self.row.get(&parent)?, row))));
        }
        edges.sort_unstable();
        edges.dedup();
        TaskGraph { nodes: self.nodes, edges }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::graph_of;

    #[test]
    fn a_path_through_classes_left_out_is_one_hop() {
        let graph = graph_of("r>a a>b b>x a>y r>z");
        let kept = |id: &str| ["r", "x", "y", "z"].contains(&id);
        let target = graph.find("x").unwrap();
        let ids = |hops| -> Vec<&str> {
            let task = contracted_task_graph(&graph, &[target], hops, |n| kept(graph.id(n)));
            task.nodes.iter().map(|&n| graph.id(n)).collect()
        };
        assert_eq!(ids(0), ["x"]);
        assert_eq!(ids(1), ["x", "r"]);
        assert_eq!(ids(2), ["x", "r", "y", "z"]);
    }

    #[test]
    fn new_classes_may_share_neighbours() {
        let graph = graph_of("r>a r>b");
        let task = linked_task_graph(&graph, &[vec![1, 1], vec![], vec![2, 1]], 0);
        assert_eq!(task, TaskGraph { nodes: vec![3, 4, 5, 1, 2], edges: vec![(0, 3), (2, 3), (2, 4)] });
    }
}
