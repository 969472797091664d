//! Borders between classes that have many samples: logistic regression that begins at the prototypes.
//!
//! A mean says where a class is; with many samples the borders to its neighbours can be fitted, too. The regression starts from the
//! nearest prototype, written as a linear rule, and is held to it by a ridge: without evidence nothing changes.

use gpn_taxonomy::Node;
use rayon::prelude::*;

use super::limited_memory_bfgs::{Next, minimise};
use crate::error::{ModelError, Result};
use crate::matmul::{gt_x, x_wt};

/// Steps of the search for the best borders, at most.
const STEPS: usize = 80;
/// Rows that one task compares.
const ROWS: usize = 64;

/// Linear rules of some classes: the score of a class is `weights . x + bias`, where `x` has the first `rank` values of a sample in
/// the space of the metric. Scores are logarithms of likelihoods up to a constant of the sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Borders {
    rank: usize,
    /// The classes that have a rule, ascending.
    classes: Vec<Node>,
    /// `[classes, rank]`
    weights: Vec<f32>,
    /// `[classes]`
    bias: Vec<f32>,
}

impl Borders {
    /// The rules of the nearest prototype: `-temperature * |x - p|^2` without the part that all classes share. `prototypes` is
    /// `[classes, dim]`, of which the first `rank` values are used.
    pub fn of_prototypes(
        classes: Vec<Node>,
        prototypes: &[f32],
        dim: usize,
        rank: usize,
        temperature: f32,
    ) -> Result<Self> {
        if rank == 0 || rank > dim || prototypes.len() != classes.len() * dim {
            let expected = format!("{} classes x {dim}, of which {rank} are used", classes.len());
            return Err(ModelError::WrongLength { what: "prototypes", expected, got: prototypes.len() });
        }
        let used = || prototypes.chunks_exact(dim).map(|row| &row[..rank]);
        let weights = used().flatten().map(|&x| 2.0 * temperature * x).collect();
        let length = |row: &[f32]| row.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>();
        let bias = used().map(|row| (-f64::from(temperature) * length(row)) as f32).collect();
        Ok(Self { rank, classes, weights, bias })
    }

    /// Borders from their parts, as a file holds them.
    pub fn new(rank: usize, classes: Vec<Node>, weights: Vec<f32>, bias: Vec<f32>) -> Result<Self> {
        let is_ordered = classes.is_sorted_by(|a, b| a < b);
        if rank == 0 || weights.len() != classes.len() * rank || bias.len() != classes.len() || !is_ordered {
            let expected = format!("{} classes x {rank}, in order", classes.len());
            return Err(ModelError::WrongLength { what: "borders", expected, got: weights.len() });
        }
        Ok(Self { rank, classes, weights, bias })
    }

    /// Values of a sample that are looked at.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The classes that have a rule, ascending.
    pub fn classes(&self) -> &[Node] {
        &self.classes
    }

    /// The weights of all rules, `[classes, rank]`.
    pub fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// The bias of each rule.
    pub fn bias(&self) -> &[f32] {
        &self.bias
    }

    /// Weights and bias of a class; `None` where it has no rule.
    pub fn of(&self, class: Node) -> Option<(&[f32], f32)> {
        let at = self.classes.binary_search(&class).ok()?;
        Some((&self.weights[at * self.rank..][..self.rank], self.bias[at]))
    }

    /// Fits the borders to samples of their classes: `rows: [n, dim]` in the space of the metric, a label each. `ridge` holds
    /// weights to where they begin, as strongly as so many samples would. `is_stopped` ends the search early.
    ///
    /// O(n * classes * rank) a step. The result depends neither on the number of threads nor on the processor.
    pub fn learn(
        &self,
        rows: &[f32],
        dim: usize,
        labels: &[Node],
        ridge: f64,
        is_stopped: &(dyn Fn() -> bool + Sync),
    ) -> Result<Self> {
        let (rank, classes) = (self.rank, self.classes.len());
        let used: Vec<f32> = rows.chunks_exact(dim).flat_map(|row| &row[..rank]).copied().collect();
        let mut right = Vec::with_capacity(labels.len());
        for (sample, &label) in labels.iter().enumerate() {
            let Ok(at) = self.classes.binary_search(&label) else {
                return Err(ModelError::LabelOutOfRange { sample, label: label as usize, classes });
            };
            right.push(at);
        }
        let start: Vec<f64> = self.weights.iter().chain(&self.bias).map(|&x| f64::from(x)).collect();
        let mut point = start.clone();
        let mut grad_weights = vec![0.0_f32; classes * rank];
        let loss = |point: &[f64], gradient: &mut [f64]| {
            let rounded: Vec<f32> = point.iter().map(|&x| x as f32).collect();
            let (weights, bias) = rounded.split_at(classes * rank);
            let mut scores = x_wt(&used, weights, rank, classes);
            // Scores become the gradient of the loss by them; each part sums its own losses.
            let losses: Vec<f64> = scores
                .par_chunks_mut(ROWS * classes)
                .zip(right.par_chunks(ROWS))
                .map(|(scores, right)| {
                    let rows = scores.chunks_exact_mut(classes).zip(right);
                    rows.map(|(scores, &right)| cross_entropy(scores, bias, right)).sum()
                })
                .collect();
            gt_x(&scores, &used, classes, rank, &mut grad_weights);
            let mut grad_bias = vec![0.0_f64; classes];
            for row in scores.chunks_exact(classes) {
                grad_bias.iter_mut().zip(row).for_each(|(sum, &g)| *sum += f64::from(g));
            }
            let of_samples = grad_weights.iter().map(|&g| f64::from(g)).chain(grad_bias);
            let mut held = 0.0;
            for (((gradient, g), x), start) in gradient.iter_mut().zip(of_samples).zip(point).zip(&start) {
                *gradient = g + ridge * (x - start);
                held += (x - start) * (x - start);
            }
            losses.iter().sum::<f64>() + 0.5 * ridge * held
        };
        minimise(&mut point, STEPS, loss, || if is_stopped() { Next::Stop } else { Next::Step });
        let rounded: Vec<f32> = point.iter().map(|&x| x as f32).collect();
        let (weights, bias) = rounded.split_at(classes * rank);
        Ok(Self { rank, classes: self.classes.clone(), weights: weights.to_vec(), bias: bias.to_vec() })
    }
}

