//! What the samples of the training classes say about each class.

use gpn_taxonomy::Node;

use super::check::{finite, rows_of};
use crate::error::{ModelError, Result};

/// Means and sample counts of classes, and how samples scatter within them, in the space of a metric.
///
/// Class `i` is node `i` of the class graph; a class with no sample is not known. Made by a [`StatisticsBuilder`].
#[derive(Clone, Debug, PartialEq)]
pub struct ClassStatistics {
    dim: usize,
    /// `[classes, dim]`, zero where a class has no sample.
    means: Vec<f32>,
    counts: Vec<u32>,
    /// `[dim]`
    within: Vec<f64>,
}

impl ClassStatistics {
    /// Statistics from their parts: `means: [classes, dim]`, `counts: [classes]`, and the variance within classes `[dim]`,
    /// which must be positive.
    pub fn new(dim: usize, means: Vec<f32>, counts: Vec<u32>, within: Vec<f64>) -> Result<Self> {
        if dim == 0 {
            return Err(ModelError::Zero { what: "length of embeddings" });
        }
        if means.len() != counts.len() * dim {
            let expected = format!("{} classes x {dim}", counts.len());
            return Err(ModelError::WrongLength { what: "class means", expected, got: means.len() });
        }
        if within.len() != dim {
            let expected = dim.to_string();
            return Err(ModelError::WrongLength {
                what: "variance within classes",
                expected,
                got: within.len(),
            });
        }
        finite("class means", &means)?;
        if !within.iter().all(|&variance| variance > 0.0 && variance.is_finite()) {
            return Err(ModelError::NoScatter);
        }
        Ok(Self { dim, means, counts, within })
    }

    /// Length of embeddings.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Number of classes, with and without samples.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether there is no class.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Whether a class has samples. A class beyond the last one has none.
    pub fn is_known(&self, class: Node) -> bool {
        self.count(class) > 0
    }

    /// The number of samples of a class.
    pub fn count(&self, class: Node) -> u32 {
        self.counts.get(class as usize).copied().unwrap_or(0)
    }

    /// The mean of the samples of a class, `[dim]`.
    pub fn mean(&self, class: Node) -> &[f32] {
        &self.means[class as usize * self.dim..][..self.dim]
    }

    /// The means of all classes, `[classes, dim]`.
    pub fn means(&self) -> &[f32] {
        &self.means
    }

    /// The variance of samples around the mean of their class, pooled over classes, `[dim]`.
    pub fn within(&self) -> &[f64] {
        &self.within
    }

    /// The known classes, ascending.
    pub fn known(&self) -> impl Iterator<Item = Node> + '_ {
        (0..self.len() as Node).filter(|&class| self.is_known(class))
    }

    /// The mean of the known classes' means, `[dim]`.
    pub fn grand_mean(&self) -> Vec<f64> {
        let mut sum = vec![0.0; self.dim];
        let mut count = 0_usize;
        for class in self.known() {
            sum.iter_mut().zip(self.mean(class)).for_each(|(sum, &x)| *sum += f64::from(x));
            count += 1;
        }
        for sum in &mut sum {
            *sum /= count.max(1) as f64;
        }
        sum
    }
}

/// Sums up statistics class by class: sums in `f64`, in the order in which the classes come.
///
/// ```
/// use gpn_model::prior::StatisticsBuilder;
///
/// let mut builder = StatisticsBuilder::new(2, 3)?;
/// builder.add(0, &[0.0, 0.0, 2.0, 1.0])?;
/// builder.add(2, &[5.0, 5.0])?;
/// let statistics = builder.finish()?;
/// assert_eq!(statistics.mean(0), [1.0, 0.5]);
/// assert_eq!(statistics.within(), [2.0, 0.5]);
/// assert!(!statistics.is_known(1));
/// # Ok::<(), gpn_model::ModelError>(())
/// ```
#[derive(Clone, Debug)]
pub struct StatisticsBuilder {
    dim: usize,
    means: Vec<f32>,
    counts: Vec<u32>,
    scatter: Vec<f64>,
    freedom: usize,
}

impl StatisticsBuilder {
    /// For `classes` classes with embeddings of length `dim`, none of them known so far.
    pub fn new(dim: usize, classes: usize) -> Result<Self> {
        if dim == 0 {
            return Err(ModelError::Zero { what: "length of embeddings" });
        }
        let (means, counts) = (vec![0.0; dim * classes], vec![0; classes]);
        Ok(Self { dim, means, counts, scatter: vec![0.0; dim], freedom: 0 })
    }

    /// All samples of one class, `[n, dim]`, in the space of the metric. O(n * dim).
    pub fn add(&mut self, class: Node, rows: &[f32]) -> Result<()> {
        let n = rows_of("embeddings of a class", rows, self.dim)?;
        finite("embeddings of a class", rows)?;
        let at = class as usize;
        if at >= self.counts.len() {
            return Err(ModelError::LabelOutOfRange { sample: 0, label: at, classes: self.counts.len() });
        }
        if n == 0 {
            return Ok(());
        }
        let mut mean = vec![0.0; self.dim];
        for row in rows.chunks_exact(self.dim) {
            mean.iter_mut().zip(row).for_each(|(sum, &x)| *sum += f64::from(x));
        }
        for sum in &mut mean {
            *sum /= n as f64;
        }
        for row in rows.chunks_exact(self.dim) {
            for ((sum, &x), mean) in self.scatter.iter_mut().zip(row).zip(&mean) {
                *sum += (f64::from(x) - mean) * (f64::from(x) - mean);
            }
        }
        let place = &mut self.means[at * self.dim..][..self.dim];
        place.iter_mut().zip(&mean).for_each(|(place, &mean)| *place = mean as f32);
        self.counts[at] = n as u32;
        self.freedom += n - 1;
        Ok(())
    }

    /// The statistics of all classes added.
    pub fn finish(self) -> Result<ClassStatistics> {
        if self.freedom == 0 {
            return Err(ModelError::NoScatter);
        }
        let freedom = self.freedom as f64;
        let within: Vec<f64> = self.scatter.iter().map(|sum| sum / freedom).collect();
        // A dimension that never varies, such as a dead unit, must not divide by zero.
        let floor = 1e-6 * within.iter().sum::<f64>() / self.dim as f64;
        let within = within.iter().map(|variance| variance.max(floor)).collect();
        ClassStatistics::new(self.dim, self.means, self.counts, within)
    }
}
