//! What the server and its models are.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Json;
use axum::extract::State;
use gpn::InputShape;
use serde_json::{Value, json};

use super::Failure;
use crate::api::beside;
use crate::app::App;
use crate::http::extract::{ModelInPath, VersionInPath};
use crate::http::problem::Problem;

/// `GET /v2`
pub(crate) async fn server() -> Json<Value> {
    Json(json!({
        "name": "gpn",
        "version": env!("CARGO_PKG_VERSION"),
        "extensions": ["binary_tensor_data"],
    }))
}

/// `GET /v2/health/live`
pub(crate) async fn live() -> Json<Value> {
    Json(json!({ "live": true }))
}

/// `GET /v2/health/ready`
pub(crate) async fn ready(State(app): State<Arc<App>>) -> Result<Json<Value>, Failure> {
    if app.ready.load(Ordering::Relaxed) {
        Ok(Json(json!({ "ready": true })))
    } else {
        Err(Problem::busy("the server starts or ends").into())
    }
}

/// `GET /v2/models/NAME/ready`
pub(crate) async fn model_ready(
    State(app): State<Arc<App>>,
    ModelInPath(name): ModelInPath,
    VersionInPath(number): VersionInPath,
) -> Result<Json<Value>, Failure> {
    let model = app.model(Some(&name))?;
    check(number, model.version().number)?;
    Ok(Json(json!({ "name": model.name, "ready": true })))
}

fn check(asked: Option<u64>, current: u64) -> Result<(), Problem> {
    match asked {
        Some(asked) if asked > current => {
            Err(Problem::not_found(&format!("there is no version {asked}; the current one is {current}")))
        }
        _ => Ok(()),
    }
}

/// `GET /v2/models/NAME`
pub(crate) async fn model(
    State(app): State<Arc<App>>,
    ModelInPath(name): ModelInPath,
    VersionInPath(number): VersionInPath,
) -> Result<Json<Value>, Failure> {
    let model = app.model(Some(&name))?;
    check(number, model.version().number)?;
    let described = beside(move || {
        let version = model.version();
        let number = number.unwrap_or(version.number);
        let input = match version.classifier.input() {
            InputShape::Image { .. } => {
                json!({ "name": "image", "datatype": "UINT8", "shape": [-1, -1, -1, 3] })
            }
            InputShape::Embedding { len } => {
                json!({ "name": "embedding", "datatype": "FP32", "shape": [-1, len] })
            }
        };
        Ok(json!({
            "name": model.name,
            "versions": [number.to_string()],
            "platform": "gpn",
            "inputs": [input],
            "outputs": [
                { "name": "class_id", "datatype": "BYTES", "shape": [-1] },
                { "name": "probabilities", "datatype": "FP32", "shape": [-1, -1] },
                { "name": "classes", "datatype": "BYTES", "shape": [-1] },
                { "name": "embedding", "datatype": "FP32", "shape": [-1, model.dim] },
            ],
        }))
    })
    .await?;
    Ok(Json(described))
}
