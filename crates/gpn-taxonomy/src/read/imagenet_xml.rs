//! ImageNet's `structure_released.xml`.

use std::path::Path;

use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use super::{malformed, read_text, some_class};
use crate::builder::TaxonomyBuilder;
use crate::error::{TaxonomyError, excerpt};
use crate::graph::{Checked, Node};

/// Reads nested `<synset wnid= words= gloss=>` elements, whatever surrounds them.
///
/// A class that occurs below several parents gets them all; edges repeated with its subtree are no cause for
/// a warning. The name is the first of `words`. O(size of the file), at any depth.
pub fn read_imagenet_xml(path: &Path) -> Result<Checked, TaxonomyError> {
    let text = read_text(path)?;
    let mut lines = Lines { text: &text, at: 0, line: 1 };
    let mut xml = Reader::from_str(&text);
    let mut graph = TaxonomyBuilder::for_file(path);
    // For each open element the innermost synset that it is or lies in.
    let mut open: Vec<Option<Node>> = Vec::new();
    loop {
        let event = xml.read_event().map_err(|error| {
            let line = lines.line_at(xml.error_position());
            malformed(path, Some(line), format!("is not well-formed XML: {}", excerpt(&error.to_string())))
        })?;
        let line = lines.line_at(xml.buffer_position());
        match event {
            Event::Start(element) => {
                let around = open.last().copied().flatten();
                let class = synset(&element, around, &mut graph, path, line)?;
                open.push(class.or(around));
            }
            Event::Empty(element) => {
                synset(&element, open.last().copied().flatten(), &mut graph, path, line)?;
            }
            Event::End(_) => {
                open.pop();
            }
            Event::Eof if open.is_empty() => break,
            Event::Eof => {
                let message = format!("ends inside {} open elements; is the file complete?", open.len());
                return Err(malformed(path, Some(line), message));
            }
            _ => {}
        }
    }
    graph.drop_repeated_edges();
    some_class(graph.build()?, path)
}

/// Adds the class of a synset element below the synset `around` it.
fn synset(
    element: &BytesStart<'_>,
    around: Option<Node>,
    graph: &mut TaxonomyBuilder,
    path: &Path,
    line: u64,
) -> Result<Option<Node>, TaxonomyError> {
    if element.name().as_ref() != "synset" {
        return Ok(None);
    }
    let mut wnid = None;
    let mut words = None;
    let mut gloss = None;
    // Checks for repeated attributes take quadratic time; here the last one counts.
    for attribute in element.attributes().with_checks(false) {
        let fail = |error: String| {
            malformed(path, Some(line), format!("has a broken attribute: {}", excerpt(&error)))
        };
        let attribute = attribute.map_err(|error| fail(error.to_string()))?;
        let slot = match attribute.key.as_ref() {
            "wnid" => &mut wnid,
            "words" => &mut words,
            "gloss" => &mut gloss,
            _ => continue,
        };
        let value = attribute.normalized_value(XmlVersion::Implicit1_0);
        *slot = Some(value.map_err(|error| fail(error.to_string()))?);
    }
    let Some(wnid) = wnid.filter(|wnid| !wnid.trim().is_empty()) else {
        return Err(malformed(path, Some(line), "a synset has no wnid"));
    };
    let class = graph.add_class(&wnid);
    if let Some(words) = words {
        graph.set_name(class, words.split(',').next().unwrap_or("").trim());
    }
    if let Some(description) = gloss {
        graph.set_description(class, description.trim());
    }
    if let Some(parent) = around {
        graph.add_edge(parent, class, Some(line));
    }
    Ok(Some(class))
}

/// Line numbers of growing byte positions.
struct Lines<'a> {
    text: &'a str,
    at: usize,
    line: u64,
}

impl Lines<'_> {
    fn line_at(&mut self, position: u64) -> u64 {
        let position = (position as usize).min(self.text.len());
        if position > self.at {
            let pieces = self.text.as_bytes()[self.at..position].split(|&byte| byte == b'\n');
            self.line += pieces.count() as u64 - 1;
            self.at = position;
        }
        self.line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<ImageNetStructure><releaseData>fall2011</releaseData>
<synset wnid="fall11" words="ImageNet 2011 Fall Release" gloss="all">
  <synset wnid="n1" words="animal, beast" gloss="a &amp; b">
    <synset wnid="n3" words="pet dog"><synset wnid="n4"/></synset>
  </synset>
  <synset wnid="n2"><synset wnid="n3"><synset wnid="n4"/></synset></synset>
</synset></ImageNetStructure>"#;

    fn read(text: &str) -> Result<Checked, TaxonomyError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        read_imagenet_xml(file.path())
    }

    #[test]
    fn a_class_may_occur_several_times() {
        let checked = read(SMALL).unwrap();
        assert_eq!(checked.warnings, []);
        let graph = checked.taxonomy;
        assert_eq!((graph.len(), graph.edge_count()), (5, 5));
        let id = |n: &Node| graph.id(*n);
        assert_eq!(graph.parents(graph.find("n3").unwrap()).iter().map(id).collect::<Vec<_>>(), ["n1", "n2"]);
        assert_eq!(graph.name(1), "animal");
        assert_eq!(graph.description(1), Some("a & b"));
        assert_eq!(graph.name(graph.find("n3").unwrap()), "pet dog");
    }

    #[test]
    fn broken_files_are_errors_with_their_line() {
        let message = |text: &str| read(text).unwrap_err().to_string();
        let cut = SMALL.find("<synset wnid=\"n2").unwrap();
        assert!(message(&SMALL[..cut]).contains(":7: ends inside 2 open elements"));
        assert!(message(&SMALL[..cut + 10]).contains(":7: is not well-formed XML"));
        assert!(message("<a>\n<synset words=\"x\"/></a>").contains(":2: a synset has no wnid"));
        assert!(message("<a></b>").contains("not well-formed"));
        assert!(message("<html></html>").contains("holds no class"));
        let cycle = r#"<synset wnid="a"><synset wnid="b"><synset wnid="a"/></synset></synset>"#;
        assert!(message(cycle).contains("cycle"));
    }
}
