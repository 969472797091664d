//! Classes named by paths, such as folders in folders.

use std::collections::HashMap;

use crate::builder::TaxonomyBuilder;
use crate::error::TaxonomyError;
use crate::graph::Checked;

/// Ids for the root, of which the first that no class has is taken.
const ROOTS: [&str; 3] = ["root", "all classes", "(all classes)"];

/// A tree of classes, each known by its path from the top: `Fruit/Apple/Golden-Delicious`.
///
/// The id of a class is the last part of its path where no other class has the same, else the whole path with `/` between
/// the parts. Its name is the last part.
///
/// ```
/// use gpn_taxonomy::PathTree;
///
/// let mut tree = PathTree::new();
/// let juices = [["Fruit", "Juice"], ["Packages", "Juice"]].map(|path| tree.insert(path));
/// let apple = tree.insert(["Fruit", "Apple"]);
/// let ids = tree.ids();
/// assert_eq!(juices.map(|class| ids[class].as_str()), ["Fruit/Juice", "Packages/Juice"]);
/// assert_eq!(ids[apple], "Apple");
/// let taxonomy = tree.taxonomy(&ids, |_| None)?.taxonomy;
/// assert_eq!(taxonomy.roots().map(|root| taxonomy.id(root)).collect::<Vec<_>>(), ["root"]);
/// # Ok::<(), gpn_taxonomy::TaxonomyError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct PathTree {
    /// Parent (`None` at the top) and last part of the path of each class.
    classes: Vec<(Option<usize>, String)>,
    known: HashMap<(Option<usize>, String), usize>,
}

impl PathTree {
    /// An empty tree.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of classes.
    pub fn len(&self) -> usize {
        self.classes.len()
    }

    /// Whether there are no classes.
    pub fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    /// The number of the class at a path, which is added with all above it where it is new. Blanks around the parts do
    /// not count, as with all ids.
    ///
    /// # Panics
    /// If the path has no parts.
    pub fn insert<'p>(&mut self, path: impl IntoIterator<Item = &'p str>) -> usize {
        let mut at = None;
        for part in path.into_iter().map(str::trim) {
            let key = (at, part.to_owned());
            let new = self.classes.len();
            let class = *self.known.entry(key).or_insert(new);
            if class == new {
                self.classes.push((at, part.to_owned()));
            }
            at = Some(class);
        }
        at.expect("a path has at least one part")
    }

    /// The last part of a class's path.
    pub fn name(&self, class: usize) -> &str {
        &self.classes[class].1
    }

    /// The class above, unless this one is at the top.
    pub fn parent(&self, class: usize) -> Option<usize> {
        self.classes[class].0
    }

    /// The parts of a class's path joined by `/`.
    pub fn path(&self, class: usize) -> String {
        let mut parts = vec![self.name(class)];
        let mut at = class;
        while let Some(parent) = self.parent(at) {
            parts.push(self.name(parent));
            at = parent;
        }
        parts.reverse();
        parts.join("/")
    }

    /// The id of each class. O(size of all paths).
    pub fn ids(&self) -> Vec<String> {
        let mut bearers: HashMap<&str, usize> = HashMap::new();
        for (_, name) in &self.classes {
            *bearers.entry(name).or_default() += 1;
        }
        let id = |class: usize| {
            let name = self.name(class);
            if bearers[name] == 1 { name.to_owned() } else { self.path(class) }
        };
        (0..self.len()).map(id).collect()
    }

    /// The graph of all classes below one root, with these ids and the descriptions that there are. Two classes of one id
    /// are one class with the parents of both.
    pub fn taxonomy(
        &self,
        ids: &[String],
        description: impl Fn(usize) -> Option<String>,
    ) -> Result<Checked, TaxonomyError> {
        let mut graph = TaxonomyBuilder::new();
        let free = |root: &&str| ids.iter().all(|id| id != root);
        // The last resort is a path that no folder has.
        let root = graph.add_class(ROOTS.iter().copied().find(free).unwrap_or("/"));
        let nodes: Vec<_> = ids.iter().map(|id| graph.add_class(id)).collect();
        for (class, &node) in nodes.iter().enumerate() {
            if self.name(class) != ids[class] {
                graph.set_name(node, self.name(class));
            }
            if let Some(text) = description(class) {
                graph.set_description(node, &text);
            }
            graph.add_edge(self.parent(class).map_or(root, |parent| nodes[parent]), node, None);
        }
        graph.drop_repeated_edges();
        graph.build()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_called_root_stays_a_class() {
        let mut tree = PathTree::new();
        let classes = [vec!["root"], vec!["root", "ginger"], vec!["leaf"]].map(|path| tree.insert(path));
        assert_eq!(classes, [0, 1, 2]);
        let graph = tree.taxonomy(&tree.ids(), |_| None).unwrap().taxonomy;
        assert_eq!(graph.roots().map(|root| graph.id(root)).collect::<Vec<_>>(), ["all classes"]);
        assert_eq!(graph.len(), 4);
    }

    #[test]
    fn names_that_occur_twice_are_told_apart_by_their_paths() {
        let mut tree = PathTree::new();
        tree.insert(["Apple"]);
        tree.insert(["Fruit", "Apple"]);
        assert_eq!(tree.ids(), ["Apple", "Fruit", "Fruit/Apple"]);
        let graph = tree.taxonomy(&tree.ids(), |class| Some(format!("number {class}"))).unwrap().taxonomy;
        let inner = graph.find("Fruit/Apple").unwrap();
        assert_eq!((graph.name(inner), graph.description(inner)), ("Apple", Some("number 2")));
        assert_eq!(graph.edge_count(), 3);
    }
}
