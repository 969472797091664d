//! Candidates of a model with a graph prior: posteriors in the space of its metric, and what each is made of.

use std::sync::Arc;

use gpn_model::prior::{Direction, KnownClasses, Posterior, PriorModel, Source};
use gpn_taxonomy::{Node, Taxonomy};

use super::candidates::{ClassName, Relation, Share, Target};
use super::class_graph::ClassGraph;
use crate::error::Result;

/// The posteriors of some classes.
pub(super) struct ByPrior {
    model: PriorModel,
    graph: Arc<Taxonomy>,
    targets: Vec<(Node, bool)>,
    posteriors: Vec<Posterior>,
}

impl ByPrior {
    /// The posteriors of the targets, whose prototypes are means in the space of the metric.
    pub(super) fn new(model: &PriorModel, graph: &ClassGraph, targets: &[Target]) -> Result<Self> {
        let known = KnownClasses::new(&graph.graph, model.statistics());
        let posterior = |target: &Target| -> Result<Posterior> {
            let prior = model.prior_of(target.placed.then_some((&known, target.class)), None)?;
            let mean: Vec<f64> = target.prototype.iter().map(|&value| f64::from(value)).collect();
            Ok(model.prior().posterior_of_mean(&prior, &mean, target.samples)?)
        };
        Ok(Self {
            posteriors: targets.iter().map(posterior).collect::<Result<_>>()?,
            targets: targets.iter().map(|target| (target.class, target.placed)).collect(),
            model: model.clone(),
            graph: Arc::clone(&graph.graph),
        })
    }

    /// The prototypes, `[classes, dim]`, in the space of the metric.
    pub(super) fn prototypes(&self) -> Vec<f32> {
        self.posteriors.iter().flat_map(|posterior| &posterior.prototype).copied().collect()
    }

    /// Distances of an embedding to all classes, scaled for the softmax.
    pub(super) fn distances(&self, embedding: &[f32]) -> Result<Vec<f32>> {
        let query = self.model.metric().apply(embedding)?;
        let scale = self.model.temperature();
        Ok(self.posteriors.iter().map(|posterior| scale * self.model.distance(&query, posterior)).collect())
    }

    /// What the prototype of a class is made of, the largest shares first.
    pub(super) fn explain(&self, class: usize) -> Vec<Share> {
        let own = f64::from(self.posteriors[class].own_share());
        let (node, placed) = self.targets[class];
        let name = |node: Node| ClassName {
            id: self.graph.id(node).to_owned(),
            name: self.graph.name(node).to_owned(),
        };
        let share =
            |class: ClassName, relation, weight: f64| Share { class, relation, weight, share: weight.abs() };
        let mut shares = vec![share(name(node), Relation::Own, own)];
        let all = || ClassName { id: String::new(), name: "the mean of all classes".into() };
        if placed {
            let known = KnownClasses::new(&self.graph, self.model.statistics());
            for part in self.model.prior().shares(&known, node) {
                let weight = (1.0 - own) * f64::from(part.share);
                shares.push(match part.source {
                    Source::Relative(relative, direction) => {
                        let relation = match direction {
                            Direction::Above => Relation::Parent,
                            Direction::Below => Relation::Child,
                            Direction::Beside => Relation::Further,
                        };
                        share(name(relative), relation, weight)
                    }
                    Source::Text(like) => share(name(like), Relation::Nearest, weight),
                    Source::Samples | Source::GrandMean => share(all(), Relation::All, weight),
                });
            }
        } else {
            shares.push(share(all(), Relation::All, 1.0 - own));
        }
        let total: f64 = shares.iter().map(|share| share.share).sum();
        shares.retain(|share| share.share > 0.0);
        for share in &mut shares {
            share.share /= total;
        }
        shares.sort_by(|a, b| b.share.total_cmp(&a.share));
        shares
    }
}
