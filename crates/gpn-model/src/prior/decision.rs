//! How the classes of a fitted catalogue are told apart: by prototypes, by borders between classes with many samples, with
//! probabilities, and "none of these".

use gpn_kernels::linear::Product;
use gpn_taxonomy::Node;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::StateTensor;
use super::borders::Borders;
use super::posterior::Posterior;
use crate::error::{ModelError, Result};

/// Exponentials of what is below add nothing to a sum that is at least one.
const NEGLIGIBLE: f64 = -45.0;

/// What says that a sample belongs to none of the classes; more is stranger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnknownScore {
    /// One less the largest probability.
    #[default]
    Doubt,
    /// Minus the logarithm of the density of all classes together.
    Density,
    /// The same, less that of one class at the mean of all: how little any class explains what is special about the sample.
    Energy,
}

impl UnknownScore {
    /// Every kind of score.
    pub const ALL: [Self; 3] = [Self::Doubt, Self::Density, Self::Energy];
}

/// How a fitted catalogue answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Borders between the classes with many samples.
    pub borders: Option<Borders>,
    /// What scores are multiplied with before the softmax.
    pub scale: f32,
    /// What they are multiplied with besides, where the answer is to be as deep as sure.
    pub hedge: f32,
    /// How strange a sample is.
    pub unknown: UnknownScore,
    /// From this score on a sample belongs to none of the classes.
    pub threshold: f32,
    /// Classes with fewer samples are no evidence for their relatives.
    pub evidence: u32,
}

impl Decision {
    /// The state as tensors.
    pub(super) fn to_tensors(&self) -> Vec<StateTensor> {
        let kind = UnknownScore::ALL.iter().position(|&kind| kind == self.unknown).unwrap_or(0);
        let numbers = vec![self.scale, self.hedge, kind as f32, self.threshold, self.evidence as f32];
        let mut tensors = vec![("decision.numbers", vec![numbers.len()], numbers)];
        if let Some(borders) = &self.borders {
            let classes: Vec<f32> = borders
                .classes()
                .iter()
                .flat_map(|&class| [(class >> 16) as f32, (class & 0xffff) as f32])
                .collect();
            let (count, rank) = (borders.classes().len(), borders.rank());
            tensors.push(("borders.classes", vec![count, 2], classes));
            tensors.push(("borders.weights", vec![count, rank], borders.weights().to_vec()));
            tensors.push(("borders.bias", vec![count], borders.bias().to_vec()));
        }
        tensors
    }

    /// The decision whose tensors these are, for a model of so many classes; `None` where the model has none.
    pub(super) fn from_tensors<'a>(
        dim: usize,
        classes: usize,
        tensor: impl Fn(&str) -> Option<(&'a [usize], &'a [f32])>,
    ) -> Result<Option<Self>> {
        let Some((_, numbers)) = tensor("decision.numbers") else { return Ok(None) };
        let wrong =
            |what, expected: &str, got| ModelError::WrongLength { what, expected: expected.into(), got };
        let &[scale, hedge, kind, threshold, evidence] = numbers else {
            return Err(wrong("decision.numbers", "5", numbers.len()));
        };
        let Some(&unknown) = UnknownScore::ALL.get(kind as usize).filter(|_| kind >= 0.0) else {
            return Err(wrong("decision.numbers", "a known kind of score", kind as usize));
        };
        if !(scale > 0.0 && hedge > 0.0) {
            return Err(wrong("decision.numbers", "positive scales", numbers.len()));
        }
        let borders = match tensor("borders.weights") {
            None => None,
            Some((&[count, rank], weights)) if rank <= dim => {
                let (_, pairs) = tensor("borders.classes").unwrap_or_default();
                let is_half = |&half: &f32| (0.0..65536.0).contains(&half) && half.fract() == 0.0;
                if pairs.len() != 2 * count || !pairs.iter().all(is_half) {
                    return Err(wrong("borders.classes", "two halves of a number each", pairs.len()));
                }
                let of_pair = |pair: &[f32]| (pair[0] as Node) << 16 | pair[1] as Node;
                let ids: Vec<Node> = pairs.chunks_exact(2).map(of_pair).collect();
                if ids.iter().any(|&class| class as usize >= classes) {
                    return Err(wrong("borders.classes", "classes of the model", ids.len()));
                }
                let (_, bias) = tensor("borders.bias").unwrap_or_default();
                Some(Borders::new(rank, ids, weights.to_vec(), bias.to_vec())?)
            }
            Some((shape, _)) => return Err(wrong("borders.weights", "two dimensions", shape.len())),
        };
        let evidence = evidence.clamp(0.0, 16_777_216.0) as u32;
        Ok(Some(Self { borders, scale, hedge, unknown, threshold, evidence }))
    }
}

