//! The part of the class graph on which a task propagates.

use std::collections::{HashMap, HashSet};

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
    thin: Option<&mut Choose<'_>>,
    search: &mut HopSearch,
) -> TaskGraph {
    search.begin(graph);
    gather(Whole { graph, thin }, search, targets, hops)
}

/// The task graph on [`contract`](fn@crate::contract)ed classes: what [`task_graph`] gives where all classes but those that
/// `is_kept` names are contracted away first. Classes keep the numbers they have in `graph`; targets must be kept.
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
    let contracted = Contracted { graph, is_kept, entered_up: HashSet::new(), entered_down: HashSet::new() };
    gather(contracted, &mut Rows::default(), targets, hops)
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
    let mut new_parents: HashMap<Node, Vec<Node>> = HashMap::new();
    for (link, new) in links.iter().zip(first_new..) {
        for &n in link.as_ref() {
            new_parents.entry(n).or_default().push(new);
        }
    }
    let targets: Vec<Node> = (first_new..first_new + links.len() as Node).collect();
    let linked = Linked { graph, links, new_parents };
    // The hops count from the classes linked, which are one hop from the targets.
    gather(linked, &mut Rows::default(), &targets, hops.saturating_add(1))
}

/// The edges that a task graph follows: those of the class graph, or of one that is changed in thought only.
trait Edges {
    /// Adds the classes one hop from `n`. Asked once for each class that is followed.
    fn add_adjacent(&mut self, n: Node, found: &mut Vec<Node>);

    /// Adds all parents of `n`; some may come twice.
    fn add_parents(&mut self, n: Node, parents: &mut Vec<Node>);
}

/// The classes reached so far, each with its row.
trait Reached {
    fn reach(&mut self, n: Node);
    fn nodes(&self) -> &[Node];
    fn row_of(&self, n: Node) -> Option<u32>;
    /// Sorts the classes from position `from` on.
    fn sort_from(&mut self, from: usize);
}

/// The algorithm behind all task graphs: goes `hops` hops from the targets, then joins what was reached.
fn gather(mut edges: impl Edges, reached: &mut impl Reached, targets: &[Node], hops: usize) -> TaskGraph {
    for &target in targets {
        reached.reach(target);
    }
    let target_count = reached.nodes().len();
    let mut found = Vec::new();
    let mut from = 0;
    for _ in 0..hops {
        let to = reached.nodes().len();
        if from == to {
            break;
        }
        for at in from..to {
            edges.add_adjacent(reached.nodes()[at], &mut found);
            for n in found.drain(..) {
                reached.reach(n);
            }
        }
        from = to;
    }
    reached.sort_from(target_count);
    // Edges are looked up from the child: a class at the rim may have many children of which few are reached.
    let mut pairs = Vec::new();
    for (&n, row) in reached.nodes().iter().zip(0..) {
        edges.add_parents(n, &mut found);
        pairs.extend(found.drain(..).filter_map(|parent| Some((reached.row_of(parent)?, row))));
    }
    pairs.sort_unstable();
    pairs.dedup();
    TaskGraph { nodes: reached.nodes().to_vec(), edges: pairs }
}

/// The class graph as it is; long lists may be thinned.
struct Whole<'g, 't, 'c> {
    graph: &'g Taxonomy,
    thin: Option<&'t mut Choose<'c>>,
}

impl Edges for Whole<'_, '_, '_> {
    fn add_adjacent(&mut self, n: Node, found: &mut Vec<Node>) {
        for list in [self.graph.parents(n), self.graph.children(n)] {
            match &mut self.thin {
                Some(choose) if list.len() > LONGEST_WHOLE_LIST => {
                    choose(list, half_to_even(list.len()), found);
                }
                _ => found.extend_from_slice(list),
            }
        }
    }

    fn add_parents(&mut self, n: Node, parents: &mut Vec<Node>) {
        parents.extend_from_slice(self.graph.parents(n));
    }
}

/// The class graph with classes contracted away.
struct Contracted<'g, K> {
    graph: &'g Taxonomy,
    is_kept: K,
    /// Classes left out that were entered from below and from above. What lies behind one is reached with the first step
    /// into it, so no later step needs to enter.
    entered_up: HashSet<Node>,
    entered_down: HashSet<Node>,
}

impl<K: Fn(Node) -> bool> Edges for Contracted<'_, K> {
    fn add_adjacent(&mut self, n: Node, found: &mut Vec<Node>) {
        through(n, |n| self.graph.parents(n), &self.is_kept, &mut self.entered_up, found);
        through(n, |n| self.graph.children(n), &self.is_kept, &mut self.entered_down, found);
    }

    fn add_parents(&mut self, n: Node, parents: &mut Vec<Node>) {
        through(n, |n| self.graph.parents(n), &self.is_kept, &mut HashSet::new(), parents);
    }
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

/// The class graph with new classes above some of its own.
struct Linked<'g, L> {
    graph: &'g Taxonomy,
    /// The children of each new class.
    links: &'g [L],
    /// The new parents of a class.
    new_parents: HashMap<Node, Vec<Node>>,
}

impl<L: AsRef<[Node]>> Edges for Linked<'_, L> {
    fn add_adjacent(&mut self, n: Node, found: &mut Vec<Node>) {
        match (n as usize).checked_sub(self.graph.len()) {
            Some(new) => found.extend_from_slice(self.links[new].as_ref()),
            // All new classes are targets, so that new parents are reached already.
            None => found.extend(self.graph.adjacent(n)),
        }
    }

    fn add_parents(&mut self, n: Node, parents: &mut Vec<Node>) {
        if (n as usize) < self.graph.len() {
            parents.extend_from_slice(self.graph.parents(n));
            parents.extend(self.new_parents.get(&n).into_iter().flatten());
        }
    }
}

impl Reached for HopSearch {
    fn reach(&mut self, n: Node) {
        self.reach(n);
    }

    fn nodes(&self) -> &[Node] {
        &self.reached
    }

    fn row_of(&self, n: Node) -> Option<u32> {
        self.row_of(n)
    }

    fn sort_from(&mut self, from: usize) {
        self.sort_from(from);
    }
}

/// Classes in the order in which they are reached, without memory for those that are not.
#[derive(Default)]
struct Rows {
    nodes: Vec<Node>,
    row: HashMap<Node, u32>,
}

impl Reached for Rows {
    fn reach(&mut self, n: Node) {
        let next = self.nodes.len() as u32;
        self.row.entry(n).or_insert_with(|| {
            self.nodes.push(n);
            next
        });
    }

    fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    fn row_of(&self, n: Node) -> Option<u32> {
        self.row.get(&n).copied()
    }

    fn sort_from(&mut self, from: usize) {
        self.nodes[from..].sort_unstable();
        self.row = self.nodes.iter().copied().zip(0..).collect();
    }
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
