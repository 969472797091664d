//! `GET /models`, `POST /models/{model}/load`, `DELETE /models/{model}`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::answers::Problems;
use super::beside;
use crate::app::App;
use crate::http::extract::ModelInPath;
use crate::http::problem::Problem;
use crate::model::Model;

/// The models of the server.
#[derive(Serialize, ToSchema)]
pub(crate) struct Models {
    /// Those that are loaded.
    models: Vec<ModelEntry>,
    /// The names of those that may be loaded.
    loadable: Vec<String>,
}

/// A model that is loaded.
#[derive(Serialize, ToSchema)]
pub(crate) struct ModelEntry {
    /// Its name.
    name: String,
    /// Whether addresses without a name mean it.
    default: bool,
    /// The number of its last change.
    version: u64,
    /// How many classes it has.
    classes: usize,
    /// Digest of the model file.
    digest: String,
}

fn entry(app: &App, model: &Model) -> ModelEntry {
    let version = model.version();
    ModelEntry {
        name: model.name.clone(),
        default: app.settings.models[0].0 == model.name,
        version: version.number,
        classes: version.classifier.graph().len(),
        digest: model.digest.clone(),
    }
}

/// The models that are loaded, and those that may be.
#[utoipa::path(get, path = "/models", responses((status = 200, body = Models), Problems))]
pub(crate) async fn models(State(app): State<Arc<App>>) -> Result<Json<Models>, Problem> {
    beside(move || {
        let models: Vec<ModelEntry> = app.models().iter().map(|model| entry(&app, model)).collect();
        let is_loaded = |name: &String| models.iter().any(|model| model.name == *name);
        let loadable =
            app.loadable().into_iter().map(|(name, _)| name).filter(|name| !is_loaded(name)).collect();
        Ok(Json(Models { models, loadable }))
    })
    .await
}

/// Loads a model by name: one that the server was started with, or a file of its folder of models.
#[utoipa::path(
    post, path = "/models/{model}/load", params(("model" = String, Path, description = "Name of the model.")),
    responses((status = 200, body = ModelEntry), Problems)
)]
pub(crate) async fn load(
    State(app): State<Arc<App>>,
    ModelInPath(name): ModelInPath,
) -> Result<Json<ModelEntry>, Problem> {
    beside(move || {
        let model = app.load(&name)?;
        Ok(Json(entry(&app, &model)))
    })
    .await
}

/// Drops a model; its files stay, and it can be loaded again.
#[utoipa::path(
    delete, path = "/models/{model}", params(("model" = String, Path, description = "Name of the model.")),
    responses((status = 204, description = "It is dropped."), Problems)
)]
pub(crate) async fn drop_model(
    State(app): State<Arc<App>>,
    ModelInPath(name): ModelInPath,
) -> Result<axum::http::StatusCode, Problem> {
    app.drop_model(&name)?;
    Ok(axum::http::StatusCode::NO_CONTENT)
}