/// A linear rule: the score of a sample `x` in the space of the metric is `weights . x + bias`.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// `[dim]`
    pub weights: Vec<f32>,
    /// Added.
    pub bias: f32,
}

impl Rule {
    /// The rule of a prototype: `-temperature * (|x - p|^2 - spread)` without the part that all classes share.
    pub fn of_posterior(posterior: &Posterior, temperature: f32, spread: f32) -> Self {
        let length: f64 = posterior.prototype.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
        let off = f64::from(spread) * f64::from(posterior.spread());
        Self {
            weights: posterior.prototype.iter().map(|&x| 2.0 * temperature * x).collect(),
            bias: (f64::from(temperature) * (off - length)) as f32,
        }
    }

    /// The rule of a class with borders, over the first `rank` values.
    pub fn of_border((weights, bias): (&[f32], f32)) -> Self {
        Self { weights: weights.to_vec(), bias }
    }

    /// This rule, moved as the rule of a prototype moves from `before` to `after`.
    #[must_use]
    pub fn moved(mut self, before: &Self, after: &Self) -> Self {
        for ((own, before), after) in self.weights.iter_mut().zip(&before.weights).zip(&after.weights) {
            *own += after - before;
        }
        self.bias += after.bias - before.bias;
        self
    }
}

/// How a class is told from others.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassRule {
    /// By its prototype, from all others.
    pub prototype: Rule,
    /// By its borders, from the other classes that have borders.
    pub border: Option<Rule>,
}

/// Rules of the same length, ready for many samples at once.
#[derive(Clone, Debug)]
struct Rules {
    /// Values of a sample that are looked at.
    len: usize,
    /// `[len, rules]`
    turned: Vec<f32>,
    bias: Vec<f32>,
}

impl Rules {
    fn new(len: usize, rules: &[&Rule]) -> Self {
        let mut turned = vec![0.0; len * rules.len()];
        for (at, rule) in rules.iter().enumerate() {
            for (d, &weight) in rule.weights.iter().enumerate() {
                turned[d * rules.len() + at] = weight;
            }
        }
        Self { len, turned, bias: rules.iter().map(|rule| rule.bias).collect() }
    }

    /// Scores of samples of `dim` values, `[n, dim]` to `[n, rules]`.
    fn scores(&self, rows: &[f32], dim: usize) -> Vec<f32> {
        let columns = self.bias.len();
        let mut scores = vec![0.0; rows.len() / dim * columns];
        Product { a: rows, a_row: dim, a_step: 1, b: &self.turned, steps: self.len, columns }
            .run(&mut scores);
        for row in scores.chunks_exact_mut(columns.max(1)) {
            row.iter_mut().zip(&self.bias).for_each(|(score, bias)| *score += bias);
        }
        scores
    }
}

/// The rules of all answers, ready for many samples at once.
///
/// Prototypes say how likely a sample is of each class. What they give to the classes with borders together is divided among these
/// by their borders: these were fitted to each other alone, and say nothing of the other classes.
#[derive(Clone, Debug)]
pub struct Scorer {
    dim: usize,
    prototypes: Rules,
    borders: Rules,
    /// The answers that have borders, ascending.
    bordering: Vec<usize>,
}

impl Scorer {
    /// For samples of `dim` values; borders look at the first values, each at as many.
    pub fn new(dim: usize, rules: &[ClassRule]) -> Self {
        let prototypes: Vec<&Rule> = rules.iter().map(|rule| &rule.prototype).collect();
        let borders: Vec<&Rule> = rules.iter().filter_map(|rule| rule.border.as_ref()).collect();
        let rank = borders.first().map_or(0, |border| border.weights.len());
        Self {
            dim,
            prototypes: Rules::new(dim, &prototypes),
            borders: Rules::new(rank, &borders),
            bordering: (0..rules.len()).filter(|&answer| rules[answer].border.is_some()).collect(),
        }
    }

    /// Number of answers.
    pub fn answers(&self) -> usize {
        self.prototypes.bias.len()
    }

    /// The prototypes, `[answers, dim]`: half the weights of their rules divided by `temperature`.
    pub fn prototypes(&self, temperature: f32) -> Vec<f32> {
        let (answers, turned) = (self.answers(), &self.prototypes.turned);
        let of =
            |answer: usize| (0..self.dim).map(move |d| turned[d * answers + answer] / (2.0 * temperature));
        (0..answers).flat_map(of).collect()
    }

