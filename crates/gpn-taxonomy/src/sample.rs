//! Small graphs for tests, written as `parent>child` words.

use crate::builder::TaxonomyBuilder;
use crate::graph::Taxonomy;

/// A word without `>` is a class without edges.
pub(crate) fn graph_of(words: &str) -> Taxonomy {
    let mut graph = TaxonomyBuilder::new();
    for word in words.split_whitespace() {
        match word.split_once('>') {
            Some((parent, child)) => {
                let (parent, child) = (graph.add_class(parent), graph.add_class(child));
                graph.add_edge(parent, child, None);
            }
            None => {
                graph.add_class(word);
            }
        }
    }
    graph.build().unwrap().taxonomy
}

pub(crate) fn edges_of(graph: &Taxonomy) -> String {
    let edges: Vec<_> = graph.edges().map(|(p, c)| format!("{}>{}", graph.id(p), graph.id(c))).collect();
    edges.join(" ")
}

/// A chain of `len` classes, each the parent of the next.
pub(crate) fn chain(len: u32) -> Taxonomy {
    let mut graph = TaxonomyBuilder::new();
    for n in 0..len {
        graph.add_class(&n.to_string());
    }
    for n in 1..len {
        graph.add_edge(n - 1, n, None);
    }
    graph.build().unwrap().taxonomy
}
