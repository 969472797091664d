//! The class graph itself: compact, immutable, checked when it is made.

use crate::builder::TaxonomyBuilder;
use crate::error::{TaxonomyError, UnknownClass, Warning};
use crate::nearest::nearest_name;
use crate::text::{Ids, Texts};

/// The position of a class in its [`Taxonomy`], from 0 to `len() - 1`.
pub type Node = u32;

/// For each node a list of nodes, all in one allocation.
#[derive(Debug, Clone)]
pub(crate) struct Lists {
    starts: Box<[u32]>,
    items: Box<[Node]>,
}

impl Lists {
    /// Groups `(key, item)` pairs by key; the items of a key keep the order of the pairs. O(nodes + pairs).
    pub(crate) fn group(nodes: usize, pairs: impl Iterator<Item = (Node, Node)> + Clone) -> Self {
        let mut starts = vec![0u32; nodes + 1];
        for (key, _) in pairs.clone() {
            starts[key as usize + 1] += 1;
        }
        for i in 0..nodes {
            starts[i + 1] += starts[i];
        }
        let mut next = starts.clone();
        let mut items = vec![0; starts[nodes] as usize];
        for (key, item) in pairs {
            let slot = &mut next[key as usize];
            items[*slot as usize] = item;
            *slot += 1;
        }
        Self { starts: starts.into(), items: items.into() }
    }

    pub(crate) fn of(&self, n: Node) -> &[Node] {
        &self.items[self.starts[n as usize] as usize..self.starts[n as usize + 1] as usize]
    }
}

/// A directed acyclic graph of classes, edges from parent to child.
///
/// Made by a [`TaxonomyBuilder`] or a reader; it cannot change afterwards, operations make new ones.
/// Strings lie in one allocation and adjacency in flat arrays: a million classes with 1.2 million edges
/// take some 90 MB.
#[derive(Debug, Clone)]
pub struct Taxonomy {
    pub(crate) ids: Ids,
    /// Empty where a class has none; no longer than the last class that has one.
    pub(crate) names: Texts,
    pub(crate) descriptions: Texts,
    pub(crate) edges: Box<[(Node, Node)]>,
    pub(crate) parents: Lists,
    pub(crate) children: Lists,
    pub(crate) order: Box<[Node]>,
}

impl Taxonomy {
    /// Number of classes.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there is no class at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of edges.
    pub fn edge_count(&self) -> usize {
        self.edges.len()
    }

    /// The id of a class.
    pub fn id(&self, n: Node) -> &str {
        self.ids.get(n)
    }

    /// The name of a class, which is its id when it has no name of its own.
    pub fn name(&self, n: Node) -> &str {
        self.own_name(n).unwrap_or_else(|| self.id(n))
    }

    /// The name of a class if it has one of its own.
    pub fn own_name(&self, n: Node) -> Option<&str> {
        text_of(&self.names, n)
    }

    /// The description of a class, if it has one: a sentence that says what it is.
    pub fn description(&self, n: Node) -> Option<&str> {
        text_of(&self.descriptions, n)
    }

    /// The class with this id. O(length of the id).
    pub fn find(&self, id: &str) -> Option<Node> {
        self.ids.find(id)
    }

    /// The classes with these ids, in the same order. Ids that do not exist are all named in one error,
    /// each with the most similar id there is.
    pub fn find_all<S: AsRef<str>>(&self, ids: &[S]) -> Result<Vec<Node>, TaxonomyError> {
        let mut found = Vec::with_capacity(ids.len());
        let mut unknown = Vec::new();
        for id in ids.iter().map(AsRef::as_ref) {
            match self.find(id) {
                Some(n) => found.push(n),
                // A long list of unknown ids is one mistake, not many: proposals for the first few suffice.
                None => unknown.push(UnknownClass {
                    id: id.to_owned(),
                    nearest: (unknown.len() < 10)
                        .then(|| nearest_name(id, self.nodes().map(|n| self.id(n))))
                        .flatten()
                        .map(str::to_owned),
                }),
            }
        }
        if unknown.is_empty() { Ok(found) } else { Err(TaxonomyError::UnknownClasses(unknown)) }
    }

    /// Parents of a class, in the order of their edges.
    pub fn parents(&self, n: Node) -> &[Node] {
        self.parents.of(n)
    }

    /// Children of a class, in the order of their edges.
    pub fn children(&self, n: Node) -> &[Node] {
        self.children.of(n)
    }

