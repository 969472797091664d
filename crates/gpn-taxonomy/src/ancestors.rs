//! The part of a graph that given leaves need.

use crate::error::TaxonomyError;
use crate::graph::{Node, Taxonomy};

/// The graph of some classes and all their ancestors, with the edges among them. Classes and edges keep the
/// order they have in `graph`. Ids that do not exist are an error that names them all.
///
/// O(classes + edges).
///
/// ```
/// use gpn_taxonomy::{TaxonomyBuilder, ancestors};
///
/// let mut graph = TaxonomyBuilder::new();
/// for (parent, child) in [("animal", "cat"), ("animal", "dog"), ("thing", "animal"), ("thing", "car")] {
///     let (parent, child) = (graph.add_class(parent), graph.add_class(child));
///     graph.add_edge(parent, child, None);
/// }
/// let graph = graph.build()?.taxonomy;
/// let part = ancestors(&graph, &["cat"])?;
/// assert_eq!(part.nodes().map(|n| part.id(n)).collect::<Vec<_>>(), ["animal", "cat", "thing"]);
///
/// let error = ancestors(&graph, &["cta"]).unwrap_err();
/// assert!(error.to_string().starts_with("unknown class: `cta`"));
/// # Ok::<(), gpn_taxonomy::TaxonomyError>(())
/// ```
pub fn ancestors<S: AsRef<str>>(graph: &Taxonomy, leaves: &[S]) -> Result<Taxonomy, TaxonomyError> {
    Ok(graph.induced(&with_ancestors(graph, &graph.find_all(leaves)?)))
}

/// Some classes and all their ancestors, ascending.
pub(crate) fn with_ancestors(graph: &Taxonomy, classes: &[Node]) -> Vec<Node> {
    let mut reached = vec![false; graph.len()];
    let mut open = classes.to_vec();
    while let Some(n) = open.pop() {
        if !std::mem::replace(&mut reached[n as usize], true) {
            open.extend_from_slice(graph.parents(n));
        }
    }
    graph.nodes().filter(|&n| reached[n as usize]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::graph_of;

    #[test]
    fn all_ancestors_and_nothing_else_remain() {
        let graph = graph_of("r>a r>b a>x b>x b>y x>z r>q");
        let part = ancestors(&graph, &["x", "x"]).unwrap();
        assert_eq!(crate::sample::edges_of(&part), "r>a r>b a>x b>x");
        let none: [&str; 0] = [];
        assert!(ancestors(&graph, &none).unwrap().is_empty());
    }

    #[test]
    fn every_unknown_class_is_named() {
        let graph = graph_of("animal>cat animal>mastiff");
        let message = ancestors(&graph, &["cat", "mastif", "vehicle"]).unwrap_err().to_string();
        assert_eq!(
            message,
            "unknown class: `mastif` (did you mean `mastiff`?), `vehicle`; use ids of the taxonomy"
        );
    }
}
