//! Classes with their parents as JSON.

use std::io::Write;
use std::path::Path;

use serde::Serialize;

use super::atomically;
use crate::error::TaxonomyError;
use crate::graph::{Node, Taxonomy};

#[derive(Serialize)]
struct Class<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parents: Vec<&'a str>,
}

/// Writes `{"classes": [{"id", "name", "description", "parents"}]}`, a line for each class, in their order; what a
/// class does not have is left out. [`read_json`](crate::read_json) reads it back.
pub fn write_json(graph: &Taxonomy, path: &Path) -> Result<(), TaxonomyError> {
    atomically(path, |out| {
        write!(out, "{{\"classes\": [")?;
        for n in graph.nodes() {
            out.write_all(if n == 0 { b"\n" } else { b",\n" })?;
            let class = Class {
                id: graph.id(n),
                name: graph.own_name(n),
                description: graph.description(n),
                parents: graph.parents(n).iter().map(|&parent: &Node| graph.id(parent)).collect(),
            };
            serde_json::to_writer(&mut *out, &class)?;
        }
        writeln!(out, "\n]}}")
    })
}

#[cfg(test)]
mod tests {
    use crate::TaxonomyBuilder;

    #[test]
    fn what_is_absent_is_left_out() {
        let mut graph = TaxonomyBuilder::new();
        let (a, b) = (graph.add_class("a"), graph.add_class("b"));
        graph.set_name(b, "the \"b\"");
        graph.add_edge(a, b, None);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("graph.json");
        super::write_json(&graph.build().unwrap().taxonomy, &path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(
            text,
            "{\"classes\": [\n{\"id\":\"a\"},\n{\"id\":\"b\",\"name\":\"the \\\"b\\\"\",\"parents\":[\"a\"]}\n]}\n"
        );
    }
}
