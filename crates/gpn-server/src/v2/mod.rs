//! The Open Inference Protocol, version 2, as KServe and Triton speak it, with binary tensors.
//!
//! One input: images as UINT8 `[n, height, width, 3]` or as BYTES `[n]` (files), or embeddings as FP32 `[n, dim]`. Outputs: `class_id`
//! BYTES `[n]` and `probabilities` FP32 `[n, classes]`; on request `classes` BYTES `[classes]`, the ids of the columns, and `embedding`
//! FP32 `[n, dim]`.

mod infer;
mod metadata;
mod tensor;

use std::sync::Arc;

use axum::Json;
use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

use crate::app::App;
use crate::http::problem::Problem;

/// What is read, with a token where there are any.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/", get(metadata::server))
        .route("/models/{model}", get(metadata::model))
        .route("/models/{model}/versions/{version}", get(metadata::model))
        .route("/models/{model}/ready", get(metadata::model_ready))
        .route("/models/{model}/versions/{version}/ready", get(metadata::model_ready))
        .route("/models/{model}/infer", post(infer::infer))
        .route("/models/{model}/versions/{version}/infer", post(infer::infer))
}

/// Health is open to everybody.
pub(crate) fn health() -> Router<Arc<App>> {
    Router::new()
        .route("/v2/health/live", get(metadata::live))
        .route("/v2/health/ready", get(metadata::ready))
}

/// A problem as this protocol tells it: `{"error": "..."}`.
pub(crate) struct Failure(Problem);

impl<E: Into<Problem>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let error = serde_json::json!({ "error": self.0.detail });
        // The status and its headers are those of the problem.
        let (parts, _) = self.0.into_response().into_parts();
        let mut response = (parts.status, Json(error)).into_response();
        for (name, value) in &parts.headers {
            if *name != axum::http::header::CONTENT_TYPE && *name != axum::http::header::CONTENT_LENGTH {
                response.headers_mut().insert(name, value.clone());
            }
        }
        response
    }
}
