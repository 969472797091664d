//! Collects classes and edges, then checks them once.

use std::path::{Path, PathBuf};

use crate::error::{CycleEdge, Place, TaxonomyError, Warning};
use crate::graph::{Checked, Lists, Node, Taxonomy};
use crate::text::{Ids, Texts};

/// Collects classes and edges; [`build`](Self::build) checks them and makes the [`Taxonomy`].
///
/// ```
/// use gpn_taxonomy::TaxonomyBuilder;
///
/// let mut graph = TaxonomyBuilder::new();
/// let animal = graph.add_class("animal");
/// let cat = graph.add_class("cat");
/// graph.set_name(cat, "house cat");
/// graph.add_edge(animal, cat, None);
/// let graph = graph.build()?.taxonomy;
/// assert_eq!(graph.children(animal), [cat]);
/// assert_eq!(graph.name(cat), "house cat");
/// assert_eq!(graph.name(animal), "animal");
/// # Ok::<(), gpn_taxonomy::TaxonomyError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct TaxonomyBuilder {
    file: Option<PathBuf>,
    ids: Ids,
    names: Vec<(Node, String)>,
    descriptions: Vec<(Node, String)>,
    edges: Vec<(Node, Node)>,
    /// Line of each edge, 0 for none; no longer than the last edge that has one.
    lines: Vec<u64>,
}

impl TaxonomyBuilder {
    /// An empty graph made in memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty graph whose errors and warnings name this file.
    pub fn for_file(path: &Path) -> Self {
        Self { file: Some(path.to_path_buf()), ..Self::default() }
    }

    /// Number of classes so far.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there is no class yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The position of the class `id`, which is added when it is new. Blanks around an id are not part of it.
    pub fn add_class(&mut self, id: &str) -> Node {
        self.ids.insert(id.trim())
    }

    pub(crate) fn id(&self, n: Node) -> &str {
        self.ids.get(n)
    }

    /// Names a class. The last name given counts; an empty one is none.
    pub fn set_name(&mut self, n: Node, name: &str) {
        self.names.push((n, name.to_owned()));
    }

    /// Describes a class. The last description given counts; an empty one is none.
    pub fn set_description(&mut self, n: Node, description: &str) {
        self.descriptions.push((n, description.to_owned()));
    }

    /// Adds an edge, stated in `line` (counted from 1) of the file.
    pub fn add_edge(&mut self, parent: Node, child: Node, line: Option<u64>) {
        if let Some(line) = line {
            self.lines.resize(self.edges.len(), 0);
            self.lines.push(line);
        }
        self.edges.push((parent, child));
    }

    /// Adds a class of another graph with its name and description.
    pub(crate) fn copy_class(&mut self, from: &Taxonomy, n: Node) -> Node {
        let copy = self.add_class(from.id(n));
        if let Some(name) = from.own_name(n) {
            self.set_name(copy, name);
        }
        if let Some(description) = from.description(n) {
            self.set_description(copy, description);
        }
        copy
    }

    /// Checks the graph. An error: a class that is its own parent or ancestor (the cycle is in the
    /// message), an empty id, an edge of a class that was not added. A warning: an edge stated twice.
    /// Several roots are kept as they are, see [`Checked::with_single_root`]. O(classes + edges), without recursion.
    pub fn build(mut self) -> Result<Checked, TaxonomyError> {
        let classes = self.ids.len();
        if let Some(at) = self.edges.iter().position(|edge| edge.0.max(edge.1) as usize >= classes) {
            let (parent, child) = self.edges[at];
            return Err(TaxonomyError::EdgeBeyondClasses {
                place: self.place(self.line(at)),
                class: parent.max(child),
                classes,
            });
        }
        let warnings = self
            .drop_repeated_edges()
            .into_iter()
            .map(|((parent, child), line)| Warning::DuplicateEdge {
                place: self.place(line),
                parent: self.ids.get(parent).to_owned(),
                child: self.ids.get(child).to_owned(),
            })
            .collect();
        Ok(Checked { taxonomy: self.finish()?, warnings })
    }

    /// The graph of edges that are known to be distinct.
    fn finish(mut self) -> Result<Taxonomy, TaxonomyError> {
        if self.ids.len() >= u32::MAX as usize || self.edges.len() >= u32::MAX as usize {
            return Err(TaxonomyError::TooManyClasses { place: self.place(None) });
        }
        if self.ids.find("").is_some() {
            return Err(TaxonomyError::EmptyId { place: self.place(None) });
        }
        if let Some(at) = self.edges.iter().position(|(parent, child)| parent == child) {
            let id = self.ids.get(self.edges[at].0).to_owned();
            return Err(TaxonomyError::SelfLoop { place: self.place(self.line(at)), id });
        }
        let nodes = self.ids.len();
        let children = Lists::group(nodes, self.edges.iter().copied());
        let parents = Lists::group(nodes, self.edges.iter().map(|&(parent, child)| (child, parent)));
        let order = topological_order(&parents, &children, nodes);
        if order.len() < nodes {
            return Err(TaxonomyError::Cycle { place: self.place(None), edges: self.cycle(&order) });
        }
        self.ids.shrink();
        Ok(Taxonomy {
            names: dense(self.names),
            descriptions: dense(self.descriptions),
            ids: self.ids,
            edges: self.edges.into(),
            parents,
            children,
            order: order.into(),
        })
    }

