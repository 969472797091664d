//! Lists of edges: CSV, TSV, or 'parent child' lines.

use std::borrow::Cow;
use std::path::Path;

use super::{malformed, read_text, some_class};
use crate::builder::TaxonomyBuilder;
use crate::error::{TaxonomyError, excerpt};
use crate::graph::Checked;

/// Reads a list of edges. The first line that is neither blank nor a comment (`#`) decides the form:
///
/// * with a tab: TSV; with a comma: CSV. Columns are child, parent. Fields may be quoted.
/// * otherwise: two words separated by blanks, parent and child.
///
/// A header with the words `child` (or `class`, `id`, `wnid`) and `parent` may give the columns in another
/// order and among others. An empty parent states a class without one. O(size of the file).
pub fn read_edges(path: &Path) -> Result<Checked, TaxonomyError> {
    let text = read_text(path)?;
    let mut records = Records::new(&text, path);
    let mut graph = TaxonomyBuilder::for_file(path);
    let mut columns = None;
    let mut fields = Vec::new();
    while let Some(line) = records.next(&mut fields)? {
        let (child, parent) = if let Some((child, parent, width)) = columns {
            if fields.len() != width {
                let message = format!(
                    "expected {width} columns but found {}: {}",
                    fields.len(),
                    excerpt(&fields.join(" "))
                );
                return Err(malformed(path, Some(line), message));
            }
            (child, parent)
        } else {
            if let Some((child, parent)) = header(&fields) {
                columns = Some((child, parent, fields.len()));
                continue;
            }
            let (child, parent) = if records.form == Form::Words { (1, 0) } else { (0, 1) };
            if fields.len() != 2 {
                let message = format!(
                    "expected two columns, child and parent, but found {}; name the columns in a header line",
                    fields.len()
                );
                return Err(malformed(path, Some(line), message));
            }
            columns = Some((child, parent, 2));
            (child, parent)
        };
        if fields[child].trim().is_empty() {
            return Err(malformed(path, Some(line), "the child is empty; every line names a class"));
        }
        let child = graph.add_class(&fields[child]);
        if !fields[parent].trim().is_empty() {
            let parent = graph.add_class(&fields[parent]);
            graph.add_edge(parent, child, Some(line));
        }
    }
    some_class(graph.build()?, path)
}

/// The columns of child and parent if this is a header.
fn header(fields: &[Cow<'_, str>]) -> Option<(usize, usize)> {
    let find = |words: &[&str]| {
        words.iter().find_map(|word| fields.iter().position(|field| field.trim().eq_ignore_ascii_case(word)))
    };
    Some((find(&["child", "class", "id", "wnid"])?, find(&["parent"])?))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Delimited(char),
    Words,
}

/// Walks over the records of a text, counting lines.
struct Records<'a> {
    rest: &'a str,
    path: &'a Path,
    line: u64,
    form: Form,
}

impl<'a> Records<'a> {
    fn new(text: &'a str, path: &'a Path) -> Self {
        let first = text.lines().find(|line| !is_skipped(line)).unwrap_or("");
        let form = if first.contains('\t') {
            Form::Delimited('\t')
        } else if first.contains([',', '"']) {
            Form::Delimited(',')
        } else {
            Form::Words
        };
        Self { rest: text, path, line: 0, form }
    }

    /// Fills `fields` with the next record and returns its line.
    fn next(&mut self, fields: &mut Vec<Cow<'a, str>>) -> Result<Option<u64>, TaxonomyError> {
        fields.clear();
        while !self.rest.is_empty() {
            let (line, after) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
            self.line += 1;
            let start = self.line;
            if is_skipped(line) {
                self.rest = after;
                continue;
            }
            match self.form {
                Form::Words => {
                    fields.extend(line.split_whitespace().map(Cow::Borrowed));
                    self.rest = after;
                }
                Form::Delimited(delimiter) if !line.contains('"') => {
                    let line = line.strip_suffix('\r').unwrap_or(line);
                    fields.extend(line.split(delimiter).map(Cow::Borrowed));
                    self.rest = after;
                }
                Form::Delimited(delimiter) => self.quoted(delimiter, fields)?,
            }
            return Ok(Some(start));
        }
        Ok(None)
    }

