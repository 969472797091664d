//! `GET /history`, `GET /classes/{class}/history`.

use axum::Json;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::answers::Problems;
use super::beside;
use crate::http::extract::{Asked, ClassInPath, Of};
use crate::http::problem::Problem;
use crate::model::HistoryEntry;

const MOST: usize = 500;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct HistoryQuery {
    /// Changes to give, 500 at most. Default 50.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<usize>,
    /// Only changes before this number.
    before: Option<u64>,
}

/// Changes, the newest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct History {
    /// The changes.
    changes: Vec<HistoryEntry>,
    /// Ask again with `before` at this number for more; `null` at the end.
    next: Option<u64>,
}

/// Who changed what, and when.
#[utoipa::path(get, path = "/history", params(HistoryQuery), responses((status = 200, body = History), Problems))]
pub(crate) async fn history(
    Of(model): Of,
    Asked(query): Asked<HistoryQuery>,
) -> Result<Json<History>, Problem> {
    page(model, None, query).await
}

/// Who changed a class, and when. Classes that are gone have a history too.
#[utoipa::path(
    get, path = "/classes/{class}/history",
    params(("class" = String, Path, description = "Id or name of the class."), HistoryQuery),
    responses((status = 200, body = History), Problems)
)]
pub(crate) async fn history_of_class(
    Of(model): Of,
    ClassInPath(class): ClassInPath,
    Asked(query): Asked<HistoryQuery>,
) -> Result<Json<History>, Problem> {
    page(model, Some(class), query).await
}

async fn page(
    model: std::sync::Arc<crate::model::Model>,
    class: Option<String>,
    query: HistoryQuery,
) -> Result<Json<History>, Problem> {
    let limit = query.limit.unwrap_or(50);
    if !(1..=MOST).contains(&limit) {
        return Err(Problem::bad_input(&format!("`limit` is a number from 1 to {MOST}")));
    }
    beside(move || {
        let known = class.as_deref().map(|class| model.version().classifier.class(class));
        let id = match &known {
            Some(Ok(entry)) => Some(entry.id.as_str()),
            _ => class.as_deref(),
        };
        let changes = model.history(id, query.before.unwrap_or(u64::MAX), limit)?;
        if let (Some(Err(error)), true) = (known, changes.is_empty()) {
            return Err(error.into());
        }
        let next = changes.last().filter(|_| changes.len() == limit).map(|change| change.number);
        Ok(Json(History { changes, next }))
    })
    .await
}
