//! `GET /classes/{class}/samples/{sample}/image`.

use axum::http::header;
use axum::response::IntoResponse;

use super::answers::Problems;
use super::beside;
use crate::http::extract::{ClassInPath, Of, SampleInPath};
use crate::http::problem::Problem;

/// The image of a taught sample, as it was given, where images are kept.
#[utoipa::path(
    get, path = "/classes/{class}/samples/{sample}/image",
    params(
        ("class" = String, Path, description = "Id or name of the class."),
        ("sample" = u64, Path, description = "Number of the sample.")
    ),
    responses((status = 200, body = Vec<u8>, content_type = "image/*"), Problems)
)]
pub(crate) async fn image(
    Of(model): Of,
    ClassInPath(class): ClassInPath,
    SampleInPath(number): SampleInPath,
) -> Result<impl IntoResponse, Problem> {
    let bytes = beside(move || {
        let id = model.version().classifier.class(&class)?.id;
        model.image(&id, number)?.ok_or_else(|| Problem::not_found("no image is kept of this sample"))
    })
    .await?;
    Ok(([(header::CONTENT_TYPE, content_type(&bytes))], bytes))
}

/// The type by the first bytes: what a caller once said does not count.
fn content_type(bytes: &[u8]) -> &'static str {
    match bytes {
        [0xff, 0xd8, ..] => "image/jpeg",
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [b'G', b'I', b'F', ..] => "image/gif",
        [b'B', b'M', ..] => "image/bmp",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        _ => "application/octet-stream",
    }
}
