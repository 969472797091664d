//! The built-in page: files that are part of the program.

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use std::sync::Arc;

use crate::app::App;
use crate::http::problem::Problem;

/// What a page may load: its own files, and pictures that it made itself.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; \
connect-src 'self'; font-src 'self'; media-src 'self' blob:; manifest-src 'self'; base-uri 'none'; form-action 'none'; \
frame-ancestors 'none'";

/// A file of the page: its path, its bytes, their digest.
struct Asset {
    path: &'static str,
    bytes: &'static [u8],
    digest: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/assets.rs"));

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new().route("/", get(index))
}

async fn index(headers: HeaderMap) -> Response {
    answer("index.html", &headers)
}

/// All that no route is for: another file of the page, or nothing.
pub(crate) async fn fallback(headers: HeaderMap, request: Request) -> Response {
    let path = request.uri().path().trim_start_matches('/');
    let readable = matches!(request.method().as_str(), "GET" | "HEAD");
    if readable && ASSETS.iter().any(|asset| asset.path == path) {
        return answer(path, &headers);
    }
    Problem::not_found("there is nothing at this address").into_response()
}

fn answer(path: &str, headers: &HeaderMap) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.path == path) else {
        return Problem::not_found("there is nothing at this address").into_response();
    };
    let known =
        headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == asset.digest.as_bytes());
    let mut response =
        if known { StatusCode::NOT_MODIFIED.into_response() } else { asset.bytes.into_response() };
    let set = response.headers_mut();
    set.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type(path)));
    set.insert(header::ETAG, HeaderValue::from_static(asset.digest));
    set.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    set.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    response
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "webp" => "image/webp",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}
