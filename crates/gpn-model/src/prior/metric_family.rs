//! Metrics that differ in their whitening alone, fitted to the same samples.

use super::metric::{Metric, MetricConfig};
use super::scatter::{Scatter, Scattered};
use super::whitening::whitening;
use crate::error::Result;

/// What metrics of several whitenings have in common: the covariance is summed up once for all of them.
///
/// ```
/// use gpn_model::prior::{Metric, MetricConfig, MetricFamily};
///
/// let classes = [[0.0, 0.0, 10.0, 1.0], [0.0, 5.0, 10.0, 6.0]];
/// let rows = || classes.iter().map(|rows| &rows[..]);
/// let family = MetricFamily::fit(MetricConfig::CENTRED, 2, rows())?;
/// assert_eq!(family.whitened(0.3)?, Metric::fit(MetricConfig::whitened(0.3), 2, rows())?);
/// # Ok::<(), gpn_model::ModelError>(())
/// ```
pub struct MetricFamily {
    base: Metric,
    scattered: Scattered,
}

impl MetricFamily {
    /// Fits what comes before the whitening, and the covariance, to the samples of training classes, `[n, dim]` for each.
    /// O(samples * dim^2).
    pub fn fit<'a, C>(base: MetricConfig, dim: usize, classes: C) -> Result<Self>
    where
        C: Iterator<Item = &'a [f32]> + Clone,
    {
        let base =
            Metric::fit(MetricConfig { whiten: None, unit_at_last: false, ..base }, dim, classes.clone())?;
        let mut scatter = Scatter::new(dim);
        for rows in classes {
            scatter.add_class(&base.apply(rows)?);
        }
        Ok(Self { base, scattered: scatter.finish()? })
    }

    /// The metric with this shrinkage. O(dim^3).
    pub fn whitened(&self, shrinkage: f64) -> Result<Metric> {
        let config = MetricConfig { whiten: Some(shrinkage), ..self.base.config() };
        config.check()?;
        Ok(self.base.clone().with_whitening(config, whitening(&self.scattered, shrinkage)?))
    }
}
