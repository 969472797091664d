//! What handlers take out of a request; what does not fit is a problem.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Query, RawPathParams};
use axum::http::Uri;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::problem::Problem;
use crate::app::App;
use crate::model::Model;
use crate::tokens::Access;

/// The query of an address.
pub(crate) struct Asked<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Ok(Self(query(&parts.uri)?))
    }
}

/// What the query of an address says.
pub(crate) fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, Problem> {
    if !is_text(uri.query().unwrap_or_default()) {
        return Err(Problem::bad_input("the query of the address is no UTF-8 text"));
    }
    let query = Query::try_from_uri(uri);
    let query = query
        .map_err(|error| Problem::bad_input(&format!("the query of the address: {}", root_cause(&error))))?;
    Ok(query.0)
}

/// Whether the bytes that `%XX` stands for are UTF-8; the parser would put a mark in place of others.
fn is_text(query: &str) -> bool {
    let mut bytes = Vec::with_capacity(query.len());
    let mut rest = query.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = after.split_at_checked(2).filter(|_| byte == b'%').and_then(|(digits, after)| {
            Some((u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?, after))
        });
        let (byte, after) = escaped.unwrap_or((byte, after));
        bytes.push(byte);
        rest = after;
    }
    std::str::from_utf8(&bytes).is_ok()
}

/// The innermost message, which names the field.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// The path of an address in its parts.
async fn path_part<S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
    name: &str,
) -> Result<Option<String>, Problem> {
    let params = RawPathParams::from_request_parts(parts, state)
        .await
        .map_err(|_| Problem::bad_input("the address is no UTF-8 text"))?;
    Ok(params.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_owned()))
}

/// The model that an address names: `/api/models/NAME/...`, or the first one.
pub(crate) struct Of(pub(crate) Arc<Model>);

impl FromRequestParts<Arc<App>> for Of {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let name = path_part(parts, app, "model").await?;
        Ok(Self(app.model(name.as_deref())?))
    }
}

/// The class that an address names.
pub(crate) struct ClassInPath(pub(crate) String);

impl FromRequestParts<Arc<App>> for ClassInPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let class = path_part(parts, app, "class").await?;
        class.map(Self).ok_or_else(|| Problem::bug("the route has no class"))
    }
}

/// The number of a sample that an address names.
pub(crate) struct SampleInPath(pub(crate) u64);

impl FromRequestParts<Arc<App>> for SampleInPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let number = path_part(parts, app, "sample").await?.and_then(|number| number.parse().ok());
        number.map(Self).ok_or_else(|| Problem::not_found("samples have whole numbers"))
    }
}

/// Who calls: the name of the token that was used.
#[derive(Clone, Debug)]
pub(crate) struct Caller(pub(crate) String);

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        parts.extensions.get::<Self>().cloned().ok_or_else(|| Problem::bug("the route has no guard"))
    }
}

/// What the caller may do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct May(pub(crate) Access);

impl<S: Sync> FromRequestParts<S> for May {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        parts.extensions.get::<Self>().copied().ok_or_else(|| Problem::bug("the route has no guard"))
    }
}

/// The name of a model in an address; there may be no such model.
pub(crate) struct ModelInPath(pub(crate) String);

impl FromRequestParts<Arc<App>> for ModelInPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let name = path_part(parts, app, "model").await?;
        name.map(Self).ok_or_else(|| Problem::bug("the route has no model"))
    }
}

/// The version that an address of the Open Inference Protocol names.
pub(crate) struct VersionInPath(pub(crate) Option<u64>);

impl FromRequestParts<Arc<App>> for VersionInPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        match path_part(parts, app, "version").await? {
            None => Ok(Self(None)),
            Some(text) => match text.parse() {
                Ok(number) => Ok(Self(Some(number))),
                Err(_) => Err(Problem::not_found("versions have whole numbers")),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_text() {
        for text in ["", "q=a%20b", "q=%C3%A9", "q=100%", "q=%zz", "q=\u{e9}"] {
            assert!(is_text(text), "{text}");
        }
        for other in ["q=%ff", "q=%C3", "%80=1"] {
            assert!(!is_text(other), "{other}");
        }
    }
}
