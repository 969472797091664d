//! Ontologies in OBO format.

use std::path::Path;

use super::{malformed, read_text, some_class};
use crate::builder::TaxonomyBuilder;
use crate::error::{TaxonomyError, excerpt};
use crate::graph::{Checked, Node};

/// Reads the `[Term]` stanzas of an OBO file: `id`, `name`, `def` and `is_a`.
///
/// Obsolete terms and stanzas of other kinds are left out, and so are relations other than `is_a`.
/// A parent that no term defines is an error. O(size of the file).
pub fn read_obo(path: &Path) -> Result<Checked, TaxonomyError> {
    let text = read_text(path)?;
    let mut terms =
        Terms { graph: TaxonomyBuilder::for_file(path), defined: Vec::new(), parents: Vec::new(), path };
    let mut term: Option<Term<'_>> = None;
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim();
        if line.starts_with('[') {
            terms.add(term.take())?;
            match line.strip_suffix(']') {
                Some("[Term") => term = Some(Term::new(number)),
                Some(_) => {}
                None => return Err(malformed(path, Some(number), "a stanza begins with [ but lacks its ]")),
            }
            continue;
        }
        let Some(term) = &mut term else { continue };
        if line.is_empty() || line.starts_with('!') {
            continue;
        }
        let Some((tag, value)) = line.split_once(':') else {
            let message = format!("expected `tag: value` but found: {}", excerpt(line));
            return Err(malformed(path, Some(number), message));
        };
        match tag {
            "id" => term.id = Some(without_comment(value)),
            "name" => term.name = value.trim(),
            "def" => term.description = definition(value),
            "is_a" => term.parents.push((without_comment(value), number)),
            "is_obsolete" => term.obsolete = without_comment(value) == "true",
            _ => {}
        }
    }
    terms.add(term)?;
    let Terms { mut graph, defined, parents, .. } = terms;
    for (parent, child, line) in parents {
        if !defined[parent as usize] {
            let message = format!(
                "is_a names `{}`, which no [Term] defines; is the file complete?",
                excerpt(graph.id(parent))
            );
            return Err(malformed(path, Some(line), message));
        }
        graph.add_edge(parent, child, Some(line));
    }
    some_class(graph.build()?, path)
}

struct Term<'a> {
    line: u64,
    id: Option<&'a str>,
    name: &'a str,
    description: &'a str,
    parents: Vec<(&'a str, u64)>,
    obsolete: bool,
}

impl Term<'_> {
    fn new(line: u64) -> Self {
        Self { line, id: None, name: "", description: "", parents: Vec::new(), obsolete: false }
    }
}

struct Terms<'a> {
    graph: TaxonomyBuilder,
    defined: Vec<bool>,
    parents: Vec<(Node, Node, u64)>,
    path: &'a Path,
}

impl Terms<'_> {
    fn add(&mut self, term: Option<Term<'_>>) -> Result<(), TaxonomyError> {
        let Some(term) = term.filter(|term| !term.obsolete) else { return Ok(()) };
        let Some(id) = term.id.filter(|id| !id.is_empty()) else {
            return Err(malformed(self.path, Some(term.line), "a [Term] has no id"));
        };
        let class = self.graph.add_class(id);
        self.graph.set_name(class, term.name);
        self.graph.set_description(class, term.description);
        for (parent, line) in term.parents {
            if parent.is_empty() {
                return Err(malformed(self.path, Some(line), "is_a names no class"));
            }
            self.parents.push((self.graph.add_class(parent), class, line));
        }
        self.defined.resize(self.graph.len(), false);
        self.defined[class as usize] = true;
        Ok(())
    }
}

/// A value without the trailing `! comment` and `{modifiers}`.
fn without_comment(value: &str) -> &str {
    let value = value.split_once(" !").map_or(value, |(value, _)| value);
    let value = value.split_once(" {").map_or(value, |(value, _)| value);
    value.trim()
}

/// The text of a definition, which stands in quotes before its sources.
fn definition(value: &str) -> &str {
    let value = value.trim();
    match (value.strip_prefix('"'), value.rfind('"')) {
        (Some(_), Some(end)) if end > 0 => &value[1..end],
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "format-version: 1.2\nontology: small\n\n\
        [Term]\nid: X:1\nname: thing\ndef: \"Any thing.\" [a:b]\n\n\
        [Term]\nid: X:2\nname: cat\nis_a: X:1 ! thing\nis_a: X:4 {source=\"z\"} ! other\nrelationship: part_of X:1\n\n\
        [Term]\nid: X:3\nis_a: X:9\nis_obsolete: true\n\n\
        [Typedef]\nid: part_of\nis_a: X:77\n\n\
        [Term]\nid: X:4\n! a comment\nxref: y\n";

    fn read(text: &str) -> Result<Checked, TaxonomyError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        read_obo(file.path())
    }

    #[test]
    fn terms_are_read_and_the_obsolete_left_out() {
        for text in [SMALL.to_owned(), SMALL.replace('\n', "\r\n")] {
            let graph = read(&text).unwrap().taxonomy;
            let edges: Vec<_> = graph.edges().map(|(p, c)| (graph.id(p), graph.id(c))).collect();
            assert_eq!(edges, [("X:1", "X:2"), ("X:4", "X:2")]);
            assert_eq!(graph.len(), 3);
            assert_eq!((graph.name(0), graph.description(0)), ("thing", Some("Any thing.")));
        }
    }

    #[test]
    fn broken_files_are_errors_with_their_line() {
        let message = |text: &str| read(text).unwrap_err().to_string();
        assert!(message(&SMALL[..SMALL.find("[Typedef]").unwrap()]).contains(":13: is_a names `X:4`"));
        assert!(message("[Term]\nname: x\n").contains(":1: a [Term] has no id"));
        assert!(message("[Term\nid: x\n").contains(":1: a stanza begins"));
        assert!(message("[Term]\nid: x\nis_\n").contains(":3: expected `tag: value` but found: is_"));
        assert!(message("[Term]\nid: x\nis_a:\n").contains(":3: is_a names no class"));
        assert!(message("<html>\n").contains("holds no class"));
    }
}
