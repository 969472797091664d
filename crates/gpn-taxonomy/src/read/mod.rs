//! Readers, one format per file.

mod edges;
mod imagenet_xml;
mod json;
mod obo;
mod paths;
mod records;
mod spec;
mod text_file;
mod wordnet;

use std::path::Path;

use crate::error::{Place, TaxonomyError};
use crate::graph::Checked;
use text_file::read_text;

pub use edges::read_edges;
pub use imagenet_xml::read_imagenet_xml;
pub use json::read_json;
pub use obo::read_obo;
pub use spec::{TaxonomyKind, TaxonomySpec};
pub use wordnet::{find_wordnet, read_wordnet};

/// Reads and checks the taxonomy that `spec` names.
pub fn read(spec: &TaxonomySpec) -> Result<Checked, TaxonomyError> {
    let installed;
    let path = if let Some(path) = &spec.path {
        path
    } else {
        installed = find_wordnet()?;
        &installed
    };
    match spec.kind {
        TaxonomyKind::Edges => read_edges(path),
        TaxonomyKind::WordNet => read_wordnet(path),
        TaxonomyKind::ImageNetXml => read_imagenet_xml(path),
        TaxonomyKind::Json => read_json(path),
        TaxonomyKind::Obo => read_obo(path),
    }
}

fn malformed(path: &Path, line: Option<u64>, message: impl Into<String>) -> TaxonomyError {
    TaxonomyError::Malformed { place: Place::new(path, line), message: message.into() }
}

/// A graph without a single class is a wrong file rather than a taxonomy.
fn some_class(checked: Checked, path: &Path) -> Result<Checked, TaxonomyError> {
    if checked.taxonomy.is_empty() {
        return Err(malformed(path, None, "holds no class; is it the right file and kind?"));
    }
    Ok(checked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let files = [
            ("edges", "child,parent\ncat,animal\n"),
            ("json", r#"{"cat":["animal"]}"#),
            ("imagenet-xml", r#"<s><synset wnid="animal"><synset wnid="cat"/></synset></s>"#),
            ("obo", "[Term]\nid: animal\n\n[Term]\nid: cat\nis_a: animal\n"),
        ];
        for (kind, text) in files {
            let path = folder.path().join(kind);
            std::fs::write(&path, text).unwrap();
            let spec: TaxonomySpec = format!("{kind}:{}", path.display()).parse().unwrap();
            let graph = read(&spec).unwrap().taxonomy;
            let (cat, animal) = (graph.find("cat").unwrap(), graph.find("animal").unwrap());
            assert_eq!(graph.parents(cat), [animal], "{kind}");
        }
    }
}