    /// The scores of samples in the space of the metric, `[n, dim]` to `[n, answers]`. The scores of a sample do not depend on
    /// the others. O(n * dim * answers).
    pub fn scores(&self, rows: &[f32]) -> Vec<f32> {
        let mut scores = self.prototypes.scores(rows, self.dim);
        if self.bordering.len() > 1 {
            let borders = self.borders.scores(rows, self.dim);
            scores
                .par_chunks_exact_mut(self.answers())
                .zip(borders.par_chunks_exact(self.bordering.len()))
                .for_each(|(scores, borders)| divide(scores, &self.bordering, borders));
        }
        scores
    }
}

/// Divides what the scores give to the `bordering` answers together as their `borders` say.
fn divide(scores: &mut [f32], bordering: &[usize], borders: &[f32]) {
    let together = log_sum(bordering.iter().map(|&answer| scores[answer]));
    let of_borders = log_sum(borders.iter().copied());
    for (&answer, &border) in bordering.iter().zip(borders) {
        scores[answer] = (together + f64::from(border) - of_borders) as f32;
    }
}

/// The logarithm of the sum of exponentials.
fn log_sum(scores: impl Iterator<Item = f32> + Clone) -> f64 {
    let highest = f64::from(scores.clone().fold(f32::NEG_INFINITY, f32::max));
    highest + libm::log(scores.map(|score| libm::exp(f64::from(score) - highest)).sum())
}

/// Softmax of scores times `scale`, and the logarithm of the sum before it is divided.
pub fn probabilities(scores: &[f32], scale: f32) -> (Vec<f32>, f64) {
    let highest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut total = 0.0;
    let mut values: Vec<f32> = scores
        .iter()
        .map(|&score| {
            let value = libm::exp(f64::from(scale) * (f64::from(score) - f64::from(highest)));
            total += value;
            value as f32
        })
        .collect();
    for value in &mut values {
        *value = (f64::from(*value) / total) as f32;
    }
    (values, libm::log(total) + f64::from(scale) * f64::from(highest))
}

/// How strange a sample is: `row` in the space of the metric, its scores, and the temperature of the rules.
pub fn unknown_score(kind: UnknownScore, row: &[f32], scores: &[f32], scale: f32, temperature: f32) -> f64 {
    let (probabilities, log_sum) = probabilities(scores, scale);
    match kind {
        UnknownScore::Doubt => 1.0 - f64::from(probabilities.iter().copied().fold(0.0, f32::max)),
        UnknownScore::Energy => -log_sum,
        UnknownScore::Density => {
            let length: f64 = row.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
            f64::from(scale) * f64::from(temperature) * length - log_sum
        }
    }
}