/// The loss of one sample; its scores become the gradient by them.
fn cross_entropy(scores: &mut [f32], bias: &[f32], right: usize) -> f64 {
    scores.iter_mut().zip(bias).for_each(|(score, bias)| *score += bias);
    let highest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let own = f64::from(scores[right]) - f64::from(highest);
    let mut total = 0.0;
    for score in &mut *scores {
        *score = libm::expf(*score - highest);
        total += f64::from(*score);
    }
    let inverse = (1.0 / total) as f32;
    for score in &mut *scores {
        *score *= inverse;
    }
    scores[right] -= 1.0;
    libm::log(total) - own
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prior::sample::noise;

    /// Two classes side by side, one much wider than the other along the way between them.
    fn lopsided() -> (Vec<f32>, Vec<Node>) {
        let mut values = noise(7);
        let (mut rows, mut labels) = (Vec::new(), Vec::new());
        for i in 0..200 {
            let label = (i % 2) as Node;
            let x = if i % 2 == 0 { 0.3 * values() } else { 4.0 + 3.0 * values() };
            rows.extend([x, values()]);
            labels.push(3 + 2 * label);
        }
        (rows, labels)
    }

    fn errors(borders: &Borders, rows: &[f32], labels: &[Node]) -> usize {
        let score = |class: usize, row: &[f32]| {
            let weights = &borders.weights()[class * 2..][..2];
            weights[0] * row[0] + weights[1] * row[1] + borders.bias()[class]
        };
        let wrong = |(row, &label): (&[f32], &Node)| {
            let answer = if score(0, row) >= score(1, row) { 3 } else { 5 };
            answer != label
        };
        rows.chunks_exact(2).zip(labels).filter(|&pair| wrong(pair)).count()
    }

    #[test]
    fn borders_move_to_where_classes_part() {
        let (rows, labels) = lopsided();
        let start = Borders::of_prototypes(vec![3, 5], &[0.0, 0.0, 4.0, 0.0], 2, 2, 0.5).unwrap();
        let learned = start.learn(&rows, 2, &labels, 0.01, &|| false).unwrap();
        assert!(errors(&learned, &rows, &labels) < errors(&start, &rows, &labels));
        let held = start.learn(&rows, 2, &labels, 1e9, &|| false).unwrap();
        let moved = held.weights().iter().zip(start.weights()).map(|(a, b)| (a - b).abs());
        assert!(moved.fold(0.0, f32::max) < 1e-4);
    }

    #[test]
    fn threads_do_not_change_a_bit() {
        let (rows, labels) = lopsided();
        let start = Borders::of_prototypes(vec![3, 5], &[0.0, 0.0, 4.0, 0.0], 2, 2, 0.5).unwrap();
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| start.learn(&rows, 2, &labels, 0.1, &|| false).unwrap())
        };
        assert_eq!(with(1), with(3));
    }

    #[test]
    fn the_rule_of_prototypes_is_the_nearest_one() {
        let prototypes = [1.0, 0.0, 0.0, 2.0, -1.0, -1.0];
        let borders = Borders::of_prototypes(vec![0, 1, 2], &prototypes, 2, 2, 0.7).unwrap();
        for query in [[0.9, 0.3], [0.1, 1.0], [-2.0, 0.0]] {
            let distance = |p: &[f32]| (p[0] - query[0]).powi(2) + (p[1] - query[1]).powi(2);
            let shared: f32 = 0.7 * (query[0] * query[0] + query[1] * query[1]);
            for class in 0..3 {
                let (weights, bias) = borders.of(class).unwrap();
                let score = weights[0] * query[0] + weights[1] * query[1] + bias;
                assert!((score - shared + 0.7 * distance(&prototypes[class as usize * 2..])).abs() < 1e-5);
            }
        }
        assert!(borders.of(7).is_none());
    }

    #[test]
    fn labels_without_a_rule_are_refused() {
        let borders = Borders::of_prototypes(vec![0, 1], &[0.0, 1.0], 1, 1, 1.0).unwrap();
        assert!(borders.learn(&[0.5], 1, &[4], 1.0, &|| false).is_err());
        assert!(Borders::of_prototypes(vec![0], &[0.0], 1, 2, 1.0).is_err());
        assert!(Borders::new(1, vec![1, 0], vec![0.0; 2], vec![0.0; 2]).is_err());
    }
}
