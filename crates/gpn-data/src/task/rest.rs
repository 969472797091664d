//! The answer "other" of a task: samples of classes outside it.

use std::collections::BTreeSet;

use gpn_taxonomy::{Node, Taxonomy};

use super::sampler::Candidate;
use crate::rng::Stream;

/// Draws before a class related to a target is accepted.
const TRIES: usize = 50;

/// Draws samples that belong to no target of a task.
#[derive(Debug)]
pub(super) struct Outsiders {
    graph: Taxonomy,
}

impl Outsiders {
    pub(super) fn new(graph: &Taxonomy) -> Self {
        Self { graph: graph.clone() }
    }

    /// `count` different samples, each of a class drawn at random among those that are not in the task and neither above
    /// nor below one of its classes; where there is hardly such a class, a related one does.
    ///
    /// `chosen` are places in `classes`, fewer than there are.
    pub(super) fn draw(
        &self,
        classes: &[Candidate],
        chosen: &[u32],
        count: usize,
        stream: &mut Stream,
    ) -> Vec<u32> {
        let targets: Vec<Node> = chosen.iter().map(|&class| classes[class as usize].node).collect();
        let above = self.above(&targets);
        let related = |node: Node| {
            above.contains(&node) || self.above(&[node]).iter().any(|above| targets.contains(above))
        };
        let mut drawn = Vec::with_capacity(count);
        let mut tries = 0;
        while drawn.len() < count {
            let class = stream.below(classes.len()) as u32;
            tries += 1;
            let candidate = &classes[class as usize];
            if chosen.contains(&class) || (tries <= TRIES * count && related(candidate.node)) {
                continue;
            }
            let sample = candidate.samples[stream.below(candidate.samples.len())];
            // Where few samples are left outside, one may come twice.
            if !drawn.contains(&sample) || tries > 2 * TRIES * count {
                drawn.push(sample);
            }
        }
        drawn
    }

    /// `nodes` and all that is above them.
    fn above(&self, nodes: &[Node]) -> BTreeSet<Node> {
        let mut found = BTreeSet::new();
        let mut open = nodes.to_vec();
        while let Some(node) = open.pop() {
            if found.insert(node) {
                open.extend(self.graph.parents(node));
            }
        }
        found
    }
}
