//! The one error type of requests: it becomes `application/problem+json` (RFC 9457).

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use gpn::ErrorKind;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What went wrong with a request.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Problem {
    /// `about:blank`: the status says what it is.
    #[serde(rename = "type")]
    pub(crate) uri: String,
    /// The status in words.
    pub(crate) title: String,
    /// The HTTP status.
    pub(crate) status: u16,
    /// What happened, where, and what to do.
    pub(crate) detail: String,
    /// For programs: `bad_input`, `not_found`, `conflict`, `damaged`, `no_room`, `interrupted`, `bug`, `too_large`, `busy`,
    /// `timeout`, `unauthorized`, `forbidden`, `unsupported`.
    pub(crate) kind: String,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, kind: &str, detail: &str) -> Self {
        Self {
            uri: "about:blank".into(),
            title: status.canonical_reason().unwrap_or("Error").into(),
            status: status.as_u16(),
            detail: detail.to_owned(),
            kind: kind.to_owned(),
        }
    }

    pub(crate) fn bad_input(detail: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_input", detail)
    }

    pub(crate) fn not_found(detail: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", detail)
    }

    pub(crate) fn conflict(detail: &str) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", detail)
    }

    pub(crate) fn too_large(detail: &str) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail)
    }

    pub(crate) fn busy(detail: &str) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", &format!("{detail}; try again in a moment"))
    }

    pub(crate) fn unsupported(detail: &str) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported", detail)
    }

    pub(crate) fn bug(detail: &str) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "bug", detail)
    }

    /// Whether the caller can do something about it.
    pub(crate) fn is_callers(&self) -> bool {
        self.status < 500
    }
}

/// The status of each kind of failure, as docs/json.md has it.
fn status(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::BadInput => StatusCode::BAD_REQUEST,
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::Conflict => StatusCode::CONFLICT,
        ErrorKind::Damaged => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorKind::NoRoom => StatusCode::INSUFFICIENT_STORAGE,
        ErrorKind::Interrupted => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::Bug => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl From<gpn::Error> for Problem {
    fn from(error: gpn::Error) -> Self {
        Self::new(status(error.kind()), error.kind().name(), &error.to_string())
    }
}

impl From<redb::Error> for Problem {
    fn from(error: redb::Error) -> Self {
        // A damaged database is no fault of the request.
        let kind = match crate::model::store_kind(&error) {
            ErrorKind::NoRoom => ErrorKind::NoRoom,
            _ => ErrorKind::Bug,
        };
        Self::new(status(kind), kind.name(), &format!("the database failed: {error}"))
    }
}

impl From<crate::error::ServeError> for Problem {
    fn from(error: crate::error::ServeError) -> Self {
        Self::new(status(error.kind()), error.kind().name(), &error.to_string())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        // invariant: plain data always serialise.
        let mut response = (status, serde_json::to_vec(&self).unwrap()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        match status {
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"gpn\""));
            }
            _ => {}
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_the_statuses_of_the_documentation() {
        let page = include_str!("../../../../docs/json.md");
        for kind in ErrorKind::ALL {
            let line = page.lines().find(|line| line.starts_with(&format!("| `{}` |", kind.name()))).unwrap();
            assert!(line.ends_with(&format!("| {} |", status(kind).as_u16())), "{line}");
        }
    }

    #[test]
    fn a_busy_server_says_when_to_come_back() {
        let response = Problem::busy("all at work").into_response();
        assert_eq!(response.headers()[header::RETRY_AFTER], "1");
        assert_eq!(response.headers()[header::CONTENT_TYPE], "application/problem+json");
    }
}
