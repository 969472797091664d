//! `GET /graph`.

use std::collections::{HashMap, HashSet};

use axum::Json;
use gpn::ClassKind;
use gpn::taxonomy::{Node, Taxonomy};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::answers::Problems;
use super::beside;
use crate::http::extract::{Asked, Of};
use crate::http::problem::Problem;

const MOST: usize = 5000;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct GraphQuery {
    /// The class in the middle, by id or name. Default the top class.
    node: Option<String>,
    /// Steps to parents. Default 2.
    #[param(maximum = 64)]
    up: Option<u32>,
    /// Steps to children. Default 2.
    #[param(maximum = 64)]
    down: Option<u32>,
    /// Classes to give, 5000 at most. Default 200.
    #[param(minimum = 1, maximum = 5000)]
    limit: Option<usize>,
}

/// A window of the class graph.
#[derive(Serialize, ToSchema)]
pub(crate) struct Window {
    /// The version of the model.
    version: u64,
    /// The id of the class in the middle.
    center: String,
    /// The classes, nearest to the middle first.
    nodes: Vec<GraphNode>,
    /// Parent and child, by id.
    edges: Vec<[String; 2]>,
    /// A taught class of unknown place and a training class that it is linked to, by id.
    links: Vec<[String; 2]>,
    /// Whether there were more classes than the limit.
    truncated: bool,
}

/// A class in a window.
#[derive(Serialize, ToSchema)]
pub(crate) struct GraphNode {
    /// Its id.
    id: String,
    /// Its name.
    name: String,
    /// `training`, `taught` or `untaught`.
    #[schema(value_type = String)]
    kind: ClassKind,
    /// Samples it was trained with or taught.
    samples: usize,
    /// Steps from the middle: below 0 towards parents.
    depth: i64,
    /// How many parents it has.
    parents: usize,
    /// How many children it has.
    children: usize,
}

/// A window of the class graph around a class.
#[utoipa::path(get, path = "/graph", params(GraphQuery), responses((status = 200, body = Window), Problems))]
pub(crate) async fn graph(Of(model): Of, Asked(query): Asked<GraphQuery>) -> Result<Json<Window>, Problem> {
    let limit = query.limit.unwrap_or(200);
    if !(1..=MOST).contains(&limit) {
        return Err(Problem::bad_input(&format!("`limit` is a number from 1 to {MOST}")));
    }
    let (up, down) = (query.up.unwrap_or(2), query.down.unwrap_or(2));
    if up > 64 || down > 64 {
        return Err(Problem::bad_input("`up` and `down` are at most 64"));
    }
    beside(move || {
        let version = model.version();
        let graph = version.classifier.graph();
        let center = match &query.node {
            Some(text) => graph.find(&version.classifier.class(text)?.id).unwrap_or_default(),
            None => version.classifier.info().root,
        };
        let mut found = around(&graph, center, i64::from(up), i64::from(down), limit);
        let mut truncated = found.1;
        let mut depths: HashMap<Node, i64> = found.0.iter().copied().collect();
        let mut links = Vec::new();
        for (class, nearest) in version.unplaced() {
            let near: Vec<Node> = nearest.iter().filter_map(|id| graph.find(id)).collect();
            let Some(depth) = near.iter().filter_map(|near| depths.get(near)).min().copied() else {
                continue;
            };
            if !depths.contains_key(class) {
                if found.0.len() >= limit {
                    truncated = true;
                    continue;
                }
                depths.insert(*class, depth + 1);
                found.0.push((*class, depth + 1));
            }
            for near in near.iter().filter(|near| depths.contains_key(near)) {
                links.push([graph.id(*class).to_owned(), graph.id(*near).to_owned()]);
            }
        }
        let mut edges = Vec::new();
        for &(node, _) in &found.0 {
            for child in graph.children(node).iter().filter(|child| depths.contains_key(child)) {
                edges.push([graph.id(node).to_owned(), graph.id(*child).to_owned()]);
            }
        }
        let entries = version.classifier.entries(found.0.iter().map(|&(node, _)| node));
        let nodes = found.0.iter().zip(entries).map(|(&(node, depth), entry)| GraphNode {
            id: entry.id,
            name: entry.name,
            kind: entry.kind,
            samples: entry.samples,
            depth,
            parents: graph.parents(node).len(),
            children: graph.children(node).len(),
        });
        Ok(Json(Window {
            version: version.number,
            center: graph.id(center).to_owned(),
            nodes: nodes.collect(),
            edges,
            links,
            truncated,
        }))
    })
    .await
}

/// The classes around one, nearest first, and whether there were more than the limit.
fn around(graph: &Taxonomy, center: Node, up: i64, down: i64, limit: usize) -> (Vec<(Node, i64)>, bool) {
    let mut found = vec![(center, 0)];
    let mut seen: HashSet<Node> = HashSet::from([center]);
    let mut next = 0;
    while let Some(&(node, depth)) = found.get(next) {
        next += 1;
        let above: &[Node] = if depth <= 0 && -depth < up { graph.parents(node) } else { &[] };
        let below: &[Node] = if depth >= 0 && depth < down { graph.children(node) } else { &[] };
        for (relatives, step) in [(above, -1), (below, 1)] {
            for &relative in relatives {
                if seen.contains(&relative) {
                    continue;
                }
                if found.len() >= limit {
                    return (found, true);
                }
                seen.insert(relative);
                found.push((relative, depth + step));
            }
        }
    }
    (found, false)
}

#[cfg(test)]
mod tests {
    use gpn::taxonomy::TaxonomyBuilder;

    use super::*;

    #[test]
    fn a_window_goes_up_and_down_and_ends_at_its_limit() {
        let mut builder = TaxonomyBuilder::new();
        for (parent, child) in
            [("thing", "animal"), ("animal", "cat"), ("animal", "dog"), ("cat", "lynx"), ("thing", "car")]
        {
            let [parent, child] = [parent, child].map(|id| builder.add_class(id));
            builder.add_edge(parent, child, None);
        }
        let graph = builder.build().unwrap().taxonomy;
        let window = |center: &str, up, down, limit| {
            let (found, more) = around(&graph, graph.find(center).unwrap(), up, down, limit);
            let named = found.iter().map(|&(node, depth)| format!("{} {depth}", graph.id(node)));
            (named.collect::<Vec<_>>().join(", "), more)
        };
        assert_eq!(window("cat", 1, 1, 9), ("cat 0, animal -1, lynx 1".into(), false));
        assert_eq!(window("cat", 9, 0, 9), ("cat 0, animal -1, thing -2".into(), false));
        assert_eq!(window("thing", 2, 2, 3), ("thing 0, animal 1, car 1".into(), true));
        assert_eq!(window("car", 0, 0, 1), ("car 0".into(), false));
    }
}
