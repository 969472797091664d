//! Means with confidence intervals, and paired comparisons.

use serde::{Deserialize, Serialize};

/// A mean with the half-width of its 95% confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// 1.96 times the standard deviation over the root of the count.
    pub half_width: f64,
}

/// The formula of [`Estimate`], for reports.
pub const INTERVAL: &str = "mean +- 1.96 sd / sqrt(n), sd with n in the denominator";

impl Estimate {
    /// The mean of `values` with its interval.
    ///
    /// ```
    /// let estimate = gpn_train::Estimate::of(&[1.0, 3.0]);
    /// assert_eq!(estimate.mean, 2.0);
    /// assert!((estimate.half_width - 1.96 / 2f64.sqrt()).abs() < 1e-12);
    /// ```
    pub fn of(values: &[f64]) -> Self {
        let n = values.len().max(1) as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n;
        Self { mean, half_width: 1.96 * (variance / n).sqrt() }
    }

    /// The mean difference `a - b` task by task.
    pub fn of_difference(a: &[f64], b: &[f64]) -> Self {
        let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
        Self::of(&differences)
    }
}

impl std::fmt::Display for Estimate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.2}+-{:.2}", self.mean, self.half_width)
    }
}
