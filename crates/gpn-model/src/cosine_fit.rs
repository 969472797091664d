//! Fits a cosine classifier to the support set of one task.

use serde::{Deserialize, Serialize};

use crate::cosine_head::{CosineHead, to_unit, unit_backward};
use crate::error::{ModelError, Result};
use crate::head::check_labels;
use crate::vector::{add_scaled, dot};

/// Settings of [`fit_cosine_head`]: gradient descent with momentum over the whole support set.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CosineFit {
    /// Number of steps. Default: 100.
    pub steps: usize,
    /// Learning rate. Default: 0.01.
    pub rate: f32,
    /// Share of the last step's velocity that the next one keeps. Default: 0.9.
    pub momentum: f32,
    /// L2 penalty: this times the weight is added to its gradient. Default: 1e-3.
    pub weight_decay: f32,
    /// What cosines are multiplied with. Default: 10.
    pub scale: f32,
}

impl Default for CosineFit {
    fn default() -> Self {
        Self { steps: 100, rate: 0.01, momentum: 0.9, weight_decay: 1e-3, scale: 10.0 }
    }
}

/// A fresh head, fitted to `support: [n, len]` with its `labels: [n]`, each below `classes`.
///
/// The weights begin at the means of the normalised support samples of their class, so that few steps suffice; a class
/// whose mean has no direction begins at random, from `seed`. Takes `O(steps * n * classes * len)` on the calling
/// thread.
///
/// ```
/// use gpn_model::{CosineFit, fit_cosine_head};
///
/// let head = fit_cosine_head(&[1.0, 0.1, 0.2, 1.0], &[0, 1], 2, CosineFit::default(), 1)?;
/// let logits = head.logits(&[3.0, 0.5])?;
/// assert!(logits[0] > logits[1]);
/// # Ok::<(), gpn_model::ModelError>(())
/// ```
pub fn fit_cosine_head(
    support: &[f32],
    labels: &[usize],
    classes: usize,
    fit: CosineFit,
    seed: u64,
) -> Result<CosineHead> {
    let n = labels.len();
    if support.is_empty() || n == 0 || !support.len().is_multiple_of(n) {
        return Err(ModelError::WrongLength {
            what: "support",
            expected: format!("as many for each of {n} labels, at least one"),
            got: support.len(),
        });
    }
    check_labels(labels, classes)?;
    if !(fit.rate > 0.0 && fit.rate.is_finite()) {
        return Err(ModelError::NotPositive { what: "rate of the cosine classifier's fit", value: fit.rate });
    }
    let len = support.len() / n;
    let mut head = CosineHead::new(len, classes, fit.scale, seed)?;
    let mut units = vec![0.0; support.len()];
    for (row, unit) in support.chunks_exact(len).zip(units.chunks_exact_mut(len)) {
        to_unit(row, unit);
    }
    begin_at_means(&units, labels, head.weight_mut(), len);
    let mut descent = Descent {
        fit,
        units: &units,
        labels,
        len,
        weight_units: vec![0.0; classes * len],
        lengths: vec![0.0; classes],
        shares: vec![0.0; classes],
        grads: vec![0.0; classes * len],
        velocity: vec![0.0; classes * len],
    };
    for _ in 0..fit.steps {
        descent.step(head.weight_mut());
    }
    Ok(head)
}

/// Gives each class that has one the direction of its samples' mean.
fn begin_at_means(units: &[f32], labels: &[usize], weight: &mut [f32], len: usize) {
    let mut sums = vec![0.0; weight.len()];
    for (unit, &label) in units.chunks_exact(len).zip(labels) {
        add_scaled(&mut sums[label * len..][..len], 1.0, unit);
    }
    let mut direction = vec![0.0; len];
    for (sum, weight) in sums.chunks_exact(len).zip(weight.chunks_exact_mut(len)) {
        to_unit(sum, &mut direction);
        if direction.iter().any(|&value| value != 0.0) {
            weight.copy_from_slice(&direction);
        }
    }
}

/// The fit between two steps. No step allocates.
struct Descent<'a> {
    fit: CosineFit,
    /// Normalised support samples, `[n, len]`.
    units: &'a [f32],
    labels: &'a [usize],
    len: usize,
    /// Normalised weights, `[classes, len]`, and the lengths they had.
    weight_units: Vec<f32>,
    lengths: Vec<f32>,
    /// Probabilities of the classes for one sample.
    shares: Vec<f32>,
    grads: Vec<f32>,
    velocity: Vec<f32>,
}

impl Descent<'_> {
    fn step(&mut self, weight: &mut [f32]) {
        let len = self.len;
        let rows = weight.chunks_exact(len).zip(self.weight_units.chunks_exact_mut(len));
        for ((row, unit), length) in rows.zip(&mut self.lengths) {
            *length = to_unit(row, unit);
        }
        self.grads.fill(0.0);
        let factor = self.fit.scale / self.labels.len() as f32;
        for (unit, &label) in self.units.chunks_exact(len).zip(self.labels) {
            for (share, weight) in self.shares.iter_mut().zip(self.weight_units.chunks_exact(len)) {
                *share = self.fit.scale * dot(unit, weight);
            }
            softmax(&mut self.shares);
            self.shares[label] -= 1.0;
            for (grad, share) in self.grads.chunks_exact_mut(len).zip(&self.shares) {
                add_scaled(grad, factor * share, unit);
            }
        }
        let units = self.weight_units.chunks_exact(len);
        for ((grad, unit), &length) in self.grads.chunks_exact_mut(len).zip(units).zip(&self.lengths) {
            unit_backward(unit, length, grad);
        }
        let CosineFit { rate, momentum, weight_decay, .. } = self.fit;
        for ((weight, velocity), grad) in weight.iter_mut().zip(&mut self.velocity).zip(&self.grads) {
            *velocity = momentum * *velocity + grad + weight_decay * *weight;
            *weight -= rate * *velocity;
        }
    }
}

