//! `GET /card`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use gpn::{ClassKind, InputShape};
use serde::Serialize;
use utoipa::ToSchema;

use super::answers::Problems;
use super::beside;
use crate::app::App;
use crate::http::extract::{Caller, May, Of};
use crate::http::problem::Problem;

/// What a model is, and what this server lets you do with it.
#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "names of the JSON form")]
pub(crate) struct Card {
    /// Its name on this server.
    name: String,
    /// The number of its last change; 0 is the model file.
    version: u64,
    /// Digest of the model file.
    digest: String,
    /// The few-shot method.
    method: String,
    /// The network.
    backbone: String,
    /// What a sample is.
    input: Input,
    /// Numbers of an embedding.
    dim: usize,
    /// How many classes of each kind there are.
    classes: Counts,
    /// The id of the top class.
    root: String,
    /// Whether the images of taught samples are kept.
    keep_images: bool,
    /// Who you are.
    who: String,
    /// Whether you may teach, forget and undo.
    may_write: bool,
    /// What a request may have at most.
    limits: ToldLimits,
    /// The model card that was found beside the model, Markdown.
    card: Option<String>,
    /// The program that trained it.
    built_by: String,
    /// The program that serves it.
    program: String,
}

/// What a sample is.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Input {
    /// An image of any size, brought to this one.
    Image { height: usize, width: usize },
    /// So many numbers.
    Embedding { len: usize },
}

/// How many classes of each kind there are.
#[derive(Default, Serialize, ToSchema)]
pub(crate) struct Counts {
    training: usize,
    taught: usize,
    untaught: usize,
}

/// What a request may have at most.
#[derive(Serialize, ToSchema)]
pub(crate) struct ToldLimits {
    /// Bytes of a body.
    body: usize,
    /// Samples.
    samples: usize,
    /// Pixels of an image.
    pixels: u64,
}

/// What the model is.
#[utoipa::path(get, path = "/card", responses((status = 200, body = Card), Problems))]
pub(crate) async fn card(
    State(app): State<Arc<App>>,
    Of(model): Of,
    Caller(who): Caller,
    May(access): May,
) -> Result<Json<Card>, Problem> {
    beside(move || {
        let version = model.version();
        let info = version.classifier.info();
        let graph = version.classifier.graph();
        let mut classes = Counts::default();
        let kinds = version.classifier.kinds();
        for node in graph.nodes() {
            match kinds(node) {
                ClassKind::Training => classes.training += 1,
                ClassKind::Taught => classes.taught += 1,
                ClassKind::Untaught => classes.untaught += 1,
            }
        }
        let limits = &app.settings.limits;
        Ok(Json(Card {
            name: model.name.clone(),
            version: version.number,
            digest: model.digest.clone(),
            method: info.config.train.method.to_string(),
            backbone: info.config.model.backbone.to_string(),
            input: match info.input {
                InputShape::Image { height, width } => Input::Image { height, width },
                InputShape::Embedding { len } => Input::Embedding { len },
            },
            dim: model.dim,
            classes,
            root: graph.id(info.root).to_owned(),
            keep_images: app.settings.keep_images,
            who,
            may_write: access == crate::tokens::Access::Write,
            limits: ToldLimits { body: limits.body, samples: limits.samples, pixels: limits.pixels },
            card: model.card.clone(),
            built_by: info.built_by.clone(),
            program: concat!("gpn ", env!("CARGO_PKG_VERSION")).into(),
        }))
    })
    .await
}
