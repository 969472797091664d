//! `GET /healthz`, `GET /readyz`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::State;

use crate::app::App;
use crate::http::problem::Problem;

/// The process answers.
pub(crate) async fn alive() -> &'static str {
    "ok\n"
}

/// The models are there, and the server is not about to end.
pub(crate) async fn ready(State(app): State<Arc<App>>) -> Result<&'static str, Problem> {
    if app.ready.load(Ordering::Relaxed) {
        Ok("ready\n")
    } else {
        Err(Problem::busy("the server starts or ends"))
    }
}
