//! Classes to choose from: their prototypes, propagated once, and what shaped each of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use gpn_model::methods::refined;
use gpn_model::propagation::Influence;
use gpn_model::{Neighbourhood, PrototypeIndex, mix, squared_distance};
use gpn_taxonomy::{HopSearch, LinkAs, Node, TaskGraph, contract, link, task_graph};
use gpn_train::TrainedModel;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::by_decision::{ByDecision, Wanted};
use super::by_prior::ByPrior;
use super::class_graph::ClassGraph;
use super::levels::{Deep, Levels};
use crate::error::{Error, Result};

/// Which classes a sample may belong to. Classes are given by id, or by a name that only one class has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Among {
    /// Every training class and every taught class, but not the root.
    #[default]
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
    /// The mean of its samples; in the space of the metric where the model has a graph prior.
    pub(crate) prototype: Vec<f32>,
    /// Number of its samples.
    pub(crate) samples: usize,
    /// How many of these a trained class was taught afterwards.
    pub(crate) added: usize,
}

/// Id and name of a class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassName {
    /// Its id.
    pub id: String,
    /// Its name for people.
    pub name: String,
}

/// A class that a sample may belong to, and how likely.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranked {
    /// Position in [`Candidates::classes`].
    pub class: usize,
    /// Softmax over all candidates of minus the squared distance.
    pub probability: f64,
    /// Squared distance to the prototype.
    pub distance: f32,
}

/// How a class that shaped a prototype is related to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// The mean of all classes.
    All,
}

/// The part of one class in the prototype of another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// The prototypes after propagation; none where rules of a catalogue answer.
    index: PrototypeIndex<'static>,
    steps: Vec<Vec<Influence>>,
    lambda: f32,
    /// What squared distances are multiplied with before the softmax, as in training.
    scale: f32,
    /// Where the model has a graph prior, the posteriors answer in place of propagated prototypes.
    by_prior: Option<ByPrior>,
    /// Where the model was fitted to a catalogue, linear rules answer.
    by_decision: Option<ByDecision>,
    graph: Arc<ClassGraph>,
    levels: Levels,
}

/// What a sample is, as far as the candidates can tell.
pub(crate) struct Judged {
    /// The likeliest classes first.
    pub(crate) ranked: Vec<Ranked>,
    /// Probability of each class, in the order of the classes, for an answer that is as deep as sure; empty where none is asked for.
    pub(crate) cautious: Vec<f32>,
    /// How strange the sample is, and from when on it belongs to none.
    pub(crate) unknown: Option<(f64, f64)>,
}

impl Candidates {
    pub(crate) fn new(
        model: &TrainedModel,
        graph: &Arc<ClassGraph>,
        targets: &[Target],
        lambda: f32,
    ) -> Result<Self> {
        let (memory, pathways) = (&model.memory, &model.info.config.pathways);
        let method = model.network.method.as_ref();
        if let Some(prior) = method.prior() {
            let empty = Self::without_answers(memory.dim, graph, targets);
            if prior.decision().is_some() {
                return Ok(Self { by_decision: Some(ByDecision::new(prior, graph, targets)?), ..empty });
            }
            let by_prior = ByPrior::new(prior, graph, targets)?;
            let index = PrototypeIndex::of(by_prior.prototypes(), memory.dim);
            return Ok(Self { index, by_prior: Some(by_prior), ..empty });
        }
        let first: Vec<f32> = targets.iter().flat_map(|target| &target.prototype).copied().collect();
        let unplaced: Vec<f32> = targets
            .iter()
            .filter(|target| !target.placed)
            .flat_map(|target| &target.prototype)
            .copied()
            .collect();
        let near = PrototypeIndex::new(memory).nearest(&unplaced, pathways.nearest);
        let found = neighbourhood(graph, targets, &near, method.hops().unwrap_or(0))?;
        let nodes = found.nodes.iter().map(|&class| ClassName {
            id: graph.graph.id(class).to_owned(),
            name: graph.graph.name(class).to_owned(),
        });
        let (nodes, edges) = (nodes.collect(), found.edges.clone());
        let neighbourhood = Neighbourhood::new(found, targets.len());
        let last = refined(method, Some(&neighbourhood), memory, &first, targets.len());
        Ok(Self {
            nodes,
            placed: targets.iter().map(|target| target.placed).collect(),
            edges,
            dim: memory.dim,
            index: PrototypeIndex::of(mix(lambda, &first, &last.prototypes), memory.dim),
            steps: last.influences,
            lambda,
            scale: model.info.config.train.distance_scale,
            by_prior: None,
            by_decision: None,
            levels: levels(graph, targets),
            graph: Arc::clone(graph),
        })
    }

