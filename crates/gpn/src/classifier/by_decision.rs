//! Candidates of a fitted catalogue: prototypes, and borders between classes with many samples.

use std::sync::Arc;

use gpn_model::ModelError;
use gpn_model::prior::{
    ClassRule, Decision, Direction, KnownClasses, Posterior, PriorModel, Rule, Scorer, Source, softmax,
    softmax_of, sum_of_exponentials, unknown_score,
};
use gpn_taxonomy::Node;
use rayon::prelude::*;

use super::candidates::{ClassName, Judged, Ranked, Relation, Share, Target};
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

/// What is wanted of an answer.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    /// Likeliest classes.
    pub(super) top: usize,
    /// Whether to be cautious, for an answer that is as deep as sure.
    pub(super) cautious: bool,
}

impl ByDecision {
    /// The rules of the targets, whose prototypes are means in the space of the metric.
    pub(super) fn new(model: &Arc<PriorModel>, graph: &Arc<ClassGraph>, targets: &[Target]) -> Result<Self> {
        let forgotten = graph.forgotten();
        let silent = silent(model, graph);
        let known = KnownClasses::without(&graph.graph, model.statistics(), &silent);
        let posterior = |target: &Target, mean: &[f32], samples: usize| -> Result<Posterior, ModelError> {
            let prior = model.prior_of_class(&known, target.class, target.placed)?;
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
    pub(super) fn answers(&self, embeddings: &[f32], wanted: Wanted) -> Result<Vec<Judged>> {
        let rows = self.model.metric().apply(embeddings)?;
        Ok(self.scorer.each(&rows, |row, scores| self.answer(row, scores, wanted)))
    }

    fn answer(&self, row: &[f32], scores: &mut [f32], wanted: Wanted) -> Judged {
        let (decision, temperature) = (self.decision(), self.model.temperature());
        let length: f64 = row.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
        let distance = |score: f32| (length - f64::from(score) / f64::from(temperature)) as f32;
        let sum = sum_of_exponentials(scores, decision.scale);
        let ranked = |class: usize| {
            // As in `probabilities`, bit for bit.
            let probability = f64::from(softmax_of(scores[class], decision.scale, sum));
            Ranked { class, probability, distance: distance(scores[class]) }
        };
        Judged {
            ranked: likeliest(scores, wanted.top).into_iter().map(ranked).collect(),
            unknown: Some((
                unknown_score(decision.unknown, f64::from(temperature) * length, scores, decision.scale),
                self.threshold(),
            )),
            cautious: if wanted.cautious {
                softmax(scores, decision.scale * decision.hedge);
                scores.to_vec()
            } else {
                Vec::new()
            },
        }
    }

    /// Probabilities alone, `[n, dim]` to `[n, classes]`.
    pub(super) fn probabilities(&self, embeddings: &[f32]) -> Result<Vec<f32>> {
        let rows = self.model.metric().apply(embeddings)?;
        let mut scores = self.scorer.scores(&rows);
        let scale = self.decision().scale;
        scores.par_chunks_exact_mut(self.scorer.answers()).for_each(|row| {
            softmax(row, scale);
        });
        Ok(scores)
    }

    /// The place of the best class for each embedding, `[n, dim]` to `[n]`.
    pub(super) fn best(&self, embeddings: &[f32]) -> Result<Vec<u32>> {
        let rows = self.model.metric().apply(embeddings)?;
        Ok(self.scorer.each(&rows, |_, scores| likeliest(scores, 1)[0] as u32))
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
        if own < 1.0 {
            let silent = silent(&self.model, &self.graph);
            let known = KnownClasses::without(graph, self.model.statistics(), &silent);
            for part in self.model.shares_of_class(&known, node, placed) {
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

/// The places of the `top` highest scores, the highest first; of equal ones the first.
fn likeliest(scores: &[f32], top: usize) -> Vec<usize> {
    if top == 1 {
        let mut best = 0;
        for (at, &score) in scores.iter().enumerate() {
            if score > scores[best] {
                best = at;
            }
        }
        return vec![best];
    }
    let order = |&a: &usize, &b: &usize| scores[b].total_cmp(&scores[a]).then(a.cmp(&b));
    let mut places: Vec<usize> = (0..scores.len()).collect();
    if top < places.len() {
        places.select_nth_unstable_by(top, order);
        places.truncate(top);
    }
    places.sort_unstable_by(order);
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_likeliest_come_first_and_of_equals_the_first() {
        let scores = [1.0, 5.0, -3.0, 5.0, 4.0];
        assert_eq!(likeliest(&scores, 1), [1]);
        assert_eq!(likeliest(&scores, 3), [1, 3, 4]);
        assert_eq!(likeliest(&scores, 9), [1, 3, 4, 0, 2]);
        assert_eq!(likeliest(&scores, 0), [0; 0]);
    }
}
