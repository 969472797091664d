//! The space in which prototypes are made and distances taken.

use serde::{Deserialize, Serialize};

use super::StateTensor;
use super::check::{finite, rows_of};
use super::metric_family::MetricFamily;
use crate::error::{ModelError, Result};
use crate::matmul::x_wt;
use gpn_kernels::linear::Product;

/// Which metric to fit. The default is the raw one: embeddings as they are.
///
/// The steps are taken in the order of the fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a step that is taken or not")]
pub struct MetricConfig {
    /// Take each value to the power 3/4, its sign kept: values that stand out count less. Default: false.
    pub compress: bool,
    /// Subtract the mean of the training classes. Default: false.
    pub centre: bool,
    /// Scale each embedding to length 1. Default: false.
    pub unit: bool,
    /// Whiten by the covariance within training classes, shrunk by this share (0 to 1) towards a multiple of the identity, and
    /// turn the space so that its dimensions are those along which classes differ. Default: none.
    pub whiten: Option<f64>,
    /// Scale each embedding to length 1 at last: nearest is then the largest cosine in the whitened space. Default: false.
    pub unit_at_last: bool,
}

impl MetricConfig {
    /// Embeddings as they are.
    pub const RAW: Self =
        Self { compress: false, centre: false, unit: false, whiten: None, unit_at_last: false };
    /// Without the mean of the training classes.
    pub const CENTRED: Self = Self { centre: true, ..Self::RAW };
    /// Centred, then of length 1.
    pub const UNIT: Self = Self { unit: true, ..Self::CENTRED };

    /// Centred and whitened with this shrinkage.
    pub const fn whitened(shrinkage: f64) -> Self {
        Self { whiten: Some(shrinkage), ..Self::CENTRED }
    }

    /// Centred, of length 1, then whitened with this shrinkage.
    pub const fn unit_whitened(shrinkage: f64) -> Self {
        Self { whiten: Some(shrinkage), ..Self::UNIT }
    }

    /// The same, then of length 1 again.
    pub const fn whitened_cosine(shrinkage: f64) -> Self {
        Self { unit_at_last: true, ..Self::unit_whitened(shrinkage) }
    }

    /// The same on compressed values.
    #[must_use]
    pub const fn compressed(mut self) -> Self {
        self.compress = true;
        self
    }

    pub(super) fn check(&self) -> Result<()> {
        match self.whiten {
            Some(share) if !(0.0..=1.0).contains(&share) => Err(ModelError::OutOfRange {
                what: "shrinkage of the whitening",
                range: "0 to 1",
                value: share,
            }),
            _ => Ok(()),
        }
    }
}

/// A fitted metric: a map of embeddings `[n, dim]` to `[n, dim]`, in which Euclidean distances are taken.
///
/// ```
/// use gpn_model::prior::{Metric, MetricConfig};
///
/// // Two training classes; the first direction scatters ten times as much as the second.
/// let classes = [[0.0, 0.0, 10.0, 1.0], [0.0, 5.0, 10.0, 6.0]];
/// let metric = Metric::fit(MetricConfig::whitened(0.0), 2, classes.iter().map(|rows| &rows[..]))?;
/// let rows = metric.apply(&[0.0, 0.0, 10.0, 1.0])?;
/// assert_eq!(rows.len(), 4);
/// # Ok::<(), gpn_model::ModelError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    config: MetricConfig,
    dim: usize,
    /// What is subtracted, `[dim]`; empty where nothing is.
    centre: Vec<f32>,
    /// `[dim, dim]`, column = direction of the result; empty where nothing is whitened.
    whiten: Vec<f32>,
}

impl Metric {
    /// The metric of embeddings as they are, which needs no fit.
    pub fn raw(dim: usize) -> Self {
        Self { config: MetricConfig::RAW, dim, centre: Vec::new(), whiten: Vec::new() }
    }

    /// Fits a metric to the samples of training classes, `[n, dim]` for each class. The iterator is walked through once for
    /// the mean and once for the covariance, as the metric needs.
    ///
    /// O(samples * dim^2 + dim^3) where it whitens, O(samples * dim) else; memory O(dim^2). The result depends on the order
    /// of classes and samples, but neither on the number of threads nor on the processor.
    pub fn fit<'a, C>(config: MetricConfig, dim: usize, classes: C) -> Result<Self>
    where
        C: Iterator<Item = &'a [f32]> + Clone,
    {
        config.check()?;
        if dim == 0 {
            return Err(ModelError::Zero { what: "length of embeddings" });
        }
        if let Some(shrinkage) = config.whiten {
            let whitened = MetricFamily::fit(config, dim, classes)?.whitened(shrinkage)?;
            return Ok(Self { config, ..whitened });
        }
        let centre = if config.centre { mean_of_means(dim, classes, config.compress)? } else { Vec::new() };
        Ok(Self { config, dim, centre, whiten: Vec::new() })
    }

