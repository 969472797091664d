//! Linear rules of classes, and the scores they give to samples.

use gpn_kernels::linear::{PackedMatrix, sum_of_exponentials};
use rayon::prelude::*;

use super::posterior::Posterior;

/// A linear rule: the score of a sample `x` in the space of the metric is `weights . x + bias`.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// `[dim]`
    pub weights: Vec<f32>,
    /// Added.
    pub bias: f32,
}

impl Rule {
    /// The rule of a prototype: `-temperature * (|x - p|^2 - spread)` without the part that all classes
    /// share.
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
    /// A column for each rule.
    weights: PackedMatrix,
    bias: Vec<f32>,
}

impl Rules {
    fn new(len: usize, rules: &[&Rule]) -> Self {
        assert!(rules.iter().all(|rule| rule.weights.len() == len), "a rule does not have {len} weights");
        let weights: Vec<f32> = rules.iter().flat_map(|rule| &rule.weights).copied().collect();
        Self {
            weights: PackedMatrix::of_columns(&weights, len),
            bias: rules.iter().map(|rule| rule.bias).collect(),
        }
    }

    /// Scores of samples of `dim` values, `[n, dim]` to `[n, rules]`.
    fn scores(&self, rows: &[f32], dim: usize) -> Vec<f32> {
        let mut scores = self.weights.multiply(rows, dim);
        scores.par_chunks_exact_mut(self.bias.len().max(1)).for_each(|scores| self.add_bias(scores));
        scores
    }

    fn add_bias(&self, scores: &mut [f32]) {
        scores.iter_mut().zip(&self.bias).for_each(|(score, bias)| *score += bias);
    }
}

/// The rules of all answers, ready for many samples at once.
///
/// Prototypes say how likely a sample is of each class. What they give to the classes with borders together
/// is divided among these by their borders: these were fitted to each other alone, and say nothing of the
/// other classes.
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
    ///
    /// # Panics
    /// If a prototype's rule does not have `dim` weights, or two borders differ in their number of weights.
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
        let weights = &self.prototypes.weights;
        let of = |answer| (0..self.dim).map(move |d| weights.at(d, answer) / (2.0 * temperature));
        (0..self.answers()).flat_map(of).collect()
    }

    /// The scores of samples in the space of the metric, `[n, dim]` to `[n, answers]`. The scores of a sample
    /// do not depend on the others. O(n * dim * answers).
    pub fn scores(&self, rows: &[f32]) -> Vec<f32> {
        let mut scores = self.by_prototypes(rows);
        self.divide(&mut scores, &self.by_borders(rows));
        scores
    }

    /// The same a few samples at a time, without room for the scores of all: `consume` is given each sample
    /// and its scores, and what it returns is in the order of the samples. Where there are no answers,
    /// `consume` is not called, and nothing is returned.
    pub fn each<T: Send>(&self, rows: &[f32], consume: impl Fn(&[f32], &mut [f32]) -> T + Sync) -> Vec<T> {
        let answers = self.answers();
        self.prototypes.weights.multiply_each(rows, self.dim, |rows, scores| {
            let borders = self.by_borders(rows);
            let rows = rows.chunks_exact(self.dim).zip(scores.chunks_exact_mut(answers)).enumerate();
            let of_row = |(at, (row, scores)): (usize, (&[f32], &mut [f32]))| {
                self.prototypes.add_bias(scores);
                if !borders.is_empty() {
                    divide(
                        scores,
                        &self.bordering,
                        &borders[at * self.bordering.len()..][..self.bordering.len()],
                    );
                }
                consume(row, scores)
            };
            rows.map(of_row).collect()
        })
    }

    /// What prototypes alone say, `[n, dim]` to `[n, answers]`.
    pub fn by_prototypes(&self, rows: &[f32]) -> Vec<f32> {
        self.prototypes.scores(rows, self.dim)
    }

    /// What borders say, `[n, dim]` to `[n, answers with borders]`; empty where fewer than two answers have
    /// borders.
    pub fn by_borders(&self, rows: &[f32]) -> Vec<f32> {
        if self.bordering.len() > 1 { self.borders.scores(rows, self.dim) } else { Vec::new() }
    }

    /// Divides what prototypes give to the answers with borders as [`by_borders`](Self::by_borders) says.
    pub fn divide(&self, scores: &mut [f32], by_borders: &[f32]) {
        if !by_borders.is_empty() {
            scores
                .par_chunks_exact_mut(self.answers())
                .zip(by_borders.par_chunks_exact(self.bordering.len()))
                .for_each(|(scores, borders)| divide(scores, &self.bordering, borders));
        }
    }
}

/// Divides what the scores give to the `bordering` answers together as their `borders` say.
fn divide(scores: &mut [f32], bordering: &[usize], borders: &[f32]) {
    let own: Vec<f32> = bordering.iter().map(|&answer| scores[answer]).collect();
    let shift = log_sum(&own) - log_sum(borders);
    for (&answer, &border) in bordering.iter().zip(borders) {
        scores[answer] = (f64::from(border) + shift) as f32;
    }
}

/// The logarithm of the sum of exponentials.
fn log_sum(scores: &[f32]) -> f64 {
    let (largest, sum) = sum_of_exponentials(scores, 1.0);
    f64::from(largest) + libm::log(sum)
}

#[cfg(test)]
mod tests {
    use super::super::decision::probabilities;
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
}
