//! `GET /metrics`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;

use crate::app::App;

/// Counters, as Prometheus reads them.
pub(crate) async fn metrics(State(app): State<Arc<App>>) -> impl IntoResponse {
    let models: Vec<(String, u64, usize)> = app
        .models()
        .iter()
        .map(|model| {
            let version = model.version();
            (model.name.clone(), version.number, version.classifier.graph().len())
        })
        .collect();
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], app.metrics.text(&models))
}