    /// The same, then whitened by a map `[dim, dim]`.
    pub(super) fn with_whitening(mut self, config: MetricConfig, whiten: Vec<f32>) -> Self {
        (self.config, self.whiten) = (config, whiten);
        self
    }

    /// The same metric, its results scaled to length 1 at last.
    #[must_use]
    pub fn with_unit_at_last(mut self) -> Self {
        self.config.unit_at_last = true;
        self
    }

    /// Which metric this is.
    pub fn config(&self) -> MetricConfig {
        self.config
    }

    /// Length of embeddings, before and after.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Takes embeddings `[n, dim]` into the metric's space, `[n, dim]`. O(n * dim), O(n * dim^2) where it whitens.
    pub fn apply(&self, rows: &[f32]) -> Result<Vec<f32>> {
        let mut rows = self.whitened(self.before_whitening(rows)?);
        if self.config.unit_at_last {
            to_unit_length(&mut rows, self.dim);
        }
        Ok(rows)
    }

    /// The gradient with respect to `rows: [n, dim]`, for the gradient `grad: [n, dim]` of `apply(rows)`.
    pub fn backward(&self, rows: &[f32], grad: &[f32]) -> Result<Vec<f32>> {
        rows_of("embeddings", rows, self.dim)?;
        if grad.len() != rows.len() {
            let expected = format!("as many as embeddings have, {}", rows.len());
            return Err(ModelError::WrongLength { what: "gradient", expected, got: grad.len() });
        }
        let mut grad = grad.to_vec();
        if self.config.unit_at_last {
            through_unit_length(&self.whitened(self.before_whitening(rows)?), &mut grad, self.dim);
        }
        if !self.whiten.is_empty() {
            grad = x_wt(&grad, &self.whiten, self.dim, self.dim);
        }
        if self.config.unit {
            through_unit_length(&self.centred(rows), &mut grad, self.dim);
        }
        if self.config.compress {
            // The slope at zero is infinite; there is no use in following it.
            let slope = |x: f32| 0.75 / x.abs().max(1e-12).sqrt().sqrt();
            grad.iter_mut().zip(rows).for_each(|(g, &x)| *g *= slope(x));
        }
        Ok(grad)
    }

    /// Names, shapes and values of the fitted state, for a weight file.
    pub fn to_tensors(&self) -> Vec<StateTensor> {
        let mut tensors = Vec::new();
        if !self.centre.is_empty() {
            tensors.push(("metric.centre", vec![self.dim], self.centre.clone()));
        }
        if !self.whiten.is_empty() {
            tensors.push(("metric.whiten", vec![self.dim, self.dim], self.whiten.clone()));
        }
        tensors
    }

    /// The metric whose [`to_tensors`](Self::to_tensors) these are; `tensor` gives the values of a name.
    pub fn from_tensors<'a>(
        config: MetricConfig,
        dim: usize,
        mut tensor: impl FnMut(&str) -> Option<&'a [f32]>,
    ) -> Result<Self> {
        config.check()?;
        let mut read = |wanted: bool, name: &'static str, len: usize| {
            if !wanted {
                return Ok(Vec::new());
            }
            let values = tensor(name).unwrap_or_default();
            if values.len() != len || len == 0 {
                let expected = format!("{len}, at least one");
                return Err(ModelError::WrongLength { what: name, expected, got: values.len() });
            }
            finite(name, values)?;
            Ok(values.to_vec())
        };
        let centre = read(config.centre, "metric.centre", dim)?;
        let whiten = read(config.whiten.is_some(), "metric.whiten", dim * dim)?;
        Ok(Self { config, dim, centre, whiten })
    }

    fn before_whitening(&self, rows: &[f32]) -> Result<Vec<f32>> {
        rows_of("embeddings", rows, self.dim)?;
        let mut rows = self.centred(rows);
        if self.config.unit {
            to_unit_length(&mut rows, self.dim);
        }
        Ok(rows)
    }

    /// Rows as [`before_whitening`](Self::before_whitening) leaves them, whitened.
    fn whitened(&self, rows: Vec<f32>) -> Vec<f32> {
        if self.whiten.is_empty() {
            return rows;
        }
        let (dim, mut after) = (self.dim, vec![0.0; rows.len()]);
        Product { a: &rows, a_row: dim, a_step: 1, b: &self.whiten, steps: dim, columns: dim }
            .run(&mut after);
        after
    }

    fn centred(&self, rows: &[f32]) -> Vec<f32> {
        let mut rows = rows.to_vec();
        if self.config.compress {
            for x in &mut rows {
                *x = compressed(*x);
            }
        }
        if !self.centre.is_empty() {
            for row in rows.chunks_exact_mut(self.dim) {
                row.iter_mut().zip(&self.centre).for_each(|(x, c)| *x -= c);
            }
        }
        rows
    }
}