    /// A record with quotes, which may go over several lines.
    fn quoted(&mut self, delimiter: char, fields: &mut Vec<Cow<'a, str>>) -> Result<(), TaxonomyError> {
        let start = self.line;
        loop {
            let trimmed = self.rest.trim_start_matches(' ');
            if let Some(mut inside) = trimmed.strip_prefix('"') {
                let mut field = String::new();
                loop {
                    let Some(end) = inside.find('"') else {
                        return Err(malformed(
                            self.path,
                            Some(start),
                            "a quote (\") is opened but not closed",
                        ));
                    };
                    field.push_str(&inside[..end]);
                    inside = &inside[end + 1..];
                    if let Some(more) = inside.strip_prefix('"') {
                        field.push('"');
                        inside = more;
                    } else {
                        break;
                    }
                }
                self.line += field.matches('\n').count() as u64;
                let end = inside.find([delimiter, '\n']).unwrap_or(inside.len());
                if !inside[..end].trim().is_empty() {
                    let message = format!("text after a closing quote: {}", excerpt(&inside[..end]));
                    return Err(malformed(self.path, Some(self.line), message));
                }
                fields.push(Cow::Owned(field));
                self.rest = &inside[end..];
            } else {
                let end = self.rest.find([delimiter, '\n']).unwrap_or(self.rest.len());
                fields.push(Cow::Borrowed(&self.rest[..end]));
                self.rest = &self.rest[end..];
            }
            if let Some(more) = self.rest.strip_prefix(delimiter) {
                self.rest = more;
            } else {
                self.rest = self.rest.strip_prefix('\n').unwrap_or(self.rest);
                return Ok(());
            }
        }
    }
}

fn is_skipped(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || line.starts_with('#')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Checked, TaxonomyError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        read_edges(file.path())
    }

    /// Edges as `parent>child`, blanks between.
    fn edges(text: &str) -> String {
        let graph = read(text).unwrap().taxonomy;
        let edges: Vec<_> = graph.edges().map(|(p, c)| format!("{}>{}", graph.id(p), graph.id(c))).collect();
        edges.join(" ")
    }

    fn message(text: &str) -> String {
        let message = read(text).unwrap_err().to_string();
        message.split_once(':').map(|(_, rest)| rest.to_owned()).unwrap_or(message)
    }

    #[test]
    fn all_forms_give_the_same_graph() {
        for text in [
            "child,parent\ncat,animal\ndog,animal\n",
            "cat,animal\ndog,animal",
            "parent,child\nanimal,cat\nanimal,dog\n",
            "cat\tanimal\r\ndog\tanimal\r\n",
            "animal cat\nanimal   dog\n",
            "child parent\ncat animal\ndog animal\n",
            "\u{FEFF}# a comment\n\nname,Parent,wnid\nCat,animal,cat\n\n#\nDog,animal,dog\r\n\n",
            "\"cat\",\"animal\"\n dog , animal \n",
        ] {
            assert_eq!(edges(text), "animal>cat animal>dog", "{text:?}");
        }
    }

    #[test]
    fn quoted_fields_hold_anything() {
        assert_eq!(
            edges("child,parent\n\"a, b\",\"say \"\"hi\"\"\"\r\n\"two\nlines\",c\nd,c\n"),
            "say \"hi\">a, b c>two\nlines c>d"
        );
    }

    #[test]
    fn a_class_without_parent_is_kept() {
        let graph = read("child,parent\nalone,\ncat,animal\n").unwrap().taxonomy;
        assert_eq!((graph.len(), graph.edge_count()), (3, 1));
        assert_eq!(graph.id(0), "alone");
    }

    #[test]
    fn errors_name_the_line() {
        assert_eq!(message("a,b\n\nc,d,e\n"), "3: expected 2 columns but found 3: c d e");
        assert_eq!(message("child,parent\n,b\n"), "2: the child is empty; every line names a class");
        assert_eq!(message("a,b\n\"c,d\n"), "2: a quote (\") is opened but not closed");
        assert_eq!(message("\"a\"x,b\n"), "1: text after a closing quote: x");
        assert!(message("a,b,c\n").starts_with("1: expected two columns"));
        assert!(message("# nothing\n").contains("holds no class"));
        assert!(
            message("a,b\n\nb,a\n").contains("cycle: b -> a -> b (lines 1, 3)")
                || message("a,b\n\nb,a\n").contains("cycle: a -> b -> a (lines 3, 1)")
        );
        let checked = read("child,parent\n\n# twice\na,b\na,b\n").unwrap();
        assert!(checked.warnings[0].to_string().contains(":5: edge b -> a is stated again"));
    }

    #[test]
    fn lines_are_counted_through_quoted_fields() {
        assert!(message("\"a\nb\nc\",d\ne,f\ng\n").starts_with("5: expected 2 columns"));
    }
}
