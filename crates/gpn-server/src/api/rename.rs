//! `POST /classes/{class}/rename`.

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

/// What a class is called from now on.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RenameBody {
    /// Its new name.
    name: String,
}

/// Gives a class another name for people; its id stays.
#[utoipa::path(
    post, path = "/classes/{class}/rename", params(("class" = String, Path, description = "Id or name of the class.")),
    request_body = RenameBody, responses((status = 200, body = NewVersion), Problems)
)]
pub(crate) async fn rename(
    State(app): State<Arc<App>>,
    Of(model): Of,
    Caller(who): Caller,
    ClassInPath(class): ClassInPath,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<NewVersion>, Problem> {
    let body: RenameBody = receive(&app, &headers, body).await?.json()?;
    beside(move || {
        let changed = model.rename(&who, &class, &body.name)?;
        app.metrics.change();
        Ok(Json(NewVersion { version: changed.after.number }))
    })
    .await
}
