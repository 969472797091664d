//! `GET /export`.

use axum::http::header;
use axum::response::IntoResponse;

use super::answers::Problems;
use super::beside;
use crate::http::extract::Of;
use crate::http::problem::Problem;

/// The current version as a plain model file.
#[utoipa::path(
    get, path = "/export",
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream"), Problems)
)]
pub(crate) async fn export(Of(model): Of) -> Result<impl IntoResponse, Problem> {
    let name = format!("attachment; filename=\"{}.safetensors\"", model.name);
    let bytes = beside(move || Ok(model.version().classifier.to_bytes()?)).await?;
    Ok((
        [(header::CONTENT_TYPE, "application/octet-stream".to_owned()), (header::CONTENT_DISPOSITION, name)],
        bytes,
    ))
}
