//! Sums of exponentials of many scores.

use super::loss::exp;
use crate::simd::{Kernel, Simd, Vector};

/// Sums that run beside each other: the result is the same with every instruction set.
const SUMS: usize = 16;

/// The largest of `scores`, and the sum of `exp(scale * (score - largest))` over all of them. Scores that are
/// infinitely low add nothing. Exponentials are good to seven digits, their sum is taken in `f64`.
pub fn sum_of_exponentials(scores: &[f32], scale: f32) -> (f32, f64) {
    Simd::chosen().run(SumOfExponentials { scores, scale })
}

/// Softmax of `scores` times `scale`, in place; returns what [`sum_of_exponentials`] does.
pub fn softmax(scores: &mut [f32], scale: f32) -> (f32, f64) {
    let (largest, sum) = sum_of_exponentials(scores, scale);
    Simd::chosen().run(Softmax { scores, scale, largest, inverse: (1.0 / sum) as f32 });
    (largest, sum)
}

/// What [`softmax`] makes of one of the scores, bit for bit. `largest` and `sum`: of [`sum_of_exponentials`].
pub fn softmax_of(score: f32, scale: f32, (largest, sum): (f32, f64)) -> f32 {
    share(score, scale, largest, (1.0 / sum) as f32)
}

#[inline(always)]
fn share(score: f32, scale: f32, largest: f32, inverse: f32) -> f32 {
    exp(scale * (score - largest)) * inverse
}

struct SumOfExponentials<'a> {
    scores: &'a [f32],
    scale: f32,
}

impl Kernel for SumOfExponentials<'_> {
    type Output = (f32, f64);
    #[inline(always)]
    fn run<V: Vector>(self) -> (f32, f64) {
        let (chunks, rest) = self.scores.as_chunks::<SUMS>();
        let mut most = [f32::NEG_INFINITY; SUMS];
        for chunk in chunks {
            for (most, &score) in most.iter_mut().zip(chunk) {
                *most = if score > *most { score } else { *most };
            }
        }
        let largest = most.iter().chain(rest).copied().fold(f32::NEG_INFINITY, f32::max);
        let mut sums = [0.0_f64; SUMS];
        for chunk in chunks {
            for (sum, &score) in sums.iter_mut().zip(chunk) {
                *sum += f64::from(exp(self.scale * (score - largest)));
            }
        }
        let rest: f64 = rest.iter().map(|&score| f64::from(exp(self.scale * (score - largest)))).sum();
        (largest, sums.iter().sum::<f64>() + rest)
    }
}

struct Softmax<'a> {
    scores: &'a mut [f32],
    scale: f32,
    largest: f32,
    inverse: f32,
}

impl Kernel for Softmax<'_> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector>(self) {
        for score in self.scores {
            *score = share(*score, self.scale, self.largest, self.inverse);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_shares_are_those_of_the_definition_with_every_instruction_set() {
        for n in [1, 5, 16, 100, 1003] {
            let mut scores: Vec<f32> = (0..n).map(|i| ((i * 7919) % 101) as f32 / 3.0 - 20.0).collect();
            scores[0] = f32::MIN;
            let (largest, sum) = sum_of_exponentials(&scores, 0.7);
            assert!(scores.iter().all(|&score| score <= largest) && scores.contains(&largest));
            let exact: f64 =
                scores.iter().map(|&s| libm::exp(0.7 * (f64::from(s) - f64::from(largest)))).sum();
            assert!((sum / exact - 1.0).abs() < 1e-6, "{n}: {sum} {exact}");
            let mut shares = scores.clone();
            softmax(&mut shares, 0.7);
            assert!((shares.iter().map(|&x| f64::from(x)).sum::<f64>() - 1.0).abs() < 1e-5);
            let one_by_one: Vec<f32> = scores.iter().map(|&s| softmax_of(s, 0.7, (largest, sum))).collect();
            assert!(one_by_one == shares);
            for simd in Simd::available() {
                let found = simd.run(SumOfExponentials { scores: &scores, scale: 0.7 });
                assert!(found.1.to_bits() == sum.to_bits() && found.0.to_bits() == largest.to_bits());
                let mut found = scores.clone();
                let inverse = (1.0 / sum) as f32;
                simd.run(Softmax { scores: &mut found, scale: 0.7, largest, inverse });
                assert!(found == shares, "{n}: {}", simd.name());
            }
        }
    }
}
