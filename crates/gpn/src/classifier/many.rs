//! Many classes to be taught at once: a folder for each, or a table of embeddings with labels.

use std::collections::BTreeMap;
use std::path::Path;

use gpn_data::source::{SourceKind, SourceSpec};
use gpn_model::InputShape;
use gpn_taxonomy::nearest_name;

use super::Classifier;
use super::teach::{NewClass, Parents};
use crate::error::{Error, Result};
use crate::sample::Sample;

/// The classes at a path, for a model: one for each folder in a folder, or for each label of a table of
/// embeddings. `parents` is a file of child,parent lines for those of them that it names; `otherwise` holds for the rest.
pub fn classes_at(
    path: &Path,
    parents: Option<&Path>,
    otherwise: &Parents,
    classifier: &Classifier,
) -> Result<Vec<NewClass>> {
    let classes = if path.is_dir() {
        classes_in(path, classifier)?
    } else {
        classes_of_table(path, classifier.input())?
    };
    let mut parents = match parents {
        Some(file) => parents_of(file, &classes)?,
        None => BTreeMap::new(),
    };
    let new = |(class, samples): (String, Vec<Sample>)| {
        let parents = parents.remove(&class).map_or_else(|| otherwise.clone(), Parents::Named);
        NewClass { class, parents, samples }
    };
    Ok(classes.into_iter().map(new).collect())
}

/// One class for each folder in a folder.
fn classes_in(path: &Path, classifier: &Classifier) -> Result<BTreeMap<String, Vec<Sample>>> {
    let io = |source| Error::Io { action: "read", path: path.to_owned(), source };
    let mut classes = BTreeMap::new();
    for entry in std::fs::read_dir(path).map_err(io)? {
        let folder = entry.map_err(io)?.path();
        let Some(name) = folder.file_name().and_then(|name| name.to_str()).filter(|_| folder.is_dir()) else {
            continue;
        };
        classes.insert(name.to_owned(), classifier.samples_at(&folder)?);
    }
    if classes.is_empty() {
        return Err(Error::input(
            path.display(),
            "there are no folders in it; one for each class is expected",
        ));
    }
    Ok(classes)
}

/// One class for each label of a table of embeddings.
fn classes_of_table(path: &Path, input: InputShape) -> Result<BTreeMap<String, Vec<Sample>>> {
    let refused = |reason: String| Err(Error::input(path.display(), reason));
    let InputShape::Embedding { len } = input else {
        return refused("this model takes images; name a folder with a folder for each class".into());
    };
    let table = gpn_data::open(&SourceSpec { kind: SourceKind::Embeddings, path: path.to_owned() })?;
    let mut values = match table.kind() {
        gpn_data::SampleKind::Embeddings { dim } if dim == len => vec![0.0; len],
        gpn_data::SampleKind::Embeddings { dim } => {
            return refused(format!("the embeddings have {dim} numbers; this model takes {len}"));
        }
        gpn_data::SampleKind::Images => return refused("it holds no embeddings".into()),
    };
    let mut classes: BTreeMap<String, Vec<Sample>> = BTreeMap::new();
    for (row, info) in table.samples().iter().enumerate() {
        table.embedding(row, &mut values)?;
        let class = table.leaves()[info.leaf as usize].id.clone();
        let name = format!("{}: {}", path.display(), info.file);
        classes.entry(class).or_default().push(Sample::embedding(name, values.clone()));
    }
    Ok(classes)
}

/// The parents of each class in a file of edges, whose children must all be taught.
fn parents_of(file: &Path, classes: &BTreeMap<String, Vec<Sample>>) -> Result<BTreeMap<String, Vec<String>>> {
    let edges = gpn_taxonomy::read_edges(file)?.taxonomy;
    let mut parents = BTreeMap::new();
    for child in edges.nodes().filter(|&child| !edges.parents(child).is_empty()) {
        let id = edges.id(child);
        if !classes.contains_key(id) {
            let hint = match nearest_name(id, classes.keys().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "take its lines out".into(),
            };
            let reason = format!("class `{id}` has parents here but is not being taught; {hint}");
            return Err(Error::input(file.display(), reason));
        }
        let above = edges.parents(child).iter().map(|&parent| edges.id(parent).to_owned()).collect();
        parents.insert(id.to_owned(), above);
    }
    Ok(parents)
}
