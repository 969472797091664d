//! Graphs for Graphviz.

use std::io::{self, Write};
use std::path::Path;

use super::atomically;
use crate::error::TaxonomyError;
use crate::graph::Taxonomy;

/// Writes the graph for Graphviz: nodes known by id and labelled with their names, parents above children.
/// `dot -Tsvg graph.dot` draws it.
pub fn write_dot(graph: &Taxonomy, path: &Path) -> Result<(), TaxonomyError> {
    atomically(path, |out| write_dot_to(graph, out))
}

/// The same into a writer.
pub fn write_dot_to(graph: &Taxonomy, mut out: impl Write) -> io::Result<()> {
    writeln!(out, "digraph taxonomy {{\n  node [shape=box];")?;
    for n in graph.nodes() {
        writeln!(out, "  {} [label={}];", quoted(graph.id(n)), quoted(graph.name(n)))?;
    }
    for (parent, child) in graph.edges() {
        writeln!(out, "  {} -> {};", quoted(graph.id(parent)), quoted(graph.id(child)))?;
    }
    writeln!(out, "}}")
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

#[cfg(test)]
mod tests {
    use crate::TaxonomyBuilder;

    #[test]
    fn ids_are_quoted_and_labels_are_names() {
        let mut graph = TaxonomyBuilder::new();
        let (a, b) = (graph.add_class("a\"1"), graph.add_class("b"));
        graph.set_name(b, "cat \\ big");
        graph.add_edge(a, b, None);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("graph.dot");
        super::write_dot(&graph.build().unwrap().taxonomy, &path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[2..5],
            [r#"  "a\"1" [label="a\"1"];"#, r#"  "b" [label="cat \\ big"];"#, r#"  "a\"1" -> "b";"#]
        );
    }
}
