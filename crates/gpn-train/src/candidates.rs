//! Classes to choose from: their prototypes, propagated once, and what shaped each of them.

use std::collections::BTreeSet;

use gpn_model::propagation::Influence;
use gpn_taxonomy::{HopSearch, LinkAs, Node, TaskGraph, contract, link, task_graph};
use serde::Serialize;

use crate::class_graph::ClassGraph;
use crate::error::TrainError;
use crate::evaluate::squared_distance;
use crate::methods::refined;
use crate::model_file::TrainedModel;
use crate::network::mix;
use crate::pathways::Surroundings;
use crate::prototype_index::nearest_classes;

/// Which classes a sample may belong to. Classes are given by id, or by a name that one class alone bears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Among {
    /// Every training class and every taught class, but not the root.
    All,
    /// Every taught class.
    Taught,
    /// These.
    Listed(Vec<String>),
    /// Every training class and every taught class somewhere below this one.
    Below(String),
}

/// A class to choose, before propagation.
pub(crate) struct Target {
    pub(crate) class: Node,
    /// Whether its place in the graph counts; otherwise it is linked to the nearest training classes.
    pub(crate) placed: bool,
    pub(crate) prototype: Vec<f32>,
}

/// Id and name of a class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClassName {
    /// Its id.
    pub id: String,
    /// Its name for people.
    pub name: String,
}

/// A class that a sample may belong to, and how likely.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guess {
    /// Position in [`Candidates::classes`].
    pub class: usize,
    /// Softmax over all candidates of minus the squared distance.
    pub probability: f64,
    /// Squared distance to the prototype.
    pub distance: f32,
}

/// How a class that shaped a prototype is related to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// The class itself: its own samples.
    Own,
    /// A parent, or the nearest class above that has a prototype.
    Parent,
    /// A child, or the nearest class below that has a prototype.
    Child,
    /// A training class near to it, where its place is unknown.
    Nearest,
    /// A class further away, by way of others.
    Further,
}

/// The part of one class in the prototype of another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Share {
    /// The class whose first prototype went in.
    #[serde(flatten)]
    pub class: ClassName,
    /// How it is related.
    pub relation: Relation,
    /// Factor of its first prototype: attention times gate, over all steps and paths. The prototype is the sum of
    /// all first prototypes times their factors.
    pub weight: f64,
    /// The factor's size as a share of all, which sum to 1.
    pub share: f64,
}

/// The classes to choose from, with propagated prototypes.
pub struct Candidates {
    /// Targets first, then the classes around them.
    nodes: Vec<ClassName>,
    placed: Vec<bool>,
    /// `(parent, child)` among the nodes, sorted.
    edges: Vec<(u32, u32)>,
    dim: usize,
    prototypes: Vec<f32>,
    steps: Vec<Vec<Influence>>,
    lambda: f32,
    /// What squared distances are multiplied with before the softmax, as in training.
    scale: f32,
}

impl Candidates {
    pub(crate) fn new(
        model: &TrainedModel,
        graph: &ClassGraph,
        targets: &[Target],
        lambda: f32,
    ) -> Result<Self, TrainError> {
        let (memory, pathways) = (&model.memory, &model.info.config.pathways);
        let method = model.network.method.as_ref();
        let first: Vec<f32> = targets.iter().flat_map(|target| &target.prototype).copied().collect();
        let unplaced: Vec<f32> = targets
            .iter()
            .filter(|target| !target.placed)
            .flat_map(|target| &target.prototype)
            .copied()
            .collect();
        let near = nearest_classes(&memory.prototypes, &unplaced, memory.dim, pathways.nearest);
        let found = surroundings(graph, targets, &near, method.hops().unwrap_or(0))?;
        let nodes = found.nodes.iter().map(|&class| ClassName {
            id: graph.graph.id(class).to_owned(),
            name: graph.graph.name(class).to_owned(),
        });
        let (nodes, edges) = (nodes.collect(), found.edges.clone());
        let surroundings = Surroundings::new(found, targets.len());
        let last = refined(method, Some(&surroundings), memory, &first, targets.len());
        Ok(Self {
            nodes,
            placed: targets.iter().map(|target| target.placed).collect(),
            edges,
            dim: memory.dim,
            prototypes: mix(lambda, &first, &last.prototypes),
            steps: last.influences,
            lambda,
            scale: model.info.config.train.distance_scale,
        })
    }

    /// The classes, in the order in which they were asked for.
    pub fn classes(&self) -> &[ClassName] {
        &self.nodes[..self.placed.len()]
    }

    /// The prototypes after propagation, `[classes, dim]`.
    pub fn prototypes(&self) -> &[f32] {
        &self.prototypes
    }

