//! `POST /classes/{class}/move`.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use serde::Deserialize;
use utoipa::ToSchema;

use super::answers::{NewVersion, Problems};
use super::beside;
use crate::app::App;
use crate::http::body::receive;
use crate::http::extract::{Caller, ClassInPath, Of};
use crate::http::problem::Problem;

/// Where a class is moved.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MoveBody {
    /// Its new parents, by id or name.
    #[schema(min_items = 1)]
    parents: Vec<String>,
}

/// Moves a class below others; what is below it moves along.
#[utoipa::path(
    post, path = "/classes/{class}/move", params(("class" = String, Path, description = "Id or name of the class.")),
    request_body = MoveBody, responses((status = 200, body = NewVersion), Problems)
)]
pub(crate) async fn move_class(
    State(app): State<Arc<App>>,
    Of(model): Of,
    Caller(who): Caller,
    ClassInPath(class): ClassInPath,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<NewVersion>, Problem> {
    let body: MoveBody = receive(&app, &headers, body).await?.json()?;
    beside(move || {
        let changed = model.move_class(&who, &class, &body.parents)?;
        app.metrics.change();
        Ok(Json(NewVersion { version: changed.after.number }))
    })
    .await
}
