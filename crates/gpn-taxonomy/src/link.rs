//! New classes joined to existing ones.

use crate::builder::TaxonomyBuilder;
use crate::error::TaxonomyError;
use crate::graph::{Node, Taxonomy};

/// On which side of the existing classes a new class is put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkAs {
    /// The new class becomes a child: its parents are known.
    Child,
    /// The new class becomes a parent, as the method does where the hierarchy of a class is unknown and it is
    /// linked to its nearest prototypes.
    Parent,
}

/// The graph with further classes, each linked to existing ones; they follow the existing classes in the order
/// given. A class that exists already is an error.
///
/// O(classes + edges).
///
/// ```
/// use gpn_taxonomy::{LinkAs, TaxonomyBuilder, link};
///
/// let mut graph = TaxonomyBuilder::new();
/// let [animal, cat] = ["animal", "cat"].map(|id| graph.add_class(id));
/// graph.add_edge(animal, cat, None);
/// let graph = graph.build()?.taxonomy;
/// let more = link(&graph, &[("lynx", &[cat, animal])], LinkAs::Child)?;
/// let lynx = more.find("lynx").unwrap();
/// assert_eq!(more.parents(lynx), [cat, animal]);
/// assert!(link(&graph, &[("cat", &[])], LinkAs::Child).is_err());
/// # Ok::<(), gpn_taxonomy::TaxonomyError>(())
/// ```
pub fn link(graph: &Taxonomy, new: &[(&str, &[Node])], side: LinkAs) -> Result<Taxonomy, TaxonomyError> {
    let mut linked = TaxonomyBuilder::new();
    for n in graph.nodes() {
        linked.copy_class(graph, n);
    }
    for (parent, child) in graph.edges() {
        linked.add_edge(parent, child, None);
    }
    for (id, neighbours) in new {
        let known = linked.len();
        let class = linked.add_class(id);
        if (class as usize) < known {
            return Err(TaxonomyError::ClassExists {
                id: (*id).to_owned(),
                hint: "give the new class another id",
            });
        }
        for &neighbour in *neighbours {
            match side {
                LinkAs::Child => linked.add_edge(neighbour, class, None),
                LinkAs::Parent => linked.add_edge(class, neighbour, None),
            }
        }
    }
    Ok(linked.build()?.taxonomy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{edges_of, graph_of};

    #[test]
    fn new_classes_follow_and_can_be_parents() {
        let graph = graph_of("r>a r>b");
        let linked = link(&graph, &[("new", &[1, 2]), ("lone", &[])], LinkAs::Parent).unwrap();
        assert_eq!(edges_of(&linked), "r>a r>b new>a new>b");
        assert_eq!(linked.id(4), "lone");
    }

    #[test]
    fn a_name_can_be_used_once() {
        let graph = graph_of("r>a");
        let error = link(&graph, &[("new", &[0]), ("new", &[1])], LinkAs::Child).unwrap_err();
        assert_eq!(error.to_string(), "class `new` exists already; give the new class another id");
        assert!(link(&graph, &[(" ", &[0])], LinkAs::Child).is_err());
    }
}
