//! Which graph a task propagates on: the classes near its targets, thinned to a spanning tree.

use gpn_taxonomy::{
    Choose, HopSearch, Node, Prefer, TaskGraph, Taxonomy, TaxonomyError, UnknownClass, contracted_task_graph,
    linked_task_graph, spanning_forest, task_graph,
};
use serde::{Deserialize, Serialize};

use crate::distance::squared_distance;
use crate::error::Result;
use crate::propagation::PropagationGraph;

/// How the graph of a task is thinned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpanningTree {
    /// The tree of shortest edges, by Euclidean distance of the task's prototypes.
    #[default]
    Nearest,
    /// The tree of the strongest relations, by cosine of the prototypes.
    Cosine,
    /// No tree: all edges.
    Off,
}

/// The classes around a task's targets, before thinning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbourhood {
    /// The class of each node, targets first.
    pub classes: Vec<u32>,
    targets: usize,
    /// `(parent, child)` rows.
    edges: Vec<(u32, u32)>,
}

impl Neighbourhood {
    /// Number of targets, which are the first nodes.
    pub fn targets(&self) -> usize {
        self.targets
    }

    /// `(parent, child)` between the nodes.
    pub fn edges(&self) -> &[(u32, u32)] {
        &self.edges
    }

    /// In training: the targets and everything within `hops` of them on the graph of training classes. `halve` chooses from
    /// lists of neighbours that are to be shortened.
    pub fn in_training(
        graph: &Taxonomy,
        targets: &[u32],
        hops: usize,
        halve: Option<&mut Choose<'_>>,
        search: &mut HopSearch,
    ) -> Self {
        Self::new(task_graph(graph, targets, hops, halve, search), targets.len())
    }

    /// In a test with known hierarchy: on the graph of training classes and targets, from which the other test classes
    /// are contracted away. Classes below `training` are training classes.
    pub fn known(graph: &Taxonomy, training: usize, targets: &[u32], hops: usize) -> Self {
        let is_kept = |class: Node| (class as usize) < training || targets.contains(&class);
        Self::new(contracted_task_graph(graph, targets, hops, is_kept), targets.len())
    }

    /// In a test with unknown hierarchy: each target is linked to the training classes `nearest` lists for it, and the
    /// hops are taken from those.
    pub fn unknown(graph: &Taxonomy, targets: &[u32], nearest: &[Vec<u32>], hops: usize) -> Result<Self> {
        if let Some(class) = nearest.iter().flatten().find(|&&class| class as usize >= graph.len()) {
            let unknown = UnknownClass { id: format!("number {class}"), nearest: None };
            return Err(TaxonomyError::UnknownClasses(vec![unknown]).into());
        }
        let mut found = linked_task_graph(graph, nearest, hops);
        found.nodes[..targets.len()].copy_from_slice(targets);
        Ok(Self::new(found, targets.len()))
    }

    /// The first `targets` nodes of a task's graph, and those around them.
    pub fn new(found: TaskGraph, targets: usize) -> Self {
        Self { classes: found.nodes, targets, edges: found.edges }
    }

    /// The graph to propagate on, thinned by the prototypes `[nodes, dim]`.
    pub fn thinned(&self, tree: SpanningTree, prototypes: &[f32]) -> PropagationGraph {
        let nodes = self.classes.len();
        let backward: Vec<(u32, u32)> = self.edges.clone();
        let mut forward: Vec<(u32, u32)> =
            self.edges.iter().map(|&(parent, child)| (child, parent)).collect();
        forward.sort_unstable();
        let thin = |pairs: Vec<(u32, u32)>| -> Vec<(u32, u32)> {
            let (weights, prefer): (Vec<f32>, Prefer) = match tree {
                SpanningTree::Off => return pairs,
                SpanningTree::Nearest => (weigh(&pairs, nodes, prototypes, distance), Prefer::Light),
                SpanningTree::Cosine => (weigh(&pairs, nodes, prototypes, cosine), Prefer::Heavy),
            };
            spanning_forest(nodes, &pairs, &weights, prefer).into_iter().map(|edge| pairs[edge]).collect()
        };
        PropagationGraph::new(nodes, self.targets, thin(forward), thin(backward))
    }
}

fn weigh(pairs: &[(u32, u32)], nodes: usize, prototypes: &[f32], of: fn(&[f32], &[f32]) -> f32) -> Vec<f32> {
    let dim = prototypes.len() / nodes.max(1);
    let row = |node: u32| &prototypes[node as usize * dim..][..dim];
    pairs.iter().map(|&(a, b)| of(row(a), row(b))).collect()
}

fn distance(a: &[f32], b: &[f32]) -> f32 {
    squared_distance(a, b).sqrt()
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let dot = |x: &[f32], y: &[f32]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f32>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt().max(1e-8)
}

#[cfg(test)]
mod tests {
    use crate::propagation::Direction;
    use gpn_taxonomy::TaxonomyBuilder;

    use super::*;

    /// 0 animal > 1 cat, 2 dog > 3 mastiff; 4 pet > 1, 2.
    fn animals() -> Taxonomy {
        let mut builder = TaxonomyBuilder::new();
        let nodes = ["animal", "cat", "dog", "mastiff", "pet"].map(|id| builder.add_class(id));
        for (parent, child) in [(0, 1), (0, 2), (2, 3), (4, 1), (4, 2)] {
            builder.add_edge(nodes[parent], nodes[child], None);
        }
        builder.build().unwrap().taxonomy
    }

    #[test]
    fn a_tree_keeps_the_nearest_edges_in_both_directions() {
        let graph = animals();
        let found = Neighbourhood::in_training(&graph, &[1], 2, None, &mut HopSearch::new(&graph));
        assert_eq!(found.classes, [1, 0, 2, 4]);
        // cat 0.0, animal 1.0, dog 1.5, pet 9.0: the edge pet-cat (9) closes no tree cheaper than pet-dog (7.5).
        let thinned = found.thinned(SpanningTree::Nearest, &[0.0, 1.0, 1.5, 9.0]);
        assert_eq!(thinned.senders(Direction::FromParents).to(0), [1]);
        assert_eq!(thinned.senders(Direction::FromChildren).to(1), [0, 2]);
        assert_eq!(thinned.senders(Direction::FromChildren).to(3), [2]);
        let whole = found.thinned(SpanningTree::Off, &[0.0; 4]);
        assert_eq!(whole.senders(Direction::FromParents).to(0), [1, 3]);
    }

    #[test]
    fn other_test_classes_are_contracted_away() {
        // Training: animal, cat. Targets: mastiff. Dog and pet are test classes of other tasks.
        let found = Neighbourhood::known(&animals(), 2, &[3], 1);
        assert_eq!(found.classes, [3, 0]);
    }

    #[test]
    fn unknown_targets_hear_from_their_nearest_classes() {
        let graph = animals();
        let found = Neighbourhood::unknown(&graph, &[77], &[vec![3]], 1).unwrap();
        assert_eq!(found.classes, [77, 2, 3]);
        let thinned = found.thinned(SpanningTree::Off, &[0.0; 3]);
        assert_eq!(thinned.senders(Direction::Both).to(0), [2]);
        let message = Neighbourhood::unknown(&graph, &[77], &[vec![5]], 1).unwrap_err().to_string();
        assert!(message.starts_with("unknown class: `number 5`"), "{message}");
    }
}
