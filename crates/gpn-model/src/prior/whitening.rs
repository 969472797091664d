//! The map that whitens embeddings and turns them to where classes differ.

use nalgebra::DMatrix;
use rayon::prelude::*;

use super::scatter::Scattered;
use crate::error::{ModelError, Result};

/// This share of the mean variance is added to all: a direction without scatter must not become infinite.
const FLOOR: f64 = 1e-6;
/// Directions along which classes differ by less than this share of the widest one count as those along which they do not.
const LEAST: f64 = 1e-9;
/// Columns that one task solves for.
const COLUMNS: usize = 64;

/// The map of the whitening, `[dim, dim]`, column = direction of the result: the covariance within classes, shrunk, becomes the
/// identity, and that between classes becomes diagonal, widest direction first. Of a direction and its negative it is the one
/// whose largest component is positive.
///
/// Without the second, a variance per dimension would say little: classes differ along few directions, and these are those.
///
/// O(dim^3) in a small multiple with fewer classes than dimensions; with more, the eigenvectors of a matrix `[dim, dim]` take
/// most of the time.
pub(super) fn whitening(scattered: &Scattered, shrinkage: f64) -> Result<Vec<f32>> {
    let dim = scattered.dim;
    let mean = (0..dim).map(|d| scattered.within[d * dim + d]).sum::<f64>() / dim as f64;
    let mut shrunk = DMatrix::from_row_slice(dim, dim, &scattered.within) * (1.0 - shrinkage);
    for d in 0..dim {
        shrunk[(d, d)] += (shrinkage + FLOOR) * mean;
    }
    let factor = shrunk.cholesky().ok_or(ModelError::NoScatter)?.unpack();
    let whiten = inverse_of_lower(&factor);
    let mut rows = if scattered.classes() < dim {
        turned_by_means(scattered, &whiten)
    } else {
        turned_by_covariance(scattered, &whiten)
    };
    rows.par_chunks_exact_mut(dim).for_each(|row| {
        let larger = |most: f64, &x: &f64| if x.abs() > most.abs() { x } else { most };
        let sign = row.iter().fold(0.0, larger).signum();
        for x in row {
            *x *= sign;
        }
    });
    Ok(transposed(dim, &rows).iter().map(|&x| x as f32).collect())
}

/// The inverse of a lower triangular matrix, row by row.
fn inverse_of_lower(factor: &DMatrix<f64>) -> Vec<f64> {
    let dim = factor.nrows();
    let rows: Vec<f64> = transposed(dim, factor.as_slice());
    // Each task has its own columns; above the diagonal there are zeros.
    let blocks: Vec<Vec<f64>> = (0..dim.div_ceil(COLUMNS))
        .into_par_iter()
        .map(|block| {
            let first = block * COLUMNS;
            let width = COLUMNS.min(dim - first);
            let mut solved = vec![0.0; (dim - first) * width];
            for i in 0..dim - first {
                let (above, rest) = solved.split_at_mut(i * width);
                let row = &mut rest[..width];
                if i < width {
                    row[i] = 1.0;
                }
                let factors = &rows[(first + i) * dim + first..][..=i];
                for (above, factor) in above.chunks_exact(width).zip(factors) {
                    row.iter_mut().zip(above).for_each(|(x, above)| *x -= factor * above);
                }
                for x in row {
                    *x /= factors[i];
                }
            }
            solved
        })
        .collect();
    let mut inverse = vec![0.0; dim * dim];
    for (block, solved) in blocks.iter().enumerate() {
        let first = block * COLUMNS;
        let width = COLUMNS.min(dim - first);
        for (i, row) in solved.chunks_exact(width).enumerate() {
            inverse[(first + i) * dim + first..][..width].copy_from_slice(row);
        }
    }
    inverse
}

/// The rows of the whitening turned to the eigenvectors of the covariance between classes.
fn turned_by_covariance(scattered: &Scattered, whiten: &[f64]) -> Vec<f64> {
    let dim = scattered.dim;
    let half = times(dim, whiten, &scattered.between());
    let between = times(dim, &half, &transposed(dim, whiten));
    let (_, turn) = eigen(dim, &between);
    times(dim, &turn, whiten)
}

/// The same with fewer classes than dimensions: eigenvectors of a matrix `[classes, classes]` are enough. Classes do not differ
/// along the directions that remain, so that any turn of these is as good as another.
fn turned_by_means(scattered: &Scattered, whiten: &[f64]) -> Vec<f64> {
    let (dim, classes) = (scattered.dim, scattered.classes());
    let means: Vec<f64> = scattered.means.iter().map(|&x| f64::from(x)).collect();
    // Class means in the whitened space, [classes, dim].
    let whitened = products(dim, &means, whiten);
    let (values, combinations) = eigen(classes, &products(dim, &whitened, &whitened));
    let kept = values.iter().take_while(|&&value| value > LEAST * values[0] && value > 0.0).count();
    let mut directions = DMatrix::<f64>::zeros(dim, kept);
    for (i, combination) in combinations.chunks_exact(classes).take(kept).enumerate() {
        let mut direction = directions.column_mut(i);
        for (share, mean) in combination.iter().zip(whitened.chunks_exact(dim)) {
            direction.iter_mut().zip(mean).for_each(|(x, mean)| *x += share * mean);
        }
    }
    if kept == 0 {
        return whiten.to_vec();
    }
    // The orthogonal factor has these directions first, and completes them. Rows of the whitening are columns here.
    let reflections = directions.qr();
    let mut turned = DMatrix::from_row_slice(dim, dim, whiten);
    reflections.q_tr_mul(&mut turned);
    transposed(dim, turned.as_slice())
}

