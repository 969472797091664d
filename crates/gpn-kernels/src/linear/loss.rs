//! Softmax cross-entropy.

use rayon::prelude::*;

use crate::error::{KernelError, check_len};
use crate::simd::{Kernel, Simd, Vector};

/// With as many logits one thread is done before another is awake.
const ALONE: usize = 1 << 12;

/// Mean cross-entropy of `logits: [n, classes]` with the rows' `labels`, and its gradient
/// (`grad_logits`, overwritten).
pub fn cross_entropy(
    logits: &[f32],
    labels: &[usize],
    classes: usize,
    grad_logits: &mut [f32],
) -> Result<f32, KernelError> {
    let n = labels.len();
    check_len("logits", logits.len(), n * classes)?;
    check_len("grad_logits", grad_logits.len(), n * classes)?;
    if let Some((row, &label)) = labels.iter().enumerate().find(|&(_, &label)| label >= classes) {
        return Err(KernelError::Label { row, label, classes });
    }
    if n == 0 {
        return Ok(0.0);
    }
    let simd = Simd::chosen();
    let mut losses = vec![0.0; n];
    let weight = 1.0 / n as f32;
    if logits.len() <= ALONE {
        let rows = grad_logits.chunks_mut(classes).zip(logits.chunks(classes)).zip(labels);
        for (((grad, logits), &label), loss) in rows.zip(&mut losses) {
            *loss = simd.run(Row { logits, label, grad, weight });
        }
    } else {
        let rows = grad_logits.par_chunks_mut(classes).zip(logits.par_chunks(classes)).with_min_len(8);
        rows.zip(labels).zip(&mut losses).for_each(|(((grad, logits), &label), loss)| {
            *loss = simd.run(Row { logits, label, grad, weight });
        });
    }
    Ok((losses.iter().sum::<f64>() / n as f64) as f32)
}

struct Row<'a> {
    logits: &'a [f32],
    label: usize,
    grad: &'a mut [f32],
    /// Weight of the row in the mean.
    weight: f32,
}

impl Kernel for Row<'_> {
    type Output = f64;
    #[inline(always)]
    fn run<V: Vector>(self) -> f64 {
        let largest = self.logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        for (e, &logit) in self.grad.iter_mut().zip(self.logits) {
            *e = exp(logit - largest);
        }
        let sum: f64 = self.grad.iter().map(|&e| f64::from(e)).sum();
        let factor = (f64::from(self.weight) / sum) as f32;
        for e in self.grad.iter_mut() {
            *e *= factor;
        }
        self.grad[self.label] -= self.weight;
        libm::log(sum) + f64::from(largest) - f64::from(self.logits[self.label])
    }
}

/// e^x to within a few units in the last place, without a call or a branch, so that loops over it become
/// vector instructions. Below -87 it is 0; NaN stays NaN.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    /// Adding it leaves the nearest whole number in the low bits.
    const ROUND: f32 = 12_582_912.0;
    let clamped = if x < -87.0 { -87.0 } else { x };
    let shifted = clamped * std::f32::consts::LOG2_E + ROUND;
    let whole = shifted - ROUND;
    let r = (clamped - whole * LN2_HIGH) - whole * LN2_LOW;
    // Taylor's series on [-ln 2 / 2, ln 2 / 2].
    let tail = 1.0 / 6.0 + r * (1.0 / 24.0 + r * (1.0 / 120.0 + r * (1.0 / 720.0 + r * (1.0 / 5040.0))));
    let series = 1.0 + r + r * r * (0.5 + r * tail);
    let power = f32::from_bits(shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23);
    if x < -87.0 { 0.0 } else { series * power }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "these values are exact")]
mod tests {
    use super::*;

    #[test]
    fn exp_is_close() {
        for i in -8700..=8700 {
            let x = i as f32 / 100.0;
            let expected = f64::from(x).exp();
            assert!((f64::from(exp(x)) / expected - 1.0).abs() < 5e-7, "{x}");
        }
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(-1e9), 0.0);
        assert!(exp(f32::NAN).is_nan());
    }

    #[test]
    fn gradient_is_that_of_the_loss() {
        let logits: Vec<f32> = (0..6).map(|i| (i as f32 * 1.7).sin()).collect();
        let labels = [2, 0];
        let mut grad = vec![0.0; 6];
        cross_entropy(&logits, &labels, 3, &mut grad).unwrap();
        for i in 0..6 {
            let loss = |step: f64| -> f64 {
                let z: Vec<f64> = logits
                    .iter()
                    .enumerate()
                    .map(|(j, &v)| f64::from(v) + if i == j { step } else { 0.0 })
                    .collect();
                let row = |r: usize| {
                    let z = &z[3 * r..3 * r + 3];
                    z.iter().map(|v| v.exp()).sum::<f64>().ln() - z[labels[r]]
                };
                f64::midpoint(row(0), row(1))
            };
            let expected = (loss(1e-5) - loss(-1e-5)) / 2e-5;
            assert!((f64::from(grad[i]) - expected).abs() < 1e-6);
        }
    }

    #[test]
    fn labels_outside_are_refused() {
        let mut grad = [0.0; 2];
        let error = cross_entropy(&[0.0; 2], &[2], 2, &mut grad);
        assert_eq!(error, Err(KernelError::Label { row: 0, label: 2, classes: 2 }));
    }
}