/// What scores are multiplied with for the least log loss: `scores` are `[n, answers]`, a right answer each. The loss is convex
/// in the multiplier; its logarithm is searched by golden section.
pub fn best_scale(scores: &[f32], answers: usize, right: &[u32]) -> f32 {
    if right.is_empty() || answers < 2 {
        return 1.0;
    }
    let loss = |log: f64| -> f64 {
        let scale = libm::exp(log);
        let of_row = |(row, &right): (&[f32], &u32)| {
            let highest = f64::from(row.iter().copied().fold(f32::NEG_INFINITY, f32::max));
            let off = row.iter().map(|&score| scale * (f64::from(score) - highest));
            let total: f64 = off.filter(|&off| off > NEGLIGIBLE).map(libm::exp).sum();
            libm::log(total) - scale * (f64::from(row[right as usize]) - highest)
        };
        let losses: Vec<f64> = scores.par_chunks_exact(answers).zip(right).map(of_row).collect();
        losses.iter().sum()
    };
    let golden = 0.618_033_988_749_895;
    let (mut low, mut high) = (-7.0_f64, 7.0_f64);
    let mut inner = (high - golden * (high - low), low + golden * (high - low));
    let mut losses = (loss(inner.0), loss(inner.1));
    for _ in 0..16 {
        if losses.0 < losses.1 {
            high = inner.1;
            inner = (high - golden * (high - low), inner.0);
            losses = (loss(inner.0), losses.0);
        } else {
            low = inner.0;
            inner = (inner.1, low + golden * (high - low));
            losses = (losses.1, loss(inner.1));
        }
    }
    libm::exp(f64::midpoint(low, high)) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alone(prototype: Rule) -> ClassRule {
        ClassRule { prototype, border: None }
    }

    #[test]
    fn the_rule_of_a_posterior_ranks_as_distances_do() {
        let posterior = |x: f32, y: f32, v: f32| Posterior {
            prototype: vec![x, y],
            variance: vec![v, v],
            own: vec![1.0, 1.0],
            shots: 1,
        };
        let all = [posterior(0.0, 1.0, 0.0), posterior(2.0, 0.5, 0.3), posterior(-1.0, -1.0, 0.1)];
        let rules: Vec<ClassRule> = all.iter().map(|p| alone(Rule::of_posterior(p, 0.8, 0.5))).collect();
        let scores = Scorer::new(2, &rules).scores(&[0.4, 0.2, 1.0, 1.0]);
        for (row, query) in scores.chunks_exact(3).zip([[0.4_f32, 0.2], [1.0, 1.0]]) {
            let shared = 0.8 * (query[0] * query[0] + query[1] * query[1]);
            for (score, posterior) in row.iter().zip(&all) {
                let p = &posterior.prototype;
                let distance = (p[0] - query[0]).powi(2) + (p[1] - query[1]).powi(2);
                let expected = shared - 0.8 * (distance - 0.5 * posterior.spread());
                assert!((score - expected).abs() < 1e-5, "{score} {expected}");
            }
        }
    }

    #[test]
    fn a_sample_scores_the_same_alone_and_among_others() {
        let rule = |seed: usize, len: usize| Rule {
            weights: (0..len).map(|d| ((d * 31 + seed * 7) % 19) as f32 / 9.0 - 1.0).collect(),
            bias: seed as f32 / 9.0,
        };
        let of_class = |class: usize| ClassRule {
            prototype: rule(class, 37),
            border: (class % 3 != 1).then(|| rule(class + 5, 11)),
        };
        let scorer = Scorer::new(37, &(0..21).map(of_class).collect::<Vec<_>>());
        let rows: Vec<f32> = (0..37 * 90).map(|i| ((i * 13) % 29) as f32 / 14.0 - 1.0).collect();
        let together = scorer.scores(&rows);
        let alone: Vec<f32> = rows.chunks_exact(37).flat_map(|row| scorer.scores(row)).collect();
        assert!(together == alone);
    }

    #[test]
    fn borders_divide_what_prototypes_give_to_their_classes() {
        let rule = |weight: f32, bias: f32| Rule { weights: vec![weight], bias };
        let of_class = |prototype, border| ClassRule { prototype, border };
        let rules = [
            of_class(rule(1.0, 0.3), Some(rule(-4.0, 0.0))),
            of_class(rule(0.5, 0.0), None),
            of_class(rule(-1.0, 0.1), Some(rule(2.0, 1.0))),
        ];
        let by_prototypes: Vec<ClassRule> = rules.iter().map(|rule| alone(rule.prototype.clone())).collect();
        let before = Scorer::new(1, &by_prototypes).scores(&[0.7]);
        let after = Scorer::new(1, &rules).scores(&[0.7]);
        assert_eq!(before[1].to_bits(), after[1].to_bits());
        let (before, _) = probabilities(&before, 1.0);
        let (after, _) = probabilities(&after, 1.0);
        assert!((before[0] + before[2] - after[0] - after[2]).abs() < 1e-6);
        // The borders say 2 * 0.7 + 1 against -4 * 0.7.
        assert!((f64::from(after[2] / after[0]) - libm::exp(2.4 + 2.8)).abs() < 1e-2, "{after:?}");
    }

    #[test]
    fn the_best_scale_is_the_one_that_made_the_answers() {
        // Two answers; the first is right with probability 1 / (1 + e^-s) for a score of s / 3.
        let (mut scores, mut right) = (Vec::new(), Vec::new());
        for i in 0..4000 {
            let s = (i % 40) as f32 / 10.0;
            let chance = 1.0 / (1.0 + (-s).exp());
            scores.extend([s / 3.0, 0.0]);
            right.push(u32::from((i * 7919 % 4000) as f32 / 4000.0 >= chance));
        }
        let scale = best_scale(&scores, 2, &right);
        assert!((scale - 3.0).abs() < 0.3, "{scale}");
        assert!((best_scale(&[], 2, &[]) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn probabilities_add_up_and_strange_samples_score_higher() {
        let rules = [[2.0, 0.0], [-2.0, 0.0]].map(|w| alone(Rule { weights: w.to_vec(), bias: -1.0 }));
        let scorer = Scorer::new(2, &rules);
        for kind in UnknownScore::ALL {
            let strangeness = |row: [f32; 2]| unknown_score(kind, &row, &scorer.scores(&row), 1.0, 1.0);
            let (near, far) = (strangeness([1.0, 0.0]), strangeness([0.0, 3.0]));
            assert!(far > near, "{kind:?}: {near} {far}");
        }
        let (p, _) = probabilities(&[1.0, 2.0, -900.0], 2.0);
        assert!((p.iter().sum::<f32>() - 1.0).abs() < 1e-6 && p[1] > p[0]);
    }
}
