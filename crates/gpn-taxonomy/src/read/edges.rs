//! Lists of edges: CSV, TSV, or 'parent child' lines.

use std::borrow::Cow;
use std::path::Path;

use super::paths::{self, PathColumns};
use super::records::{Form, Records};
use super::{malformed, read_text, some_class};
use crate::builder::TaxonomyBuilder;
use crate::error::{TaxonomyError, excerpt};
use crate::fit::spelling;
use crate::graph::Checked;

/// Words in a header for the class that a line is about, the surest first.
const CHILD: [&str; 14] = [
    "child",
    "class",
    "id",
    "wnid",
    "label",
    "child id",
    "class id",
    "class name",
    "subclass",
    "subcategory",
    "species",
    "item",
    "leaf",
    "node",
];
/// Words in a header for the class above it.
const PARENT: [&str; 12] = [
    "parent",
    "parent id",
    "parent class",
    "category",
    "superclass",
    "supercategory",
    "super category",
    "group",
    "broader",
    "hypernym",
    "parent name",
    "kind",
];
/// Words in a header for all classes above it in one field.
const PATH: [&str; 4] = ["path", "hierarchy", "category path", "taxonomy"];
const DESCRIPTION: [&str; 3] = ["description", "gloss", "definition"];

/// Reads a list of edges. The lines that are neither blank nor a comment (`#`) decide the form:
///
/// * with commas, semicolons, tabs or bars: a table. Columns are child, parent. Fields may be quoted.
/// * otherwise: two words separated by blanks, parent and child.
///
/// A header with the words `child` (or `class`, `id`, `wnid`, `label` and others, `name` if there is none of these) and
/// `parent` (or `category`, `group` and others), in any letter case, may give the columns in another
/// order and among others; where it also has `name` or `description`, these are taken for the child. An empty parent states
/// a class without one. In place of the parent there may be a column `path` with all classes above, `Fruit > Apple` or
/// `Fruit/Apple`, whether or not it ends with the class itself. O(size of the file).
pub fn read_edges(path: &Path) -> Result<Checked, TaxonomyError> {
    let mut text = read_text(path)?;
    if !text.contains('\n') {
        // Lines as old spreadsheets end them.
        text = text.replace('\r', "\n");
    }
    let mut records = Records::new(&text, path);
    let mut graph = TaxonomyBuilder::for_file(path);
    let mut columns = None;
    let mut fields = Vec::new();
    while let Some(line) = records.next(&mut fields)? {
        let Columns { child, parent, name, description, width } = if let Some(columns) = columns {
            columns
        } else {
            if let Some(columns) = path_columns(&fields) {
                return some_class(paths::read(records, &columns, path)?, path);
            }
            if let Some(named) = Columns::from_header(&fields) {
                columns = Some(named);
                continue;
            }
            if fields.len() != 2 {
                return Err(malformed(path, Some(line), not_two_columns(&fields, records.form)));
            }
            let (child, parent) = if records.form == Form::Words { (1, 0) } else { (0, 1) };
            *columns.insert(Columns { child, parent, name: None, description: None, width: 2 })
        };
        check_width(&fields, width, path, line)?;
        if fields[child].trim().is_empty() {
            return Err(malformed(path, Some(line), "the child is empty; every line names a class"));
        }
        let child = graph.add_class(&fields[child]);
        // A class with several parents has several lines, and one of them may say what it is.
        let text = |column: Option<usize>| {
            column.map(|column| fields[column].trim()).filter(|text| !text.is_empty())
        };
        if let Some(name) = text(name) {
            graph.set_name(child, name);
        }
        if let Some(description) = text(description) {
            graph.set_description(child, description);
        }
        if !fields[parent].trim().is_empty() {
            let parent = graph.add_class(&fields[parent]);
            graph.add_edge(parent, child, Some(line));
        }
    }
    some_class(graph.build()?, path)
}

pub(super) fn check_width(
    fields: &[Cow<'_, str>],
    width: usize,
    path: &Path,
    line: u64,
) -> Result<(), TaxonomyError> {
    if fields.len() == width {
        return Ok(());
    }
    let found = excerpt(&fields.join(" "));
    Err(malformed(path, Some(line), format!("expected {width} columns but found {}: {found}", fields.len())))
}

/// What is wrong with a first line that has no two columns.
fn not_two_columns(fields: &[Cow<'_, str>], form: Form) -> String {
    let found = format!("expected two columns, child and parent, but found {}", fields.len());
    let shown = excerpt(&fields.join(" "));
    if fields.len() > 1 && form != Form::Words {
        return format!("{found}; name the columns in a header line");
    }
    let mark = ["->", "=>", ">", ":", "=", "/"].into_iter().find(|mark| shown.contains(mark));
    let hint = mark.map_or(String::new(), |mark| format!(" instead of `{mark}`"));
    format!("{found}: {shown}; put a comma, a semicolon or a tab between child and parent{hint}")
}

/// The place of the first of some words in a header.
fn find(fields: &[Cow<'_, str>], words: &[&str]) -> Option<usize> {
    let header: Vec<String> = fields.iter().map(|field| spelling(field)).collect();
    words.iter().find_map(|word| header.iter().position(|field| field == word))
}

/// The columns of a header with a path in place of a parent.
fn path_columns(fields: &[Cow<'_, str>]) -> Option<PathColumns> {
    let path = find(fields, &PATH).filter(|_| find(fields, &PARENT).is_none())?;
    let [label, name] = [&CHILD[..], &["name"]].map(|words| find(fields, words));
    let label = label.or(name);
    (fields.len() == 1 || label.is_some()).then_some(PathColumns {
        label,
        path,
        description: find(fields, &DESCRIPTION),
        width: fields.len(),
    })
}

/// What stands in which column.
#[derive(Clone, Copy)]
struct Columns {
    child: usize,
    parent: usize,
    name: Option<usize>,
    description: Option<usize>,
    /// How many columns there are.
    width: usize,
}

impl Columns {
    /// The columns as a header names them; `None` if this is no header.
    fn from_header(fields: &[Cow<'_, str>]) -> Option<Self> {
        let name = find(fields, &["name"]);
        let child = find(fields, &CHILD);
        Some(Self {
            child: child.or(name)?,
            parent: find(fields, &PARENT)?,
            name: child.and(name),
            description: find(fields, &DESCRIPTION),
            width: fields.len(),
        })
    }
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
    fn separators_headers_and_line_ends_of_spreadsheets_are_understood() {
        for text in [
            "child;parent\ncat;animal\ndog;animal\n",
            "sep=;\r\nChild;PARENT\r\ncat;animal\r\ndog;animal\r\n",
            "Label,Category\ncat,animal\ndog,animal\n",
            "name\tparent\ncat\tanimal\ndog\tanimal\n",
            "class_name|super-category\ncat|animal\ndog|animal\n",
            "child,parent\rcat,animal\rdog,animal\r",
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
    fn names_and_descriptions_are_read_where_the_header_has_them() {
        let text = "child,parent,description,name\n\
                    cat,animal,\"purrs, mostly\",house cat\ncat,pet,,\nanimal,,,Animal\ndog,animal,barks,\n";
        let graph = read(text).unwrap().taxonomy;
        let texts = |id: &str| {
            let node = graph.find(id).unwrap();
            (graph.own_name(node), graph.description(node))
        };
        assert_eq!(texts("cat"), (Some("house cat"), Some("purrs, mostly")));
        assert_eq!(texts("animal"), (Some("Animal"), None));
        assert_eq!(texts("dog"), (None, Some("barks")));
        assert_eq!(texts("pet"), (None, None));
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
