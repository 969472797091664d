//! Candidates of a fitted catalogue: prototypes, and borders between classes with many samples.

use std::sync::Arc;

use gpn_model::ModelError;
use gpn_model::prior::{
    ClassRule, Decision, Direction, KnownClasses, Posterior, PriorModel, Rule, Scorer, Source, probabilities,
    unknown_score,
};
use gpn_taxonomy::Node;
use rayon::prelude::*;

use super::candidates::{ClassName, Relation, Share, Target};
use super::class_graph::ClassGraph;
use crate::error::Result;

/// The rules of some classes.
pub(super) struct ByDecision {
    model: Arc<PriorModel>,
    graph: Arc<ClassGraph>,
    scorer: Scorer,
    /// Each class, whether it has a place, and how much of its prototype its own samples are.
    targets: Vec<(Node, bool, f32)>,
}

/// The answer to one sample.
pub(super) struct Answer {
    /// Probability of each class.
    pub(super) probabilities: Vec<f32>,
    /// Probabilities for an answer that is as deep as sure.
    pub(super) cautious: Vec<f32>,
    /// Squared distance of each class, or what its rule says in place of it.
    pub(super) distances: Vec<f32>,
    /// How strange the sample is.
    pub(super) unknown: f64,
}

impl ByDecision {
    /// The rules of the targets, whose prototypes are means in the space of the metric.
    pub(super) fn new(model: &Arc<PriorModel>, graph: &Arc<ClassGraph>, targets: &[Target]) -> Result<Self> {
        let forgotten = graph.forgotten();
        let silent = silent(model, graph);
        let known = KnownClasses::without(&graph.graph, model.statistics(), &silent);
        let posterior = |target: &Target, mean: &[f32], samples: usize| -> Result<Posterior, ModelError> {
            let prior = model.prior_of(target.placed.then_some((&known, target.class)), None)?;
            let mean: Vec<f64> = mean.iter().map(|&value| f64::from(value)).collect();
            model.prior().posterior_of_mean(&prior, &mean, samples)
        };
        let borders = model.decision().and_then(|decision| decision.borders.as_ref());
        let dim = model.metric().dim();
        let rule = |target: &Target| -> Result<(ClassRule, f32)> {
            let border = borders
                .and_then(|borders| borders.of(target.class))
                .filter(|_| target.samples > target.added && !forgotten.contains(&target.class));
            let now = posterior(target, &target.prototype, target.samples)?;
            let prototype = model.rule(&now);
            let border = match border.map(Rule::of_border) {
                Some(border) if target.added > 0 => {
                    let mean = model.statistics().mean(target.class);
                    let before = posterior(target, mean, target.samples - target.added)?;
                    Some(border.moved(&model.rule(&before), &prototype))
                }
                border => border,
            };
            let own = if border.is_some() { 1.0 } else { now.own_share() };
            Ok((ClassRule { prototype, border }, own))
        };
        let rules: Vec<(ClassRule, f32)> = targets.par_iter().map(rule).collect::<Result<_>>()?;
        let place = |(target, (_, own)): (&Target, &(ClassRule, f32))| (target.class, target.placed, *own);
        let targets = targets.iter().zip(&rules).map(place).collect();
        let rules: Vec<ClassRule> = rules.into_iter().map(|(rule, _)| rule).collect();
        let scorer = Scorer::new(dim, &rules);
        Ok(Self { model: Arc::clone(model), graph: Arc::clone(graph), scorer, targets })
    }

    fn decision(&self) -> &Decision {
        // invariant: this is made for models with a decision only.
        self.model.decision().unwrap()
    }

    /// From this score on a sample belongs to none of the classes.
    pub(super) fn threshold(&self) -> f64 {
        f64::from(self.decision().threshold)
    }

    /// Answers for embeddings, `[n, dim]`. An answer does not depend on the other embeddings.
    pub(super) fn answers(&self, embeddings: &[f32]) -> Result<Vec<Answer>> {
        let dim = self.model.metric().dim();
        let rows = self.model.metric().apply(embeddings)?;
        let scores = self.scorer.scores(&rows);
        let answer = |(row, scores): (&[f32], &[f32])| self.answer(row, scores);
        Ok(rows
            .par_chunks_exact(dim)
            .zip(scores.par_chunks_exact(self.scorer.answers()))
            .map(answer)
            .collect())
    }

