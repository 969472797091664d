//! `GET /classes`.

use axum::Json;
use gpn::taxonomy::Node;
use gpn::{ClassEntry, ClassKind};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::answers::Problems;
use super::beside;
use super::schema::EntrySchema;
use crate::http::extract::{Asked, Of};
use crate::http::problem::Problem;

const MOST: usize = 1000;
/// Larger models are not searched for the most similar name, which takes a look at every one.
const NEAREST_AMONG: usize = 50_000;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ClassesQuery {
    /// What ids or names contain, letter case ignored.
    q: Option<String>,
    /// Only classes of this kind.
    #[param(inline)]
    kind: Option<Kind>,
    /// Classes to give, 1000 at most. Default 50.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Where to go on: `next` of the answer before.
    cursor: Option<String>,
}

/// What a model has of a class.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Training,
    Taught,
    Untaught,
}

/// Some classes.
#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "names of the JSON form")]
pub(crate) struct Classes {
    /// How many fit in all.
    total: usize,
    /// Ask again with this `cursor` for more; `null` at the end.
    next: Option<String>,
    /// The classes: the best fit first, or in the order of the graph.
    #[schema(value_type = Vec<EntrySchema>)]
    classes: Vec<ClassEntry>,
    /// Where nothing fits, the most similar id or name.
    did_you_mean: Option<String>,
}

/// Lists classes, or searches them.
#[utoipa::path(get, path = "/classes", params(ClassesQuery), responses((status = 200, body = Classes), Problems))]
pub(crate) async fn classes(
    Of(model): Of,
    Asked(query): Asked<ClassesQuery>,
) -> Result<Json<Classes>, Problem> {
    let limit = query.limit.unwrap_or(50);
    if !(1..=MOST).contains(&limit) {
        return Err(Problem::bad_input(&format!("`limit` is a number from 1 to {MOST}")));
    }
    let offset: usize = match query.cursor.as_deref() {
        None => 0,
        Some(cursor) => {
            cursor.parse().map_err(|_| Problem::bad_input("`cursor` is not one that this server gave"))?
        }
    };
    beside(move || {
        let version = model.version();
        let wanted = query.kind.map(|kind| match kind {
            Kind::Training => ClassKind::Training,
            Kind::Taught => ClassKind::Taught,
            Kind::Untaught => ClassKind::Untaught,
        });
        let kinds = version.classifier.kinds();
        let fits = |node: Node| wanted.is_none_or(|wanted| kinds(node) == wanted);
        let text = query.q.as_deref().unwrap_or_default();
        let (total, nodes) = version.index.find(text, fits, offset, limit);
        let graph = version.classifier.graph();
        let did_you_mean = (total == 0 && graph.len() <= NEAREST_AMONG)
            .then(|| {
                let words = graph.nodes().flat_map(|node| [graph.name(node), graph.id(node)]);
                gpn::taxonomy::nearest_name(text, words).map(str::to_owned)
            })
            .flatten();
        let end = offset.saturating_add(nodes.len());
        Ok(Json(Classes {
            total,
            next: (end < total && !nodes.is_empty()).then(|| end.to_string()),
            classes: version.classifier.entries(nodes),
            did_you_mean,
        }))
    })
    .await
}
