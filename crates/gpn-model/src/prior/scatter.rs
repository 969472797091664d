//! Covariances of embeddings, within classes and between them.

use gpn_kernels::linear::Product;

use crate::error::{ModelError, Result};

/// Rows whose products are summed in `f32` before they go into the `f64` sums.
const BLOCK: usize = 256;

/// Sum of the outer products of rows with themselves.
///
/// Products are taken by the kernels in blocks of rows; blocks are added in `f64` in the order in which they come.
struct OuterProducts {
    dim: usize,
    waiting: Vec<f32>,
    block: Vec<f32>,
    sums: Vec<f64>,
}

impl OuterProducts {
    fn new(dim: usize) -> Self {
        let waiting = Vec::with_capacity(BLOCK * dim);
        Self { dim, waiting, block: vec![0.0; dim * dim], sums: vec![0.0; dim * dim] }
    }

    fn add(&mut self, row: impl Iterator<Item = f32>) {
        self.waiting.extend(row);
        if self.waiting.len() == BLOCK * self.dim {
            self.multiply();
        }
    }

    fn multiply(&mut self) {
        let (a, dim) = (&self.waiting[..], self.dim);
        let product = Product { a, a_row: 1, a_step: dim, b: a, steps: a.len() / dim, columns: dim };
        product.run(&mut self.block);
        self.sums.iter_mut().zip(&self.block).for_each(|(sum, &x)| *sum += f64::from(x));
        self.waiting.clear();
    }

    fn divided(mut self, by: usize) -> Vec<f64> {
        self.multiply();
        self.sums.iter().map(|sum| sum / by as f64).collect()
    }
}

/// The covariance of samples within classes and the class means, summed up class by class in one pass.
pub(super) struct Scatter {
    dim: usize,
    within: OuterProducts,
    /// Samples less classes.
    freedom: usize,
    means: Vec<f32>,
}

/// How samples scatter within classes, and where the classes are.
pub(super) struct Scattered {
    pub(super) dim: usize,
    /// Covariance within classes, `[dim, dim]`.
    pub(super) within: Vec<f64>,
    /// Means of the classes that have samples, `[classes, dim]`.
    pub(super) means: Vec<f32>,
}

impl Scatter {
    pub(super) fn new(dim: usize) -> Self {
        Self { dim, within: OuterProducts::new(dim), freedom: 0, means: Vec::new() }
    }

    /// All samples of one class, `[n, dim]`.
    pub(super) fn add_class(&mut self, rows: &[f32]) {
        let n = rows.len() / self.dim;
        if n == 0 {
            return;
        }
        let mut mean = vec![0.0; self.dim];
        for row in rows.chunks_exact(self.dim) {
            mean.iter_mut().zip(row).for_each(|(sum, &x)| *sum += f64::from(x));
        }
        for sum in &mut mean {
            *sum /= n as f64;
        }
        for row in rows.chunks_exact(self.dim) {
            self.within.add(row.iter().zip(&mean).map(|(&x, mean)| (f64::from(x) - mean) as f32));
        }
        self.means.extend(mean.iter().map(|&mean| mean as f32));
        self.freedom += n - 1;
    }

    pub(super) fn finish(self) -> Result<Scattered> {
        if self.freedom == 0 {
            return Err(ModelError::NoScatter);
        }
        Ok(Scattered { dim: self.dim, within: self.within.divided(self.freedom), means: self.means })
    }
}

impl Scattered {
    /// Number of classes with samples.
    pub(super) fn classes(&self) -> usize {
        self.means.len() / self.dim
    }

    /// Covariance of the class means about zero, which is where the samples are centred, `[dim, dim]`.
    pub(super) fn between(&self) -> Vec<f64> {
        let mut products = OuterProducts::new(self.dim);
        for mean in self.means.chunks_exact(self.dim) {
            products.add(mean.iter().copied());
        }
        products.divided(self.classes())
    }
}