    fn without_answers(dim: usize, graph: &Arc<ClassGraph>, targets: &[Target]) -> Self {
        let name = |target: &Target| ClassName {
            id: graph.graph.id(target.class).to_owned(),
            name: graph.graph.name(target.class).to_owned(),
        };
        Self {
            nodes: targets.iter().map(name).collect(),
            placed: targets.iter().map(|target| target.placed).collect(),
            edges: Vec::new(),
            dim,
            index: PrototypeIndex::of(Vec::new(), dim),
            steps: Vec::new(),
            lambda: 0.0,
            scale: 1.0,
            by_prior: None,
            by_decision: None,
            levels: levels(graph, targets),
            graph: Arc::clone(graph),
        }
    }

    /// The classes, in the order in which they were asked for.
    pub fn classes(&self) -> &[ClassName] {
        &self.nodes[..self.placed.len()]
    }

    /// The prototypes after propagation, `[classes, dim]`; with a graph prior, in the space of its metric.
    pub fn prototypes(&self) -> Vec<f32> {
        match &self.by_decision {
            Some(by_decision) => by_decision.prototypes(),
            None => self.index.prototypes().to_vec(),
        }
    }

    /// The way from below the root to `classes()[class]`.
    pub fn path(&self, class: usize) -> Vec<ClassName> {
        self.levels.path(class).iter().map(|&node| self.named(node)).collect()
    }

    /// Id and name of a class of the graph.
    pub(crate) fn named(&self, node: Node) -> ClassName {
        let graph = &self.graph.graph;
        ClassName { id: graph.id(node).to_owned(), name: graph.name(node).to_owned() }
    }

    /// The way from below the root to a class of the graph.
    pub(crate) fn path_of(&self, node: Node) -> Vec<ClassName> {
        let path = Levels::new(&self.graph.graph, self.graph.root, &[node]);
        path.path(0).iter().map(|&node| self.named(node)).collect()
    }

    /// The top class.
    pub(crate) fn root(&self) -> ClassName {
        self.named(self.graph.root)
    }

    /// The levels above the classes.
    pub(crate) fn levels(&self) -> &Levels {
        &self.levels
    }

    /// The deepest class that reaches a confidence.
    pub(crate) fn deepest(&self, cautious: &[f32], confidence: f64) -> Deep {
        self.levels.deepest(cautious, confidence)
    }

    /// Probabilities of embeddings, `[n, dim]` to `[n, classes]`.
    pub fn probabilities(&self, embeddings: &[f32]) -> Result<Vec<f32>> {
        if let Some(by_decision) = &self.by_decision {
            return by_decision.probabilities(embeddings);
        }
        let of_row = |row: &[f32]| {
            let mut values = vec![0.0; self.classes().len()];
            for ranked in self.rank(row, usize::MAX) {
                values[ranked.class] = ranked.probability as f32;
            }
            values
        };
        Ok(embeddings.par_chunks_exact(self.dim).flat_map_iter(of_row).collect())
    }

