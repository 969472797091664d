//! What stands before every handler: who may do what, how much at once, for how long; and what is counted.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::extract::{Caller, May};
use super::problem::Problem;
use crate::app::App;
use crate::tokens::Access;

/// The caller where no token is asked for.
const LOCAL: &str = "local";

/// Lets only those pass who may read.
pub(crate) async fn may_read(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    pass(&app, Access::Read, request, next).await
}

/// Lets only those pass who may write.
pub(crate) async fn may_write(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    pass(&app, Access::Write, request, next).await
}

async fn pass(app: &App, wanted: Access, mut request: Request, next: Next) -> Response {
    match caller(app, wanted, request.headers()) {
        Ok((caller, access)) => {
            request.extensions_mut().insert(caller);
            request.extensions_mut().insert(May(access));
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    }
}

/// Who calls, if they may do what is wanted.
fn caller(app: &App, wanted: Access, headers: &HeaderMap) -> Result<(Caller, Access), Problem> {
    let tokens = &app.settings.tokens;
    if tokens.is_empty() {
        return Ok((Caller(LOCAL.to_owned()), Access::Write));
    }
    let unauthorized = |detail| Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", detail);
    let given = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    let given = given.ok_or_else(|| unauthorized("a token is needed: send `Authorization: Bearer TOKEN`"))?;
    let token = match given.split_at_checked(7) {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case(b"bearer ") => token.trim_ascii(),
        _ => return Err(unauthorized("the authorization is no bearer token")),
    };
    let (name, access) = tokens.find(token).ok_or_else(|| unauthorized("the token is not known"))?;
    if access < wanted {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "forbidden",
            "this token may read, but not change anything",
        ));
    }
    Ok((Caller(name.to_owned()), access))
}

/// Refuses requests that a page of another origin makes in a visitor's browser, and names that a foreign domain has been
/// given for this machine.
pub(crate) async fn same_origin(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let host = request
        .headers()
        .get(header::HOST)
        .and_then(|host| host.to_str().ok())
        .or_else(|| request.uri().authority().map(axum::http::uri::Authority::as_str))
        .unwrap_or_default();
    let refused = |detail| Problem::new(StatusCode::FORBIDDEN, "forbidden", detail).into_response();
    if app.settings.tokens.is_empty() && !is_this_machine(host) {
        return refused("without tokens the server answers to localhost and loopback addresses only");
    }
    if let Some(origin) = request.headers().get(header::ORIGIN)
        && !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS)
    {
        let origin = origin.to_str().unwrap_or_default();
        let own = origin.split_once("://").is_some_and(|(_, authority)| authority.eq_ignore_ascii_case(host));
        if !own && !app.settings.origins.iter().any(|allowed| allowed == origin) {
            return refused("pages of other origins may not do this; the server can be told to allow one");
        }
    }
    next.run(request).await
}

/// Whether a `Host` header means this machine in its own words.
fn is_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Bounds how many requests are at work and for how long.
pub(crate) async fn bounded(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let Ok(_place) = app.places.try_acquire() else {
        return Problem::busy("as many requests as may be are at work").into_response();
    };
    let _in_flight = app.metrics.in_flight();
    // The body has a time of its own, so that it can be told apart who was slow.
    let time = app.settings.limits.body_time + app.settings.limits.answer_time;
    match tokio::time::timeout(time, next.run(request)).await {
        Ok(response) => response,
        Err(_) => Problem::new(StatusCode::SERVICE_UNAVAILABLE, "timeout", "the answer took too long")
            .into_response(),
    }
}

/// Headers that every answer has.
const HEADERS: [(HeaderName, &str); 4] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Counts requests, and sets the headers that every answer has.
pub(crate) async fn observed(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    let policy = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(policy);
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    // A method of one's own invention must not become a label.
    let method = match method {
        Method::GET | Method::POST | Method::PUT | Method::DELETE | Method::HEAD | Method::OPTIONS => method,
        _ => Method::TRACE,
    };
    let method = if method == Method::TRACE { "other" } else { method.as_str() };
    let route = route.as_deref().unwrap_or("none");
    app.metrics.request(method, route, response.status().as_u16(), started.elapsed());
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_this_machine_are_known() {
        for host in ["localhost", "LOCALHOST:8080", "127.0.0.1:1", "127.9.9.9", "[::1]:8080"] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in
            ["", "example.org", "localhost.example.org", "10.0.0.1", "[fe80::1]", "127.0.0.1.example.org"]
        {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}
