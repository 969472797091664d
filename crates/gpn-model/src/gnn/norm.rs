//! Batch norm with the leaky ReLU that follows it.

use super::graphs::Repeats;

/// Weight of the newest batch in the running statistics.
const MOMENTUM: f64 = 0.1;
const EPSILON: f64 = 1e-5;
/// Slope of the leaky ReLU below zero.
const LEAK: f32 = 0.01;
/// What a norm keeps between batches.
pub(super) const STATISTICS: [&str; 2] = ["running_mean", "running_var"];

/// A batch norm with its statistics: `value -> leaky(scale * value + shift)`, column by column.
pub(super) struct Norm {
    scale: Vec<f32>,
    shift: Vec<f32>,
    mean: Vec<f32>,
    inverse_deviation: Vec<f32>,
}

impl Norm {
    /// With the running statistics. `affine` are the norm's weight and bias.
    pub(super) fn evaluation(affine: &[Vec<f32>], running: &[Vec<f32>]) -> Self {
        let variance = running[1].iter().map(|&variance| f64::from(variance));
        Self::new(affine, running[0].iter().map(|&mean| f64::from(mean)), variance)
    }

    /// With the statistics of `rows`, towards which the running ones move: their variance is the unbiased one, as in
    /// PyTorch.
    pub(super) fn training(
        affine: &[Vec<f32>],
        running: &mut [Vec<f32>],
        rows: &[f32],
        repeats: Repeats,
    ) -> Self {
        let columns = affine[0].len();
        let count = repeats.count(rows.len() / columns) as f64;
        let mut means = vec![0.0; columns];
        for (index, row) in rows.chunks_exact(columns).enumerate() {
            let times = f64::from(repeats.of(index));
            for (sum, &value) in means.iter_mut().zip(row) {
                *sum += times * f64::from(value);
            }
        }
        for sum in &mut means {
            *sum /= count;
        }
        let mut squares = vec![0.0; columns];
        for (index, row) in rows.chunks_exact(columns).enumerate() {
            let times = f64::from(repeats.of(index));
            for ((sum, &value), mean) in squares.iter_mut().zip(row).zip(&means) {
                let difference = f64::from(value) - mean;
                *sum += times * difference * difference;
            }
        }
        for column in 0..columns {
            // A single row has no unbiased variance; it counts as if there were two.
            let unbiased = squares[column] / (count - 1.0).max(1.0);
            for (running, new) in running.iter_mut().zip([means[column], unbiased]) {
                let old = f64::from(running[column]);
                running[column] = ((1.0 - MOMENTUM) * old + MOMENTUM * new) as f32;
            }
        }
        Self::new(affine, means.iter().copied(), squares.iter().map(|sum| sum / count))
    }

    fn new(
        affine: &[Vec<f32>],
        means: impl Iterator<Item = f64>,
        variances: impl Iterator<Item = f64>,
    ) -> Self {
        let columns = affine[0].len();
        let with_room = || Vec::with_capacity(columns);
        let mut norm = Self {
            scale: with_room(),
            shift: with_room(),
            mean: with_room(),
            inverse_deviation: with_room(),
        };
        for (((mean, variance), &weight), &bias) in means.zip(variances).zip(&affine[0]).zip(&affine[1]) {
            let inverse = 1.0 / (variance + EPSILON).sqrt();
            let scale = f64::from(weight) * inverse;
            norm.scale.push(scale as f32);
            norm.shift.push((f64::from(bias) - mean * scale) as f32);
            norm.mean.push(mean as f32);
            norm.inverse_deviation.push(inverse as f32);
        }
        norm
    }

    /// Normalises and activates `rows: [n, columns]` in place.
    pub(super) fn activate(&self, rows: &mut [f32]) {
        for row in rows.chunks_exact_mut(self.scale.len()) {
            for ((value, scale), shift) in row.iter_mut().zip(&self.scale).zip(&self.shift) {
                let normed = *value * scale + shift;
                *value = if normed > 0.0 { normed } else { LEAK * normed };
            }
        }
    }

    /// Turns gradients of the activated rows into gradients of the `raw` ones, in place, for training statistics; the
    /// gradient of a row that stands for several is the sum of theirs. Writes the gradients of weight and bias.
    pub(super) fn backward(
        &self,
        raw: &[f32],
        repeats: Repeats,
        grads: &mut [f32],
        affine_grads: &mut [Vec<f32>],
    ) {
        let columns = self.scale.len();
        let count = repeats.count(raw.len() / columns) as f64;
        // Per column: the sum of the gradients, and of their products with the normalised values.
        let mut sums = vec![[0.0_f64; 2]; columns];
        for (row, grad) in raw.chunks_exact(columns).zip(grads.chunks_exact_mut(columns)) {
            for (column, sums) in sums.iter_mut().enumerate() {
                let value = row[column];
                let slope = if value * self.scale[column] + self.shift[column] > 0.0 { 1.0 } else { LEAK };
                grad[column] *= slope;
                let normal = (value - self.mean[column]) * self.inverse_deviation[column];
                sums[0] += f64::from(grad[column]);
                sums[1] += f64::from(grad[column] * normal);
            }
        }
        let means: Vec<[f32; 2]> = sums.iter().map(|sums| sums.map(|sum| (sum / count) as f32)).collect();
        for (column, sums) in sums.iter().enumerate() {
            affine_grads[0][column] = sums[1] as f32;
            affine_grads[1][column] = sums[0] as f32;
        }
        let rows = raw.chunks_exact(columns).zip(grads.chunks_exact_mut(columns));
        for (index, (row, grad)) in rows.enumerate() {
            let times = repeats.of(index);
            for (column, means) in means.iter().enumerate() {
                let normal = (row[column] - self.mean[column]) * self.inverse_deviation[column];
                let common = means[0] + normal * means[1];
                grad[column] = self.scale[column] * (grad[column] - times * common);
            }
        }
    }
}