/// Eigenvalues of a symmetric matrix, largest first, and the eigenvectors as rows.
fn eigen(dim: usize, matrix: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let eigen = DMatrix::from_row_slice(dim, dim, matrix).symmetric_eigen();
    let mut order: Vec<usize> = (0..dim).collect();
    order.sort_by(|&a, &b| eigen.eigenvalues[b].total_cmp(&eigen.eigenvalues[a]));
    let rows = order.iter().flat_map(|&direction| eigen.eigenvectors.column(direction).into_iter().copied());
    (order.iter().map(|&direction| eigen.eigenvalues[direction]).collect(), rows.collect())
}

/// Products of each row of `a: [n, dim]` with each row of `b: [m, dim]`, `[n, m]`.
fn products(dim: usize, a: &[f64], b: &[f64]) -> Vec<f64> {
    let row = |a: &[f64]| -> Vec<f64> {
        b.chunks_exact(dim).map(|b| a.iter().zip(b).map(|(a, b)| a * b).sum()).collect()
    };
    a.par_chunks_exact(dim).flat_map_iter(row).collect()
}

/// The product of two matrices `[dim, dim]`, each value summed in the same order on every processor.
fn times(dim: usize, a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut product = vec![0.0; dim * dim];
    product.par_chunks_exact_mut(dim).zip(a.par_chunks_exact(dim)).for_each(|(row, a)| {
        for (a, b) in a.iter().zip(b.chunks_exact(dim)) {
            row.iter_mut().zip(b).for_each(|(sum, b)| *sum += a * b);
        }
    });
    product
}

/// Rows and columns exchanged, in blocks that stay in the nearest cache.
fn transposed(dim: usize, a: &[f64]) -> Vec<f64> {
    const BLOCK: usize = 8;
    let mut turned = vec![0.0; dim * dim];
    for first in (0..dim).step_by(BLOCK) {
        let block = BLOCK.min(dim - first);
        for (column, row) in turned.chunks_exact_mut(dim).enumerate() {
            for (at, value) in row[first..first + block].iter_mut().enumerate() {
                *value = a[(first + at) * dim + column];
            }
        }
    }
    turned
}

#[cfg(test)]
mod tests {
    use super::super::scatter::Scatter;
    use super::*;
    use crate::prior::sample::noise;

    fn scattered(classes: usize, dim: usize) -> (Vec<Vec<f32>>, Scattered) {
        let mut values = noise(3);
        let rows: Vec<Vec<f32>> = (0..classes)
            .map(|_| {
                let mean: Vec<f32> = (0..dim).map(|_| values()).collect();
                let row = |_| -> Vec<f32> {
                    mean.iter().enumerate().map(|(d, mean)| mean + values() * (1 + d % 3) as f32).collect()
                };
                (0..3 * dim).flat_map(row).collect()
            })
            .collect();
        let scatter = scatter_of(dim, &rows);
        (rows, scatter)
    }

    fn scatter_of(dim: usize, classes: &[Vec<f32>]) -> Scattered {
        let mut scatter = Scatter::new(dim);
        for rows in classes {
            scatter.add_class(rows);
        }
        scatter.finish().unwrap()
    }

    fn mapped(dim: usize, map: &[f32], rows: &[f32]) -> Vec<f32> {
        let value = |row: &[f32], to: usize| (0..dim).map(|d| row[d] * map[d * dim + to]).sum::<f32>();
        rows.chunks_exact(dim).flat_map(|row| (0..dim).map(|to| value(row, to)).collect::<Vec<_>>()).collect()
    }

    #[test]
    fn few_classes_and_many_are_whitened_alike() {
        for (classes, dim) in [(4, 9), (9, 9), (12, 9), (3, 70)] {
            let (rows, before) = scattered(classes, dim);
            let map = whitening(&before, 0.0).unwrap();
            let after: Vec<Vec<f32>> = rows.iter().map(|rows| mapped(dim, &map, rows)).collect();
            let after = scatter_of(dim, &after);
            let (between, mut last) = (after.between(), f64::INFINITY);
            for i in 0..dim {
                for j in 0..dim {
                    let expected = f64::from(u8::from(i == j));
                    assert!((after.within[i * dim + j] - expected).abs() < 1e-3, "{classes} {i} {j}");
                    assert!(i == j || between[i * dim + j].abs() < 1e-4, "{classes} {i} {j}");
                }
                assert!(between[i * dim + i] <= last + 1e-4);
                assert!(i < classes || between[i * dim + i] < 1e-6);
                last = between[i * dim + i];
            }
        }
    }

    #[test]
    fn the_map_has_the_same_bits_with_any_number_of_threads() {
        for (classes, dim) in [(5, 130), (140, 130)] {
            let (_, before) = scattered(classes, dim);
            let with = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| whitening(&before, 0.5).unwrap())
            };
            assert_eq!(with(1), with(3));
        }
    }

    #[test]
    fn classes_that_do_not_scatter_are_refused_and_equal_means_are_not() {
        let still = Scattered { dim: 2, within: vec![0.0; 4], means: vec![1.0, 0.0] };
        assert!(matches!(whitening(&still, 0.5), Err(ModelError::NoScatter)));
        let equal = Scattered { dim: 2, within: vec![4.0, 0.0, 0.0, 4.0], means: vec![0.0, 0.0] };
        let map = whitening(&equal, 0.5).unwrap();
        assert!((map[0] - 0.5).abs() < 1e-3 && map[1].abs() < 1e-6, "{map:?}");
    }
}
