//! What several endpoints answer with.

use gpn::taxonomy::Node;
use gpn::{Among, ClassEntry, ClassKind, ClassName, PredictRequest, Share};
use serde::Serialize;
use utoipa::openapi::response::{ResponseBuilder, ResponsesBuilder};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Response};
use utoipa::{IntoResponses, ToSchema};

use super::schema::{EntrySchema, ShareSchema};
use crate::clock::rfc3339;
use crate::http::problem::Problem;
use crate::model::{KeptSample, Version};

/// Models with more classes are not searched for similar ones: that takes the prototypes of all.
const SIMILAR_AMONG: usize = 20_000;
/// Similar classes that are told.
const SIMILAR: usize = 5;

/// Every endpoint may answer with a problem.
pub(crate) struct Problems;

impl IntoResponses for Problems {
    fn responses() -> std::collections::BTreeMap<String, RefOr<Response>> {
        let problem = |description: &str| {
            let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
            ResponseBuilder::new()
                .description(description)
                .content("application/problem+json", content)
                .build()
        };
        ResponsesBuilder::new()
            .response("4XX", problem("The request cannot be fulfilled; the problem says why."))
            .response("5XX", problem("The server is busy, out of room, or at fault."))
            .build()
            .into()
    }
}

/// Id and name of a class.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Named {
    /// Its id.
    pub(crate) id: String,
    /// Its name for people.
    pub(crate) name: String,
}

/// A class near to another.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Similar {
    /// Its id.
    pub(crate) id: String,
    /// Its name for people.
    pub(crate) name: String,
    /// Squared distance between the prototypes.
    pub(crate) distance: f32,
}

/// A sample that the database keeps.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SampleEntry {
    /// Its number.
    pub(crate) number: u64,
    /// The name of its file, as it was given.
    pub(crate) name: String,
    /// When it was taught, RFC 3339 in UTC.
    pub(crate) at: String,
    /// Whether its image is kept.
    pub(crate) image: bool,
}

impl SampleEntry {
    pub(crate) fn new(number: u64, sample: &KeptSample) -> Self {
        Self { number, name: sample.name.clone(), at: rfc3339(sample.at), image: sample.image }
    }
}

/// The version of the model after a change.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NewVersion {
    /// Its number.
    pub(crate) version: u64,
}

/// A class in one version.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ClassState {
    /// The class.
    #[schema(value_type = EntrySchema)]
    pub(crate) class: ClassEntry,
    /// Which classes shaped its prototype; `null` for a class without one.
    #[schema(value_type = Option<Vec<ShareSchema>>)]
    pub(crate) shares: Option<Vec<Share>>,
    /// The classes whose prototypes are nearest, the nearest first; none in very large models.
    pub(crate) similar: Vec<Similar>,
}

impl ClassState {
    pub(crate) fn of(version: &Version, class: ClassEntry) -> Result<Self, Problem> {
        let root = version.classifier.info().root;
        let has_prototype =
            class.kind != ClassKind::Untaught && version.classifier.graph().find(&class.id) != Some(root);
        if !has_prototype {
            return Ok(Self { class, shares: None, similar: Vec::new() });
        }
        let alone = Among::Listed(vec![class.id.clone()]);
        let lambda = version.classifier.default_lambda();
        let shares = version.classifier.candidates(&alone, lambda)?.explain(0);
        let similar = similar(version, &class.id)?;
        Ok(Self { class, shares: Some(shares), similar })
    }
}

fn similar(version: &Version, id: &str) -> Result<Vec<Similar>, Problem> {
    if version.classifier.graph().len() > SIMILAR_AMONG {
        return Ok(Vec::new());
    }
    let predictor = version.predictor(&PredictRequest::default())?;
    let candidates = predictor.candidates();
    let classes = candidates.classes();
    let prototypes = candidates.prototypes();
    let dim = prototypes.len() / classes.len().max(1);
    let prototype = |class: usize| &prototypes[class * dim..(class + 1) * dim];
    let Some(own) = classes.iter().position(|class| class.id == id) else { return Ok(Vec::new()) };
    let mut found: Vec<(f32, usize)> = (0..classes.len())
        .filter(|&class| class != own)
        .map(|class| (gpn::model::squared_distance(prototype(own), prototype(class)), class))
        .collect();
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    found.truncate(SIMILAR);
    let named = |(distance, class): (f32, usize)| {
        let ClassName { id, name } = classes[class].clone();
        Similar { id, name, distance }
    };
    Ok(found.into_iter().map(named).collect())
}

/// The way from a root to a class, by first parents.
pub(crate) fn path(version: &Version, id: &str) -> Vec<Named> {
    let graph = version.classifier.graph();
    let named = |node: Node| Named { id: graph.id(node).to_owned(), name: graph.name(node).to_owned() };
    let mut path = Vec::new();
    let mut next = graph.find(id);
    while let Some(node) = next {
        path.push(named(node));
        next = graph.parents(node).first().copied();
    }
    path.reverse();
    path
}
