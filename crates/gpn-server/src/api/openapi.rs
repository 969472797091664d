//! `GET /api/openapi.json`: the description of the API, generated from the code.

use std::sync::LazyLock;

use axum::http::header;
use axum::response::IntoResponse;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    Components, InfoBuilder, ObjectBuilder, OpenApi, OpenApiBuilder, PathItem, Required, Type,
};
use utoipa::{PartialSchema as _, ToSchema as _};

use super::{of_a_model, of_the_server};
use crate::http::problem::Problem;

pub(crate) async fn openapi() -> impl IntoResponse {
    static DOCUMENT: LazyLock<String> = LazyLock::new(document);
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT.as_str())
}

/// The document as JSON.
pub(crate) fn document() -> String {
    // invariant: the document is plain data, which always serialises.
    description().to_pretty_json().unwrap()
}

fn description() -> OpenApi {
    let ((_, read), (_, write)) = of_a_model();
    let ((_, all_read), (_, all_write)) = of_the_server();
    let mut whole = OpenApiBuilder::new()
        .info(
            InfoBuilder::new()
                .title("gpn")
                .version(env!("CARGO_PKG_VERSION"))
                .description(Some(
                    "Few-shot classification that knows how classes are related. Every path below `/api` is that of the first \
                     model; `/api/models/{model}` has the same for each. Errors are `application/problem+json`.",
                ))
                .build(),
        )
        .components(Some(Components::new()))
        .build();
    for mut part in [read, write] {
        for (path, item) in std::mem::take(&mut part.paths.paths) {
            let mut named = item.clone();
            each_operation(&mut named, |operation| {
                operation.operation_id = operation.operation_id.take().map(|id| format!("{id}_of_model"));
                operation.parameters.get_or_insert_default().insert(0, model_parameter().into());
            });
            insert(&mut whole, format!("/api{path}"), item);
            insert(&mut whole, format!("/api/models/{{model}}{path}"), named);
        }
        whole.merge(part);
    }
    for mut part in [all_read, all_write] {
        for (path, item) in std::mem::take(&mut part.paths.paths) {
            insert(&mut whole, format!("/api{path}"), item);
        }
        whole.merge(part);
    }
    let components = whole.components.get_or_insert_default();
    components.schemas.insert(Problem::name().into_owned(), Problem::schema());
    components
        .security_schemes
        .insert("token".into(), SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)).into());
    // Where a server has tokens, one is needed; where it has none, nobody asks.
    let no_scopes: [&str; 0] = [];
    whole.security = Some(vec![SecurityRequirement::new("token", no_scopes), SecurityRequirement::default()]);
    whole
}

/// Adds operations to a path that may have others.
fn insert(whole: &mut OpenApi, path: String, item: PathItem) {
    match whole.paths.paths.entry(path) {
        std::collections::btree_map::Entry::Vacant(place) => {
            place.insert(item);
        }
        std::collections::btree_map::Entry::Occupied(mut place) => place.get_mut().merge_operations(item),
    }
}

fn each_operation(item: &mut PathItem, change: impl Fn(&mut Operation)) {
    for operation in [&mut item.get, &mut item.post, &mut item.delete].into_iter().flatten() {
        change(operation);
    }
}

fn model_parameter() -> Parameter {
    ParameterBuilder::new()
        .name("model")
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some("Name of the model."))
        .schema(Some(ObjectBuilder::new().schema_type(Type::String).build()))
        .build()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_document_is_whole() {
        let document: serde_json::Value = serde_json::from_str(&document()).unwrap();
        assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
        let mut ids = BTreeSet::new();
        let paths = document["paths"].as_object().unwrap();
        for (path, item) in paths {
            for (method, operation) in item.as_object().unwrap() {
                let id = operation["operationId"].as_str().unwrap();
                assert!(ids.insert(id.to_owned()), "{method} {path}: {id} is there twice");
                assert!(operation["responses"]["4XX"].is_object(), "{method} {path} has no problem");
            }
        }
        for path in
            ["/api/classes/{class}", "/api/models/{model}/predict", "/api/models", "/api/models/{model}/load"]
        {
            assert!(paths.contains_key(path), "{path} is missing");
        }
        // Every reference leads somewhere.
        let text = document.to_string();
        let schemas = document["components"]["schemas"].as_object().unwrap();
        for reference in text.split("\"#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(schemas.contains_key(name), "{name} is not described");
        }
    }
}