/// A value to the power 3/4, its sign kept. Roots are rounded alike on every processor.
fn compressed(x: f32) -> f32 {
    let root = x.abs().sqrt();
    (root * root.sqrt()).copysign(x)
}

/// Length of a vector, at least a number above zero: the zero vector stays where it is.
fn length(row: &[f32]) -> f64 {
    row.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt().max(1e-12)
}

fn to_unit_length(rows: &mut [f32], dim: usize) {
    for row in rows.chunks_exact_mut(dim) {
        let length = length(row);
        for x in row {
            *x = (f64::from(*x) / length) as f32;
        }
    }
}

/// Turns the gradient of rows of length 1 into that of the `rows` before they were scaled.
fn through_unit_length(rows: &[f32], grad: &mut [f32], dim: usize) {
    for (row, grad) in rows.chunks_exact(dim).zip(grad.chunks_exact_mut(dim)) {
        let length = length(row);
        let along = row.iter().zip(&*grad).map(|(&x, &g)| f64::from(x) * f64::from(g)).sum::<f64>();
        for (&x, g) in row.iter().zip(grad) {
            let unit = f64::from(x) / length;
            *g = ((f64::from(*g) - unit * (along / length)) / length) as f32;
        }
    }
}

/// The mean of the class means; classes without samples do not count.
fn mean_of_means<'a>(
    dim: usize,
    classes: impl Iterator<Item = &'a [f32]>,
    compress: bool,
) -> Result<Vec<f32>> {
    let (mut total, mut mean, mut count) = (vec![0.0; dim], vec![0.0; dim], 0_usize);
    for rows in classes {
        let n = rows_of("embeddings of a class", rows, dim)?;
        if n == 0 {
            continue;
        }
        finite("embeddings of a class", rows)?;
        mean.fill(0.0);
        for row in rows.chunks_exact(dim) {
            let value = |x: f32| f64::from(if compress { compressed(x) } else { x });
            mean.iter_mut().zip(row).for_each(|(sum, &x)| *sum += value(x));
        }
        total.iter_mut().zip(&mean).for_each(|(total, sum)| *total += sum / n as f64);
        count += 1;
    }
    if count == 0 {
        return Err(ModelError::Zero { what: "number of training classes with samples" });
    }
    Ok(total.iter().map(|total| (total / count as f64) as f32).collect())
}

#[cfg(test)]
mod tests {
    use super::super::scatter::Scatter;
    use super::*;
    use crate::prior::sample::noise;

    fn classes(dim: usize) -> Vec<Vec<f32>> {
        // Some directions scatter more than others.
        let mut values = noise(3);
        (0..7)
            .map(|class| {
                let row = |_| -> Vec<f32> {
                    (0..dim).map(|d| values() * (1 + d % 3) as f32 + ((class * d) % 5) as f32).collect()
                };
                (0..6 + class).flat_map(row).collect()
            })
            .collect()
    }

    fn fitted(config: MetricConfig, dim: usize) -> (Metric, Vec<Vec<f32>>) {
        let classes = classes(dim);
        (Metric::fit(config, dim, classes.iter().map(|rows| &rows[..])).unwrap(), classes)
    }

    #[test]
    fn whitening_makes_the_identity_within_and_a_diagonal_between() {
        let dim = 5;
        let (metric, classes) = fitted(MetricConfig::whitened(0.0), dim);
        let mut scatter = Scatter::new(dim);
        for rows in &classes {
            scatter.add_class(&metric.apply(rows).unwrap());
        }
        let after = scatter.finish().unwrap();
        let between = after.between();
        let mut last = f64::INFINITY;
        for i in 0..dim {
            for j in 0..dim {
                let expected = f64::from(u8::from(i == j));
                assert!((after.within[i * dim + j] - expected).abs() < 1e-4, "{i} {j}");
                assert!(i == j || between[i * dim + j].abs() < 1e-4, "{i} {j}");
            }
            assert!(between[i * dim + i] <= last + 1e-4);
            last = between[i * dim + i];
        }
    }