fn softmax(values: &mut [f32]) {
    let highest = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for value in &mut *values {
        *value = libm::expf(*value - highest);
        sum += *value;
    }
    for value in values {
        *value /= sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trainable::Trainable;

    /// Share of samples whose highest logit is that of their label.
    fn accuracy(head: &CosineHead, samples: &[f32], labels: &[usize]) -> f32 {
        let logits = head.logits(samples).unwrap();
        let right = logits.chunks(head.classes()).zip(labels).filter(|(logits, label)| {
            (0..logits.len()).all(|class| class == **label || logits[class] < logits[**label])
        });
        right.count() as f32 / labels.len() as f32
    }

    #[test]
    fn separable_support_sets_are_learned_whole() {
        // In the plane, by angle: class 0 reaches far into the half that is nearer to the mean of class 1.
        let angles = [0.0_f32, 0.05, 0.1, 1.4, 1.55, 1.6, 1.65, 1.7];
        let labels = [0, 0, 0, 0, 1, 1, 1, 1];
        let support: Vec<f32> = angles.iter().flat_map(|angle| [angle.cos(), angle.sin()]).collect();
        let begin = fit_cosine_head(&support, &labels, 2, CosineFit { steps: 0, ..CosineFit::default() }, 1);
        assert!(accuracy(&begin.unwrap(), &support, &labels) < 1.0);
        let fit = CosineFit { steps: 1000, rate: 0.1, weight_decay: 0.0, ..CosineFit::default() };
        let head = fit_cosine_head(&support, &labels, 2, fit, 1).unwrap();
        assert!((accuracy(&head, &support, &labels) - 1.0).abs() < f32::EPSILON);

        // Five classes around five directions of 16, with the defaults.
        let labels: Vec<usize> = (0..25).map(|sample| sample % 5).collect();
        let value = |i: usize| ((i * 37 + i * i * 11) % 19) as f32 / 19.0 - 0.5;
        let support: Vec<f32> =
            (0..25 * 16).map(|i| value(i) + if i % 16 == 3 * labels[i / 16] { 1.5 } else { 0.0 }).collect();
        let head = fit_cosine_head(&support, &labels, 5, CosineFit::default(), 1).unwrap();
        assert!((accuracy(&head, &support, &labels) - 1.0).abs() < f32::EPSILON);
    }

    #[test]
    fn steps_lower_the_loss_that_the_head_computes() {
        let support: Vec<f32> = (0..6 * 4).map(|i| ((i * 5) % 13) as f32 - 6.0).collect();
        let labels = [0, 1, 2, 0, 1, 2];
        let loss = |steps| {
            let fit = CosineFit { steps, ..CosineFit::default() };
            fit_cosine_head(&support, &labels, 3, fit, 1)
                .unwrap()
                .forward_backward(&support, &labels)
                .unwrap()
                .loss
        };
        assert!(loss(0) > loss(20) && loss(20) > loss(100), "{} {} {}", loss(0), loss(20), loss(100));
    }

    #[test]
    fn a_step_is_that_of_the_heads_gradient() {
        let support: Vec<f32> = (0..6 * 4).map(|i| ((i * 5) % 13) as f32 - 6.0).collect();
        let labels = [0, 1, 2, 0, 1, 2];
        let weights = |steps| {
            let fit = CosineFit { steps, weight_decay: 0.0, ..CosineFit::default() };
            fit_cosine_head(&support, &labels, 3, fit, 1).unwrap()
        };
        let (mut before, mut after) = (weights(0), weights(1));
        before.forward_backward(&support, &labels).unwrap();
        let gradient: Vec<f32> = before.gradients().flat_map(|tensor| tensor.values.to_vec()).collect();
        let moved = before.weight_mut().iter().zip(after.weight_mut()).map(|(a, b)| (*a - *b) / 0.01);
        for (moved, gradient) in moved.zip(gradient) {
            assert!((moved - gradient).abs() < 1e-4, "{moved} {gradient}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_bits_and_bad_input_is_refused() {
        // Class 1 has no sample, and the samples of class 2 cancel.
        let support = [1.0, 0.0, 0.0, 1.0, 0.0, -1.0];
        let fit = |seed| fit_cosine_head(&support, &[0, 2, 2], 3, CosineFit::default(), seed).unwrap();
        assert_eq!(fit(1).parameters(), fit(1).parameters());
        assert_ne!(fit(1).parameters(), fit(2).parameters());
        assert!(fit(1).parameters().iter().all(|tensor| tensor.values.iter().all(|v| v.is_finite())));
        let zeros = fit_cosine_head(&[0.0; 4], &[0, 1], 2, CosineFit::default(), 1).unwrap();
        assert!(zeros.logits(&[1.0, 2.0]).unwrap().iter().all(|logit| logit.is_finite()));

        let refused = |support: &[f32], labels: &[usize], fit| fit_cosine_head(support, labels, 2, fit, 1);
        assert!(refused(&[], &[], CosineFit::default()).is_err());
        assert!(refused(&[0.0; 3], &[0, 1], CosineFit::default()).is_err());
        assert!(refused(&[0.0; 2], &[0, 2], CosineFit::default()).is_err());
        assert!(refused(&[0.0; 2], &[0, 1], CosineFit { rate: -1.0, ..CosineFit::default() }).is_err());
    }
}