    /// Parents, then children of a class: its neighbours at one hop.
    pub fn adjacent(&self, n: Node) -> impl Iterator<Item = Node> + '_ {
        self.parents(n).iter().chain(self.children(n)).copied()
    }

    /// All edges as `(parent, child)`, in the order in which they were added.
    pub fn edges(&self) -> impl ExactSizeIterator<Item = (Node, Node)> + Clone + '_ {
        self.edges.iter().copied()
    }

    /// All classes, in the order in which they were added.
    pub fn nodes(&self) -> std::ops::Range<Node> {
        0..self.len() as Node
    }

    /// Classes without parents.
    pub fn roots(&self) -> impl Iterator<Item = Node> + '_ {
        self.nodes().filter(|&n| self.parents(n).is_empty())
    }

    /// Classes without children.
    pub fn leaves(&self) -> impl Iterator<Item = Node> + '_ {
        self.nodes().filter(|&n| self.children(n).is_empty())
    }

    /// All classes, every parent before its children. Kept, so this costs nothing.
    pub fn topological_order(&self) -> &[Node] {
        &self.order
    }

    /// The graph of some classes and the edges among them; names and descriptions come along.
    /// The classes keep the order in which they are given, edges keep theirs.
    ///
    /// Use [`contract`](fn@crate::contract) to keep the connections through classes that are left out.
    /// O(classes + edges) of the whole graph.
    #[must_use]
    pub fn induced(&self, nodes: &[Node]) -> Self {
        let mut to = vec![Node::MAX; self.len()];
        let mut part = TaxonomyBuilder::new();
        for &n in nodes {
            to[n as usize] = part.copy_class(self, n);
        }
        for (parent, child) in self.edges() {
            let (p, c) = (to[parent as usize], to[child as usize]);
            if p != Node::MAX && c != Node::MAX {
                part.add_edge(p, c, None);
            }
        }
        part.build_known_acyclic()
    }
}

fn text_of(texts: &Texts, n: Node) -> Option<&str> {
    if n as usize >= texts.len() {
        return None;
    }
    Some(texts.get(n as usize)).filter(|text| !text.is_empty())
}

/// A taxonomy that passed all checks, and what was found on the way.
#[derive(Debug, Clone)]
pub struct Checked {
    /// The graph.
    pub taxonomy: Taxonomy,
    /// What was repaired, in the order of the input.
    pub warnings: Vec<Warning>,
}

impl Checked {
    /// Gives a graph with several roots a single one: a class `id` above all roots, with a warning that
    /// names them. If one of the roots is called `id` already, it becomes the parent of the others.
    /// A graph with one root stays as it is.
    ///
    /// ```
    /// use gpn_taxonomy::TaxonomyBuilder;
    ///
    /// let mut graph = TaxonomyBuilder::new();
    /// for (parent, child) in [("animal", "cat"), ("vehicle", "car")] {
    ///     let (parent, child) = (graph.add_class(parent), graph.add_class(child));
    ///     graph.add_edge(parent, child, None);
    /// }
    /// let checked = graph.build()?.with_single_root("root")?;
    /// assert_eq!(checked.taxonomy.roots().count(), 1);
    /// assert_eq!(checked.warnings[0].to_string(), "2 roots joined below `root`: animal, vehicle");
    /// # Ok::<(), gpn_taxonomy::TaxonomyError>(())
    /// ```
    pub fn with_single_root(mut self, id: &str) -> Result<Self, TaxonomyError> {
        let graph = &self.taxonomy;
        let roots: Vec<Node> = graph.roots().collect();
        if roots.len() < 2 {
            return Ok(self);
        }
        let existing = graph.find(id);
        if existing.is_some_and(|n| !graph.parents(n).is_empty()) {
            return Err(TaxonomyError::ClassExists {
                id: id.to_owned(),
                hint: "it has parents and cannot be the root: choose another name for the root",
            });
        }
        let mut joined = TaxonomyBuilder::new();
        for n in graph.nodes() {
            joined.copy_class(graph, n);
        }
        let root = joined.add_class(id);
        let below: Vec<Node> = roots.into_iter().filter(|&n| n != root).collect();
        for &n in &below {
            joined.add_edge(root, n, None);
        }
        for (parent, child) in graph.edges() {
            joined.add_edge(parent, child, None);
        }
        let below = below.iter().map(|&n| graph.id(n).to_owned()).collect();
        self.warnings.push(Warning::VirtualRoot { id: id.to_owned(), below });
        self.taxonomy = joined.build_known_acyclic();
        Ok(self)
    }
}
