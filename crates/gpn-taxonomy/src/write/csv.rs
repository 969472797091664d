//! Edges as CSV.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;

use super::atomically;
use crate::error::TaxonomyError;
use crate::graph::Taxonomy;

/// Writes one line `child,parent` for each edge, in their order, below a header. A class without any edge
/// has a line with an empty parent. [`read_edges`](crate::read_edges) reads it back; names and descriptions
/// are not kept (see [`write_json`](crate::write_json)).
pub fn write_csv(graph: &Taxonomy, path: &Path) -> Result<(), TaxonomyError> {
    atomically(path, |out| write_csv_to(graph, out))
}

/// The same to any writer, in many small pieces: wrap a file into a [`BufWriter`](std::io::BufWriter).
pub fn write_csv_to(graph: &Taxonomy, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "child,parent")?;
    for (parent, child) in graph.edges() {
        writeln!(out, "{},{}", field(graph.id(child)), field(graph.id(parent)))?;
    }
    for n in graph.nodes() {
        if graph.adjacent(n).next().is_none() {
            writeln!(out, "{},", field(graph.id(n)))?;
        }
    }
    Ok(())
}

/// Quoted where the reader would see more than the text.
fn field(text: &str) -> Cow<'_, str> {
    if text.contains([',', '"', '\n', '\r']) || text.starts_with('#') {
        Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use crate::TaxonomyBuilder;

    #[test]
    fn lonely_and_odd_classes_are_written() {
        let mut graph = TaxonomyBuilder::new();
        let (a, b) = (graph.add_class("#a, b"), graph.add_class("say \"b\""));
        graph.add_class("alone");
        graph.add_edge(a, b, None);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("graph.csv");
        super::write_csv(&graph.build().unwrap().taxonomy, &path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "child,parent\n\"say \"\"b\"\"\",\"#a, b\"\nalone,\n");
    }
}