    /// Builds a graph made from a checked one by steps that cannot create a cycle.
    /// Edges may repeat and count once.
    pub(crate) fn build_known_acyclic(mut self) -> Taxonomy {
        self.drop_repeated_edges();
        match self.finish() {
            Ok(taxonomy) => taxonomy,
            // invariant: callers take classes and paths from a checked graph, so no check can fail.
            Err(error) => unreachable!("{error}"),
        }
    }

    fn place(&self, line: Option<u64>) -> Place {
        Place { file: self.file.clone(), line }
    }

    fn line(&self, edge: usize) -> Option<u64> {
        self.lines.get(edge).copied().filter(|&line| line > 0)
    }

    /// Keeps the first of equal edges and returns the others with their lines. O(classes + edges).
    pub(crate) fn drop_repeated_edges(&mut self) -> Vec<((Node, Node), Option<u64>)> {
        let nodes = self.ids.len();
        let by_parent =
            Lists::group(nodes, self.edges.iter().enumerate().map(|(at, &(parent, _))| (parent, at as u32)));
        let mut last_parent = vec![Node::MAX; nodes];
        let mut repeated = Vec::new();
        for parent in 0..nodes as Node {
            for &at in by_parent.of(parent) {
                let child = self.edges[at as usize].1 as usize;
                if last_parent[child] == parent {
                    repeated.push(at as usize);
                }
                last_parent[child] = parent;
            }
        }
        if repeated.is_empty() {
            return Vec::new();
        }
        repeated.sort_unstable();
        let dropped = repeated.iter().map(|&at| (self.edges[at], self.line(at))).collect();
        self.lines.resize(self.edges.len(), 0);
        let mut next = repeated.into_iter().peekable();
        let mut kept = 0;
        for at in 0..self.edges.len() {
            if next.next_if_eq(&at).is_none() {
                self.edges[kept] = self.edges[at];
                self.lines[kept] = self.lines[at];
                kept += 1;
            }
        }
        self.edges.truncate(kept);
        self.lines.truncate(kept);
        dropped
    }

    /// One cycle among the classes that `sorted` could not reach: each of them has such a parent, so
    /// walking from parent to parent must come back.
    fn cycle(&self, sorted: &[Node]) -> Vec<CycleEdge> {
        let nodes = self.ids.len();
        let mut in_or_below_cycle = vec![true; nodes];
        for &n in sorted {
            in_or_below_cycle[n as usize] = false;
        }
        let mut edge_from_parent = vec![usize::MAX; nodes];
        for (at, &(parent, child)) in self.edges.iter().enumerate() {
            if in_or_below_cycle[parent as usize] && edge_from_parent[child as usize] == usize::MAX {
                edge_from_parent[child as usize] = at;
            }
        }
        let parent_of = |n: usize| self.edges[edge_from_parent[n]].0 as usize;
        let Some(mut n) = in_or_below_cycle.iter().position(|&is| is) else { return Vec::new() };
        let mut seen = vec![false; nodes];
        while !seen[n] {
            seen[n] = true;
            n = parent_of(n);
        }
        let first = n;
        let mut cycle = Vec::new();
        loop {
            let at = edge_from_parent[n];
            let (parent, child) = self.edges[at];
            cycle.push(CycleEdge {
                parent: self.ids.get(parent).to_owned(),
                child: self.ids.get(child).to_owned(),
                line: self.line(at),
            });
            n = parent as usize;
            if n == first {
                break;
            }
        }
        cycle.reverse();
        cycle
    }
}

/// Parents before children, roots in the order of the graph; classes in or below a cycle are missing.
fn topological_order(parents: &Lists, children: &Lists, nodes: usize) -> Vec<Node> {
    let mut waiting: Vec<u32> = (0..nodes).map(|n| parents.of(n as Node).len() as u32).collect();
    let mut order: Vec<Node> = (0..nodes as Node).filter(|&n| waiting[n as usize] == 0).collect();
    let mut next = 0;
    while let Some(&n) = order.get(next) {
        next += 1;
        for &child in children.of(n) {
            waiting[child as usize] -= 1;
            if waiting[child as usize] == 0 {
                order.push(child);
            }
        }
    }
    order
}

