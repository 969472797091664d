//! `POST /undo`.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answers::Problems;
use super::beside;
use crate::app::App;
use crate::http::body::receive;
use crate::http::extract::{Caller, Of};
use crate::http::problem::Problem;
use crate::model::HistoryEntry;

/// What is to be undone: the last change of the model, if nothing else is said.
#[derive(Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct UndoBody {
    /// The last change of this class.
    class: Option<String>,
    /// The change of this number.
    number: Option<u64>,
}

/// What was undone.
#[derive(Serialize, ToSchema)]
pub(crate) struct Undone {
    /// The version of the model from now on.
    version: u64,
    /// The change that was undone.
    undone: HistoryEntry,
}

/// Undoes a change: the last one, the last one of a class, or the one of a number.
#[utoipa::path(
    post, path = "/undo", request_body = UndoBody,
    responses((status = 200, body = Undone), Problems)
)]
pub(crate) async fn undo(
    State(app): State<Arc<App>>,
    Of(model): Of,
    Caller(who): Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Undone>, Problem> {
    let body: UndoBody = receive(&app, &headers, body).await?.json_or_default()?;
    beside(move || {
        // A class that is forgotten may have no place any more; then its id is meant.
        let class = body.class.map(|class| match model.version().classifier.class(&class) {
            Ok(entry) => entry.id,
            Err(_) => class,
        });
        let (undone, changed) = model.undo(&who, class.as_deref(), body.number)?;
        app.metrics.change();
        Ok(Json(Undone { version: changed.after.number, undone }))
    })
    .await
}