    /// The `top` most likely classes of a sample, the likeliest first; of equally likely ones the first asked for.
    pub fn rank(&self, embedding: &[f32], top: usize) -> Vec<Guess> {
        let distances: Vec<f32> = self
            .prototypes
            .chunks_exact(self.dim)
            .map(|prototype| squared_distance(embedding, prototype))
            .collect();
        let nearest = distances.iter().copied().fold(f32::INFINITY, f32::min);
        let likelihood =
            |distance: f32| libm::exp(f64::from(self.scale) * (f64::from(nearest) - f64::from(distance)));
        let total: f64 = distances.iter().map(|&distance| likelihood(distance)).sum();
        let mut guesses: Vec<Guess> = distances
            .iter()
            .enumerate()
            .map(|(class, &distance)| Guess { class, probability: likelihood(distance) / total, distance })
            .collect();
        guesses.sort_by(|a, b| a.distance.total_cmp(&b.distance));
        guesses.truncate(top);
        guesses
    }

    /// Which classes shaped the prototype of `classes()[class]`, and by how much: the largest shares first.
    pub fn explain(&self, class: usize) -> Vec<Share> {
        let weights = self.weights(class);
        let total: f64 = weights.iter().map(|weight| weight.abs()).sum();
        let mut shares: Vec<Share> = weights
            .iter()
            .enumerate()
            .filter(|(_, weight)| **weight != 0.0)
            .map(|(node, &weight)| Share {
                class: self.nodes[node].clone(),
                relation: self.relation(class, node),
                weight,
                share: weight.abs() / total,
            })
            .collect();
        shares.sort_by(|a, b| b.share.total_cmp(&a.share));
        shares
    }

    /// The factor of each node's first prototype in the prototype of a candidate. Every step is a sum of the prototypes
    /// before it, so the steps are followed from the last to the first.
    fn weights(&self, class: usize) -> Vec<f64> {
        let mut weights = vec![0.0; self.nodes.len()];
        weights[class] = 1.0;
        for step in self.steps.iter().rev() {
            let mut before = weights.clone();
            for influence in step {
                let receiver = influence.receiver as usize;
                let weight = weights[receiver];
                before[receiver] += weight * (f64::from(influence.own) - 1.0);
                for &(sender, share) in &influence.senders {
                    before[sender as usize] += weight * f64::from(share);
                }
            }
            weights = before;
        }
        let lambda = f64::from(self.lambda);
        for weight in &mut weights {
            *weight *= 1.0 - lambda;
        }
        weights[class] += lambda;
        weights
    }

    fn relation(&self, class: usize, node: usize) -> Relation {
        let edge =
            |parent: usize, child: usize| self.edges.binary_search(&(parent as u32, child as u32)).is_ok();
        if class == node {
            Relation::Own
        } else if !self.placed[class] && edge(class, node) {
            Relation::Nearest
        } else if edge(node, class) {
            Relation::Parent
        } else if edge(class, node) {
            Relation::Child
        } else {
            Relation::Further
        }
    }
}

/// The graph to propagate on, as evaluation makes it: training classes and targets, from which all other classes are
/// contracted away; targets without a place are linked to the training classes `near` lists for them, one list each, and
/// the hops are taken from those.
fn surroundings(
    classes: &ClassGraph,
    targets: &[Target],
    near: &[Vec<Node>],
    hops: usize,
) -> Result<TaskGraph, TrainError> {
    let mut kept: Vec<Node> = (0..classes.training as Node).collect();
    let mut rows = vec![0; targets.len()];
    let new = |target: &Target| target.class as usize >= classes.training;
    for (row, target) in rows.iter_mut().zip(targets).filter(|(_, target)| target.placed) {
        *row = target.class;
        if new(target) {
            *row = kept.len() as Node;
            kept.push(target.class);
        }
    }
    let pruned = contract(&classes.graph, &kept);
    let unplaced: Vec<usize> = (0..targets.len()).filter(|&target| !targets[target].placed).collect();
    let links: Vec<(&str, &[Node])> = unplaced
        .iter()
        .zip(near)
        .map(|(&target, near)| (classes.graph.id(targets[target].class), near.as_slice()))
        .collect();
    let linked = link(&pruned, &links, LinkAs::Parent)?;
    for target in unplaced {
        rows[target] = kept.len() as Node;
        kept.push(targets[target].class);
    }
    let mut search = HopSearch::new(&linked);
    let mut around = BTreeSet::new();
    for (placed, hops) in [(true, hops), (false, hops + 1)] {
        let from: Vec<Node> = rows
            .iter()
            .zip(targets)
            .filter(|(_, target)| target.placed == placed)
            .map(|(&row, _)| row)
            .collect();
        around.extend(task_graph(&linked, &from, hops, None, &mut search).nodes);
    }
    for row in &rows {
        around.remove(row);
    }
    rows.extend(around);
    // No hop further: the edges among these classes.
    let mut found = task_graph(&linked, &rows, 0, None, &mut search);
    for node in &mut found.nodes {
        *node = kept[*node as usize];
    }
    Ok(found)
}
