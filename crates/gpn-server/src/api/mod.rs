//! The JSON API: one file for each endpoint.

mod answers;
mod card;
mod class;
mod classes;
mod docs;
mod embed;
mod explain;
mod export;
mod forget;
mod given;
mod graph;
mod health;
mod history;
mod image;
mod metrics;
mod models;
mod move_class;
pub(crate) mod openapi;
mod predict;
mod rename;
mod schema;
mod teach;
mod test;
mod undo;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::http::problem::Problem;

/// Routes and their description.
pub(crate) type Described = (Router<Arc<App>>, OpenApi);

/// What is asked of a model and what changes it: below `/api` for the first one, below `/api/models/NAME` for any.
pub(crate) fn of_a_model() -> (Described, Described) {
    let read = OpenApiRouter::<Arc<App>>::new()
        .routes(routes!(card::card))
        .routes(routes!(classes::classes))
        .routes(routes!(class::class))
        .routes(routes!(image::image))
        .routes(routes!(history::history))
        .routes(routes!(history::history_of_class))
        .routes(routes!(graph::graph))
        .routes(routes!(predict::predict))
        .routes(routes!(explain::explain))
        .routes(routes!(embed::embed))
        .routes(routes!(test::test))
        .routes(routes!(export::export));
    let write = OpenApiRouter::<Arc<App>>::new()
        .routes(routes!(teach::teach))
        .routes(routes!(forget::forget))
        .routes(routes!(move_class::move_class))
        .routes(routes!(rename::rename))
        .routes(routes!(undo::undo));
    (read.split_for_parts(), write.split_for_parts())
}

/// What belongs to no single model.
pub(crate) fn of_the_server() -> (Described, Described) {
    let read = OpenApiRouter::<Arc<App>>::new().routes(routes!(models::models));
    let write =
        OpenApiRouter::<Arc<App>>::new().routes(routes!(models::load)).routes(routes!(models::drop_model));
    (read.split_for_parts(), write.split_for_parts())
}

/// What is open to everybody.
pub(crate) fn open() -> Router<Arc<App>> {
    Router::new()
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/api/openapi.json", get(openapi::openapi))
        .route("/api/docs", get(docs::page))
        .route("/api/docs.js", get(docs::script))
        .route("/api/docs.css", get(docs::style))
}

/// What is read, but is not part of the API.
pub(crate) fn metrics() -> Router<Arc<App>> {
    Router::new().route("/metrics", get(metrics::metrics))
}

/// Runs work that takes a while, beside the threads that serve.
pub(crate) async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(_) => Err(Problem::bug("a fault of the server; please report what you asked")),
    }
}
