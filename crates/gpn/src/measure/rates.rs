//! Shares of right answers, and how sure they are.

/// The 0.975 quantile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// The 95% interval of a share by Wilson's formula, which stays within 0 and 1 and is sound for few samples.
/// `[0, 1]` where there are no samples.
///
/// ```
/// let [low, high] = gpn::measure::wilson(9, 10);
/// assert!((low - 0.596).abs() < 1e-3 && (high - 0.982).abs() < 1e-3);
/// ```
pub fn wilson(right: usize, samples: usize) -> [f64; 2] {
    if samples == 0 {
        return [0.0, 1.0];
    }
    let n = samples as f64;
    let share = right as f64 / n;
    let denominator = 1.0 + Z * Z / n;
    let middle = (share + Z * Z / (2.0 * n)) / denominator;
    let half = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt() / denominator;
    // The formula gives exactly 0 and 1 at the ends, up to rounding.
    let low = if right == 0 { 0.0 } else { (middle - half).max(0.0) };
    let high = if right == samples { 1.0 } else { (middle + half).min(1.0) };
    [low, high]
}

/// A share, 0 of nothing.
pub(super) fn share(part: usize, of: usize) -> f64 {
    if of == 0 { 0.0 } else { part as f64 / of as f64 }
}

/// The harmonic mean of two shares.
pub(super) fn harmonic(a: f64, b: f64) -> f64 {
    if a + b > 0.0 { 2.0 * a * b / (a + b) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_the_formula() {
        // The case of no samples is ours, the others are by scipy.stats.binomtest(right, samples).proportion_ci(method="wilson").
        for (right, samples, low, high) in [
            (0, 10, 0.0, 0.277_532_799_862_889_26),
            (10, 10, 0.722_467_200_137_110_9, 1.0),
            (0, 0, 0.0, 1.0),
            (412, 500, 0.788_185_828_710_64, 0.854_873_598_670_274),
        ] {
            let interval = wilson(right, samples);
            assert!((interval[0] - low).abs() < 1e-12 && (interval[1] - high).abs() < 1e-12, "{interval:?}");
        }
    }
}