    #[test]
    fn full_shrinkage_only_scales() {
        let (metric, classes) = fitted(MetricConfig::whitened(1.0), 4);
        let rows = &classes[0][..12];
        let after = metric.apply(rows).unwrap();
        let distance = |rows: &[f32], a: usize, b: usize| {
            (0..4).map(|d| (rows[a * 4 + d] - rows[b * 4 + d]).powi(2)).sum::<f32>()
        };
        let ratio = distance(&after, 0, 1) / distance(rows, 0, 1);
        assert!((distance(&after, 0, 2) / distance(rows, 0, 2) / ratio - 1.0).abs() < 1e-4);
    }

    #[test]
    fn a_metric_comes_back_from_its_tensors() {
        let compressed = MetricConfig::UNIT.compressed();
        for config in [MetricConfig::RAW, MetricConfig::UNIT, compressed, MetricConfig::whitened_cosine(0.5)]
        {
            let (metric, classes) = fitted(config, 5);
            let tensors = metric.to_tensors();
            let find =
                |name: &str| tensors.iter().find(|tensor| tensor.0 == name).map(|tensor| &tensor.2[..]);
            assert_eq!(Metric::from_tensors(config, 5, find).unwrap(), metric);
            assert_eq!(metric.apply(&classes[0]).unwrap().len(), classes[0].len());
        }
        let wanted = Metric::from_tensors(MetricConfig::UNIT, 5, |_| None);
        assert!(wanted.unwrap_err().to_string().contains("metric.centre"));
    }

    #[test]
    fn gradients_are_those_of_finite_differences() {
        let cosine = MetricConfig::whitened_cosine(0.3);
        let whitened = [MetricConfig::unit_whitened(0.3), cosine, cosine.compressed()];
        for config in [MetricConfig::CENTRED, MetricConfig::UNIT].into_iter().chain(whitened) {
            let (metric, classes) = fitted(config, 5);
            let rows = &classes[2][..10];
            let grad: Vec<f32> = (0..10).map(|i| (i as f32 - 4.0) / 5.0).collect();
            let loss = |rows: &[f32]| -> f64 {
                let after = metric.apply(rows).unwrap();
                after.iter().zip(&grad).map(|(&x, &g)| f64::from(x) * f64::from(g)).sum()
            };
            let got = metric.backward(rows, &grad).unwrap();
            for i in 0..10 {
                let moved = |by: f32| {
                    let mut rows = rows.to_vec();
                    rows[i] += by;
                    loss(&rows)
                };
                let expected = (moved(0.01) - moved(-0.01)) / 0.02;
                assert!((f64::from(got[i]) - expected).abs() < 2e-3, "{config:?} {i}: {} {expected}", got[i]);
            }
        }
    }

    #[test]
    fn compressed_values_are_centred_where_they_are() {
        assert!((compressed(16.0) - 8.0).abs() < 1e-6 && (compressed(-81.0) + 27.0).abs() < 1e-5);
        assert!(compressed(0.0).abs() < 1e-9);
        let rows = [16.0, -81.0, 0.0, 1.0];
        let metric = Metric::fit(MetricConfig::CENTRED.compressed(), 2, std::iter::once(&rows[..])).unwrap();
        let after = metric.apply(&rows).unwrap();
        for (got, expected) in after.iter().zip([4.0, -14.0, -4.0, 14.0]) {
            assert!((got - expected).abs() < 1e-4, "{after:?}");
        }
    }

    #[test]
    fn bad_samples_are_refused() {
        let fit = |config, rows: &[f32]| Metric::fit(config, 2, std::iter::once(rows));
        assert!(fit(MetricConfig::whitened(1.5), &[0.0; 4]).is_err());
        assert!(fit(MetricConfig::CENTRED, &[0.0; 3]).is_err());
        assert!(fit(MetricConfig::CENTRED, &[0.0, f32::NAN]).is_err());
        assert!(fit(MetricConfig::CENTRED, &[]).is_err());
        assert!(matches!(fit(MetricConfig::whitened(0.5), &[0.0, 1.0]), Err(ModelError::NoScatter)));
    }
}
