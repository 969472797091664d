//! `DELETE /classes/{class}`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;

use super::answers::{NewVersion, Problems};
use super::beside;
use crate::app::App;
use crate::http::extract::{Caller, ClassInPath, Of};
use crate::http::problem::Problem;

/// Forgets a taught class. It can be undone.
#[utoipa::path(
    delete, path = "/classes/{class}", params(("class" = String, Path, description = "Id or name of the class.")),
    responses((status = 200, body = NewVersion), Problems)
)]
pub(crate) async fn forget(
    State(app): State<Arc<App>>,
    Of(model): Of,
    Caller(who): Caller,
    ClassInPath(class): ClassInPath,
) -> Result<Json<NewVersion>, Problem> {
    beside(move || {
        let changed = model.forget(&who, &class)?;
        app.metrics.change();
        Ok(Json(NewVersion { version: changed.after.number }))
    })
    .await
}