/// Texts by node from `(node, text)` pairs in any order; the last text of a node counts.
fn dense(mut pairs: Vec<(Node, String)>) -> Texts {
    pairs.sort_by_key(|&(n, _)| n);
    let mut texts = Texts::default();
    let mut pairs = pairs.into_iter().peekable();
    while let Some((n, text)) = pairs.next() {
        if pairs.peek().is_some_and(|&(next, _)| next == n) {
            continue;
        }
        while texts.len() < n as usize {
            texts.push("");
        }
        texts.push(&text);
    }
    texts.shrink();
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(edges: &[(&str, &str)]) -> Result<Checked, TaxonomyError> {
        let mut graph = TaxonomyBuilder::for_file(Path::new("graph.csv"));
        for (line, (parent, child)) in edges.iter().enumerate() {
            let (parent, child) = (graph.add_class(parent), graph.add_class(child));
            graph.add_edge(parent, child, Some(line as u64 + 1));
        }
        graph.build()
    }

    #[test]
    fn an_edge_of_a_class_that_is_not_there_is_an_error() {
        // Two of the three are one class, so that there is no class number 2.
        let mut graph = TaxonomyBuilder::new();
        for id in ["a", "b", "a"] {
            graph.add_class(id);
        }
        graph.add_edge(0, 2, None);
        let message = graph.build().unwrap_err().to_string();
        assert!(message.contains("class number 2, but there are 2"), "{message}");
    }

    fn message(edges: &[(&str, &str)]) -> String {
        build(edges).unwrap_err().to_string()
    }

    #[test]
    fn lists_follow_the_order_of_the_edges() {
        let graph = build(&[("r", "b"), ("r", "a"), ("b", "x"), ("a", "x")]).unwrap().taxonomy;
        let id = |n: &Node| graph.id(*n);
        let x = graph.find("x").unwrap();
        assert_eq!(graph.children(0).iter().map(id).collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!(graph.parents(x).iter().map(id).collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!(graph.roots().collect::<Vec<_>>(), [0]);
        assert_eq!(graph.leaves().collect::<Vec<_>>(), [x]);
        assert_eq!(graph.topological_order(), [0, 1, 2, 3]);
        assert_eq!((graph.len(), graph.edge_count()), (4, 4));
    }

    #[test]
    fn a_cycle_is_printed_with_its_lines() {
        assert_eq!(
            message(&[("root", "a"), ("a", "b"), ("b", "c"), ("c", "a"), ("c", "leaf")]),
            "graph.csv: the class graph has a cycle: a -> b -> c -> a (lines 2, 3, 4); remove one of these edges"
        );
    }

    #[test]
    fn a_long_cycle_is_shortened() {
        let names: Vec<String> = (0..100).map(|i| format!("c{i}")).collect();
        let edges: Vec<_> = (0..100).map(|i| (names[i].as_str(), names[(i + 1) % 100].as_str())).collect();
        let text = message(&edges);
        assert!(text.contains("... 88 more ..."), "{text}");
    }

    #[test]
    fn a_self_loop_is_an_error() {
        assert_eq!(
            message(&[("a", "b"), ("b", "b")]),
            "graph.csv:2: class `b` is its own parent; remove this edge"
        );
    }

    #[test]
    fn an_empty_id_is_an_error() {
        assert!(message(&[("", "b")]).contains("empty id"));
    }

    #[test]
    fn duplicate_edges_count_once() {
        let checked = build(&[("a", "b"), ("a", "c"), ("a", "b"), ("c", "b"), ("a", "b")]).unwrap();
        assert_eq!(checked.taxonomy.edges().collect::<Vec<_>>(), [(0, 1), (0, 2), (2, 1)]);
        let texts: Vec<String> = checked.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "graph.csv:3: edge a -> b is stated again; it counts once",
                "graph.csv:5: edge a -> b is stated again; it counts once"
            ]
        );
    }

    #[test]
    fn the_last_name_counts() {
        let mut graph = TaxonomyBuilder::new();
        let (a, b, c) = (graph.add_class("a"), graph.add_class("b"), graph.add_class("c"));
        graph.set_name(b, "old");
        graph.set_description(a, "the first");
        graph.set_name(b, "new");
        let graph = graph.build().unwrap().taxonomy;
        assert_eq!((graph.name(a), graph.name(b), graph.name(c)), ("a", "new", "c"));
        assert_eq!((graph.description(a), graph.description(b)), (Some("the first"), None));
    }

    #[test]
    fn an_existing_root_can_take_the_others() {
        let checked = build(&[("root", "a"), ("top", "b")]).unwrap().with_single_root("root").unwrap();
        let graph = checked.taxonomy;
        assert_eq!(graph.len(), 4);
        assert_eq!(graph.roots().map(|n| graph.id(n)).collect::<Vec<_>>(), ["root"]);
        let refused = build(&[("x", "root"), ("top", "b")]).unwrap().with_single_root("root");
        assert!(refused.unwrap_err().to_string().contains("choose another name"));
    }
}
