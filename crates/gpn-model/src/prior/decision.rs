//! How a fitted catalogue answers: with probabilities, and "none of these".

use gpn_kernels::linear::{softmax, sum_of_exponentials};
use gpn_taxonomy::Node;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::StateTensor;
use super::borders::Borders;
use crate::error::{ModelError, Result};

/// Scores that decide on a scale, about.
const SCORES: usize = 4_000_000;

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

/// Softmax of scores times `scale`, and the logarithm of the sum before it is divided.
pub fn probabilities(scores: &[f32], scale: f32) -> (Vec<f32>, f64) {
    let mut values = scores.to_vec();
    let (largest, sum) = softmax(&mut values, scale);
    (values, libm::log(sum) + f64::from(scale) * f64::from(largest))
}

/// How strange a sample is: its squared length in the space of the metric times the temperature of the rules, and its scores.
pub fn unknown_score(kind: UnknownScore, length: f64, scores: &[f32], scale: f32) -> f64 {
    let (largest, sum) = sum_of_exponentials(scores, scale);
    let log_sum = libm::log(sum) + f64::from(scale) * f64::from(largest);
    match kind {
        UnknownScore::Doubt => 1.0 - 1.0 / sum,
        UnknownScore::Energy => -log_sum,
        UnknownScore::Density => f64::from(scale) * length - log_sum,
    }
}

/// What scores are multiplied with for the least log loss: `scores` are `[n, answers]`, a right answer each. The loss is convex
/// in the multiplier; its logarithm is searched by golden section. Of very many samples an even part decides.
pub fn best_scale(scores: &[f32], answers: usize, right: &[u32]) -> f32 {
    if right.is_empty() || answers < 2 {
        return 1.0;
    }
    let step = (scores.len() / SCORES).max(1);
    let rows: Vec<(&[f32], u32)> =
        scores.chunks_exact(answers).zip(right.iter().copied()).step_by(step).collect();
    let loss = |log: f64| -> f64 {
        let scale = libm::exp(log);
        let of_row = |&(row, right): &(&[f32], u32)| log_loss(row, right as usize, scale as f32);
        let losses: Vec<f64> = rows.par_iter().map(of_row).collect();
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

/// The log loss of one sample whose scores are multiplied with `scale`.
pub fn log_loss(scores: &[f32], right: usize, scale: f32) -> f64 {
    let (largest, sum) = sum_of_exponentials(scores, scale);
    libm::log(sum) - f64::from(scale) * (f64::from(scores[right]) - f64::from(largest))
}

#[cfg(test)]
mod tests {
    use super::super::scorer::{ClassRule, Rule, Scorer};
    use super::*;

    fn alone(prototype: Rule) -> ClassRule {
        ClassRule { prototype, border: None }
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
            let length = |row: [f32; 2]| f64::from(row[0] * row[0] + row[1] * row[1]);
            let strangeness = |row: [f32; 2]| unknown_score(kind, length(row), &scorer.scores(&row), 1.0);
            let (near, far) = (strangeness([1.0, 0.0]), strangeness([0.0, 3.0]));
            assert!(far > near, "{kind:?}: {near} {far}");
        }
        let (p, _) = probabilities(&[1.0, 2.0, -900.0], 2.0);
        assert!((p.iter().sum::<f32>() - 1.0).abs() < 1e-6 && p[1] > p[0]);
    }
}