    fn answer(&self, row: &[f32], scores: &[f32]) -> Answer {
        let (decision, temperature) = (self.decision(), self.model.temperature());
        let length: f64 = row.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
        let distance = |&score: &f32| (length - f64::from(score) / f64::from(temperature)) as f32;
        Answer {
            probabilities: probabilities(scores, decision.scale).0,
            cautious: probabilities(scores, decision.scale * decision.hedge).0,
            distances: scores.iter().map(distance).collect(),
            unknown: unknown_score(decision.unknown, row, scores, decision.scale, temperature),
        }
    }

    /// Probabilities alone, `[n, dim]` to `[n, classes]`.
    pub(super) fn probabilities(&self, embeddings: &[f32]) -> Result<Vec<f32>> {
        let rows = self.model.metric().apply(embeddings)?;
        let mut scores = self.scorer.scores(&rows);
        let scale = self.decision().scale;
        scores.par_chunks_exact_mut(self.scorer.answers()).for_each(|row| {
            let (likely, _) = probabilities(row, scale);
            row.copy_from_slice(&likely);
        });
        Ok(scores)
    }

    /// The place of the best class for each embedding, `[n, dim]` to `[n]`.
    pub(super) fn best(&self, embeddings: &[f32]) -> Result<Vec<u32>> {
        let rows = self.model.metric().apply(embeddings)?;
        let scores = self.scorer.scores(&rows);
        let highest = |row: &[f32]| {
            let mut best = 0;
            for (at, value) in row.iter().enumerate() {
                if *value > row[best] {
                    best = at;
                }
            }
            best as u32
        };
        Ok(scores.par_chunks_exact(self.scorer.answers()).map(highest).collect())
    }

    /// The prototypes, `[classes, dim]`, in the space of the metric.
    pub(super) fn prototypes(&self) -> Vec<f32> {
        self.scorer.prototypes(self.model.temperature())
    }

    /// What the prototype of a class is made of, the largest shares first.
    pub(super) fn explain(&self, class: usize) -> Vec<Share> {
        let (node, placed, own) = self.targets[class];
        let graph = &self.graph.graph;
        let name =
            |node: Node| ClassName { id: graph.id(node).to_owned(), name: graph.name(node).to_owned() };
        let own = f64::from(own);
        let share =
            |class: ClassName, relation, weight: f64| Share { class, relation, weight, share: weight.abs() };
        let mut shares = vec![share(name(node), Relation::Own, own)];
        let all = || ClassName { id: String::new(), name: "the mean of all classes".into() };
        if placed && own < 1.0 {
            let silent = silent(&self.model, &self.graph);
            let known = KnownClasses::without(graph, self.model.statistics(), &silent);
            for part in self.model.prior().shares(&known, node) {
                let weight = (1.0 - own) * f64::from(part.share);
                shares.push(match part.source {
                    Source::Relative(relative, Direction::Above) => {
                        share(name(relative), Relation::Parent, weight)
                    }
                    Source::Relative(relative, Direction::Below) => {
                        share(name(relative), Relation::Child, weight)
                    }
                    Source::Relative(relative, Direction::Beside) => {
                        share(name(relative), Relation::Further, weight)
                    }
                    Source::Text(like) => share(name(like), Relation::Nearest, weight),
                    Source::Samples | Source::GrandMean => share(all(), Relation::All, weight),
                });
            }
        } else if own < 1.0 {
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

/// The classes that are no evidence for their relatives: forgotten ones, and those with too few samples beside others with many.
fn silent(model: &PriorModel, graph: &ClassGraph) -> Vec<Node> {
    let least = model.decision().map_or(0, |decision| decision.evidence);
    let statistics = model.statistics();
    let few = (0..statistics.len() as Node).filter(|&class| statistics.count(class) < least);
    graph.forgotten().into_iter().chain(few).collect()
}