    /// The likeliest class of each embedding, `[n, dim]` to positions in [`classes`](Self::classes). Where that is the class of the
    /// nearest prototype, it is found without the distances to all.
    pub fn best(&self, embeddings: &[f32]) -> Result<Vec<u32>> {
        if let Some(by_decision) = &self.by_decision {
            return by_decision.best(embeddings);
        }
        if self.by_prior.is_none() {
            let nearest = self.index.nearest(embeddings, 1);
            return Ok(nearest.iter().map(|found| found.first().copied().unwrap_or(0)).collect());
        }
        let of_row = |row: &[f32]| self.rank(row, 1).first().map_or(0, |best| best.class as u32);
        Ok(embeddings.par_chunks_exact(self.dim).map(of_row).collect())
    }

    /// What can be told about embeddings, `[n, dim]`: the `top` likeliest classes at least and, where asked for, cautious probabilities.
    pub(crate) fn judge(&self, embeddings: &[f32], top: usize, cautious: bool) -> Result<Vec<Judged>> {
        if let Some(by_decision) = &self.by_decision {
            return by_decision.answers(embeddings, Wanted { top, cautious });
        }
        let of_row = |row: &[f32]| {
            let ranked = self.rank(row, usize::MAX);
            let mut cautious = vec![0.0; ranked.len()];
            for ranked in &ranked {
                cautious[ranked.class] = ranked.probability as f32;
            }
            Judged { ranked, cautious, unknown: None }
        };
        Ok(embeddings.par_chunks_exact(self.dim).map(of_row).collect())
    }

    /// The `top` most likely classes of a sample, the likeliest first; of equally likely ones the first asked for.
    pub fn rank(&self, embedding: &[f32], top: usize) -> Vec<Ranked> {
        if self.by_decision.is_some() {
            // invariant: embeddings are those of the model's own backbone, which fit its metric.
            let mut judged = self.judge(embedding, top, false).unwrap();
            return judged.pop().map_or_else(Vec::new, |judged| judged.ranked);
        }
        let to_prototypes = || {
            let prototypes = self.index.prototypes().chunks_exact(self.dim);
            prototypes.map(|prototype| squared_distance(embedding, prototype)).collect()
        };
        let distances: Vec<f32> = match &self.by_prior {
            // invariant: embeddings are those of the model's own backbone, which fit its metric.
            Some(by_prior) => by_prior.distances(embedding).unwrap(),
            None => to_prototypes(),
        };
        let nearest = distances.iter().copied().fold(f32::INFINITY, f32::min);
        let likelihood =
            |distance: f32| libm::exp(f64::from(self.scale) * (f64::from(nearest) - f64::from(distance)));
        let total: f64 = distances.iter().map(|&distance| likelihood(distance)).sum();
        let mut ranked: Vec<Ranked> = distances
            .iter()
            .enumerate()
            .map(|(class, &distance)| Ranked { class, probability: likelihood(distance) / total, distance })
            .collect();
        ranked.sort_by(|a, b| a.distance.total_cmp(&b.distance));
        ranked.truncate(top);
        ranked
    }

    /// Which classes shaped the prototype of `classes()[class]`, and by how much: the largest shares first.
    pub fn explain(&self, class: usize) -> Vec<Share> {
        if let Some(by_decision) = &self.by_decision {
            return by_decision.explain(class);
        }
        if let Some(by_prior) = &self.by_prior {
            return by_prior.explain(class);
        }
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

fn levels(graph: &ClassGraph, targets: &[Target]) -> Levels {
    let nodes: Vec<Node> = targets.iter().map(|target| target.class).collect();
    Levels::new(&graph.graph, graph.root, &nodes)
}

/// The graph to propagate on, as evaluation makes it: training classes and targets, from which all other classes are
/// contracted away; targets without a place are linked to the training classes `near` lists for them, one list each, and
/// the hops are taken from those.
fn neighbourhood(
    classes: &ClassGraph,
    targets: &[Target],
    near: &[Vec<Node>],
    hops: usize,
) -> Result<TaskGraph> {
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
    let linked = link(&pruned, &links, LinkAs::Parent).map_err(Error::from)?;
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
