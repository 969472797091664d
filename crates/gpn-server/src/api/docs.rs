//! `GET /api/docs`: a small viewer of the OpenAPI document.

use axum::http::header;
use axum::response::IntoResponse;

use crate::page::POLICY;

pub(crate) async fn page() -> impl IntoResponse {
    let headers =
        [(header::CONTENT_TYPE, "text/html; charset=utf-8"), (header::CONTENT_SECURITY_POLICY, POLICY)];
    (headers, include_str!("docs/docs.html"))
}

pub(crate) async fn script() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], include_str!("docs/docs.js"))
}

pub(crate) async fn style() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], include_str!("docs/docs.css"))
}
