//! Tables with a path for each class: `label,path` and `golden,Fruit > Apple > Golden`.

use std::collections::HashMap;
use std::path::Path;

use super::edges::check_width;
use super::malformed;
use super::records::Records;
use crate::error::{TaxonomyError, excerpt};
use crate::fit::spelling;
use crate::graph::Checked;
use crate::path_tree::PathTree;

/// Which column holds what.
pub(super) struct PathColumns {
    /// The class; without it, the last part of the path is the class.
    pub(super) label: Option<usize>,
    pub(super) path: usize,
    pub(super) description: Option<usize>,
    /// How many columns there are.
    pub(super) width: usize,
}

/// Reads the records below the header. The path holds all classes above the label; it may end with the label itself, or
/// with its name where the two differ in letter case, `_`, `-` and blanks alone.
pub(super) fn read(
    mut records: Records<'_>,
    columns: &PathColumns,
    file: &Path,
) -> Result<Checked, TaxonomyError> {
    let mut tree = PathTree::new();
    let mut labels: HashMap<usize, (String, u64)> = HashMap::new();
    let mut descriptions: HashMap<usize, String> = HashMap::new();
    let mut fields = Vec::new();
    while let Some(line) = records.next(&mut fields)? {
        check_width(&fields, columns.width, file, line)?;
        let mut parts = parts(&fields[columns.path]);
        let label = columns.label.map(|column| fields[column].trim());
        if label.is_some_and(str::is_empty) || (label.is_none() && parts.is_empty()) {
            return Err(malformed(file, Some(line), "the class is empty; every line names a class"));
        }
        if let Some(label) = label
            && parts.last().is_none_or(|last| spelling(last) != spelling(label))
        {
            parts.push(label);
        }
        let class = tree.insert(parts);
        if let Some(label) = label {
            let (known, before) = labels.entry(class).or_insert_with(|| (label.to_owned(), line));
            if known != label {
                let (path, known) = (excerpt(&tree.path(class)), excerpt(known));
                let message = format!(
                    "the path {path} is that of `{known}` (line {before}); every class needs its own"
                );
                return Err(malformed(file, Some(line), message));
            }
        }
        if let Some(text) =
            columns.description.map(|column| fields[column].trim()).filter(|text| !text.is_empty())
        {
            descriptions.insert(class, text.to_owned());
        }
    }
    let mut ids = tree.ids();
    for (class, id) in ids.iter_mut().enumerate() {
        if let Some((label, _)) = labels.get(&class) {
            label.clone_into(id);
        }
    }
    tree.taxonomy(&ids, |class| descriptions.get(&class).cloned())
}

/// The parts of a path, between `>` where it has any, else between slashes.
fn parts(path: &str) -> Vec<&str> {
    let mark = if path.contains('>') { '>' } else { '/' };
    path.split(mark).map(str::trim).filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use crate::read_edges;

    fn edges(text: &str) -> Result<String, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let graph = read_edges(file.path()).map_err(|error| error.to_string())?.taxonomy;
        let edges: Vec<_> = graph.edges().map(|(p, c)| format!("{}>{}", graph.id(p), graph.id(c))).collect();
        Ok(edges.join(" "))
    }

    #[test]
    fn all_forms_of_a_path_give_the_same_graph() {
        for text in [
            "label,path\ngolden,Fruit > Apple > Golden\npear,Fruit > Pear\n",
            "path;label\nFruit/Apple;golden\nFruit/;pear\n",
            "Label\tHierarchy\ngolden\tFruit>Apple\npear\tFruit\n",
        ] {
            assert_eq!(edges(text).unwrap(), "root>Fruit Fruit>Apple Apple>golden Fruit>pear", "{text}");
        }
        assert_eq!(edges("path\na/b\nc/b\n").unwrap(), "root>a a>a/b root>c c>c/b");
    }

    #[test]
    fn a_class_above_others_may_have_a_label_and_a_label_several_paths() {
        assert_eq!(
            edges("label,path\napple,Fruit > Apple\ngolden,Fruit > Apple\ngolden,Yellow\n").unwrap(),
            "root>Fruit Fruit>apple apple>golden root>Yellow Yellow>golden"
        );
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let error = edges("label,path\na-b,X > a b\na_b,X > a b\n").unwrap_err();
        assert!(error.contains(":3: the path X/a b is that of `a-b` (line 2)"), "{error}");
        assert!(edges("label,path\n,X\n").unwrap_err().contains(":2: the class is empty"));
        assert!(edges("label,path\na,X,Y\n").unwrap_err().contains("expected 2 columns but found 3"));
    }
}
