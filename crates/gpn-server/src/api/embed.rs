//! `POST /embed`.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use serde::Serialize;
use utoipa::ToSchema;

use super::answers::Problems;
use super::given::{EmbeddingsBody, ImagesForm, question};
use crate::app::App;
use crate::http::body::receive;
use crate::http::extract::Of;
use crate::http::problem::Problem;

/// The embeddings of samples.
#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "names of the JSON form")]
pub(crate) struct Embeddings {
    /// Numbers of an embedding.
    dim: usize,
    /// One for each sample, in their order; `null` where a sample could not be read.
    embeddings: Vec<Option<Vec<f32>>>,
    /// The samples that could not be read.
    errors: Vec<EmbedError>,
}

/// A sample that could not be read.
#[derive(Serialize, ToSchema)]
pub(crate) struct EmbedError {
    /// Its position.
    index: usize,
    /// What is wrong with it.
    error: String,
}

/// What the model's network makes of samples.
#[utoipa::path(
    post, path = "/embed",
    request_body(content((ImagesForm = "multipart/form-data"), (EmbeddingsBody = "application/json"), (Vec<u8> = "application/octet-stream"))),
    responses((status = 200, body = Embeddings), Problems)
)]
pub(crate) async fn embed(
    State(app): State<Arc<App>>,
    Of(model): Of,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Embeddings>, Problem> {
    let received = receive(&app, &headers, body).await?;
    let (samples, _) = question(&app, &model, &received, None).await?;
    let samples = samples.into_iter().map(|given| given.sample).collect();
    let mut answer = Embeddings { dim: model.dim, embeddings: Vec::new(), errors: Vec::new() };
    for (index, embedded) in model.gather.embed(samples, None).await?.into_iter().enumerate() {
        match embedded {
            Ok(embedding) => answer.embeddings.push(Some(embedding)),
            Err(error) => {
                answer.embeddings.push(None);
                answer.errors.push(EmbedError { index, error: error.to_string() });
            }
        }
    }
    Ok(Json(answer))
}
