//! `GET /classes/{class}`.

use axum::Json;
use gpn::ClassEntry;
use gpn::taxonomy::Node;
use serde::Serialize;
use utoipa::ToSchema;

use super::answers::{ClassState, Named, Problems, SampleEntry, path};
use super::beside;
use super::schema::EntrySchema;
use crate::http::extract::{ClassInPath, Of};
use crate::http::problem::Problem;
use crate::model::HistoryEntry;

/// Children and siblings that are told.
const RELATIVES: usize = 100;
/// Changes that are told.
const CHANGES: usize = 20;

/// Everything about a class.
#[derive(Serialize, ToSchema)]
pub(crate) struct ClassPage {
    /// The version of the model.
    version: u64,
    /// The class, what shaped it and what it is like.
    #[serde(flatten)]
    state: ClassState,
    /// What it is, in a sentence, where the taxonomy says so.
    description: Option<String>,
    /// Its parents.
    #[schema(value_type = Vec<EntrySchema>)]
    parents: Vec<ClassEntry>,
    /// Its first 100 children.
    #[schema(value_type = Vec<EntrySchema>)]
    children: Vec<ClassEntry>,
    /// How many children it has.
    children_total: usize,
    /// The first 100 other children of its parents.
    #[schema(value_type = Vec<EntrySchema>)]
    siblings: Vec<ClassEntry>,
    /// The way from the top of the class graph to it, by first parents.
    path: Vec<Named>,
    /// The samples that the database keeps of it.
    samples: Vec<SampleEntry>,
    /// Its last 20 changes, the newest first.
    history: Vec<HistoryEntry>,
}

/// A class: its neighbours, what shaped its prototype, its samples, its history.
#[utoipa::path(
    get, path = "/classes/{class}", params(("class" = String, Path, description = "Id or name of the class.")),
    responses((status = 200, body = ClassPage), Problems)
)]
pub(crate) async fn class(
    Of(model): Of,
    ClassInPath(class): ClassInPath,
) -> Result<Json<ClassPage>, Problem> {
    beside(move || {
        let version = model.version();
        let entry = version.classifier.class(&class)?;
        let graph = version.classifier.graph();
        let node = graph.find(&entry.id);
        let parents: &[Node] = node.map_or(&[], |node| graph.parents(node));
        let children: &[Node] = node.map_or(&[], |node| graph.children(node));
        let mut siblings: Vec<Node> = Vec::new();
        for &sibling in parents.iter().flat_map(|&parent| graph.children(parent)) {
            if siblings.len() == RELATIVES {
                break;
            }
            if Some(sibling) != node && !siblings.contains(&sibling) {
                siblings.push(sibling);
            }
        }
        let entries = |nodes: &[Node]| version.classifier.entries(nodes.iter().copied().take(RELATIVES));
        let samples = model.samples(&entry.id)?;
        Ok(Json(ClassPage {
            version: version.number,
            description: node.and_then(|node| graph.description(node)).map(str::to_owned),
            parents: entries(parents),
            children: entries(children),
            children_total: children.len(),
            siblings: entries(&siblings),
            path: path(&version, &entry.id),
            samples: samples.iter().map(|(number, sample)| SampleEntry::new(*number, sample)).collect(),
            history: model.history(Some(&entry.id), u64::MAX, CHANGES)?,
            state: ClassState::of(&version, entry)?,
        }))
    })
    .await
}
