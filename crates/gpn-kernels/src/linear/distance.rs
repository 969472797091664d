//! Squared Euclidean distances of queries to prototypes.

use crate::error::{KernelError, check_len};
use crate::linear::rows;
use crate::simd::{Kernel, Simd, Vector};

/// `out[i][j] = |queries[i] - prototypes[j]|^2` for `queries: [q, dim]`, `prototypes: [n, dim]`,
/// `out: [q, n]`.
pub fn squared_distances(
    queries: &[f32],
    prototypes: &[f32],
    dim: usize,
    out: &mut [f32],
) -> Result<(), KernelError> {
    let (q, n) = (rows("queries", queries.len(), dim)?, rows("prototypes", prototypes.len(), dim)?);
    check_len("distances", out.len(), q * n)?;
    Simd::chosen().run(Distances { queries, prototypes, dim, out });
    Ok(())
}

struct Distances<'a> {
    queries: &'a [f32],
    prototypes: &'a [f32],
    dim: usize,
    out: &'a mut [f32],
}

impl Kernel for Distances<'_> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector>(self) {
        let n = self.prototypes.len().checked_div(self.dim).unwrap_or(0);
        for (i, out) in self.out.chunks_exact_mut(n.max(1)).enumerate() {
            let query = &self.queries[i * self.dim..(i + 1) * self.dim];
            for (j, out) in out.iter_mut().enumerate() {
                let prototype = &self.prototypes[j * self.dim..(j + 1) * self.dim];
                *out = squared_distance::<V>(query, prototype);
            }
        }
    }
}

/// Sums that run beside each other, whatever the vector's length: the result is the same with every
/// instruction set.
const SUMS: usize = 16;
/// The shortest vector has four lanes.
const MOST_VECTORS: usize = 4;

/// `|a - b|^2`. Product and sum are rounded together, except with `portable`.
/// [`crate::search::squared_distance`] rounds them apart, so the last bits of the two differ.
#[inline(always)]
fn squared_distance<V: Vector>(a: &[f32], b: &[f32]) -> f32 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<SUMS>(), b.as_chunks::<SUMS>());
    let mut vectors = [V::zero(); MOST_VECTORS];
    for (a, b) in a.iter().zip(b) {
        for (i, sum) in vectors.iter_mut().enumerate().take(SUMS / V::LANES) {
            let at = i * V::LANES;
            // SAFETY: `at + LANES` does not exceed the chunk's 16 values.
            let difference = unsafe { V::load(a.as_ptr().add(at)).sub(V::load(b.as_ptr().add(at))) };
            *sum = difference.mul_add(difference, *sum);
        }
    }
    let mut sums = [0.0; SUMS];
    for (i, sum) in vectors.iter().enumerate().take(SUMS / V::LANES) {
        // SAFETY: as above.
        unsafe { sum.store(sums.as_mut_ptr().add(i * V::LANES)) };
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(x, y)| (x - y) * (x - y)).sum();
    sums.iter().sum::<f32>() + rest
}

/// Gradients of [`squared_distances`] for `grad: [q, n]`; `grad_queries: [q, dim]` and
/// `grad_prototypes: [n, dim]` are overwritten.
pub fn squared_distances_backward(
    queries: &[f32],
    prototypes: &[f32],
    dim: usize,
    grad: &[f32],
    grad_queries: &mut [f32],
    grad_prototypes: &mut [f32],
) -> Result<(), KernelError> {
    let (q, n) = (rows("queries", queries.len(), dim)?, rows("prototypes", prototypes.len(), dim)?);
    check_len("gradient of the distances", grad.len(), q * n)?;
    check_len("grad_queries", grad_queries.len(), queries.len())?;
    check_len("grad_prototypes", grad_prototypes.len(), prototypes.len())?;
    Simd::chosen().run(DistancesBackward { queries, prototypes, dim, grad, grad_queries, grad_prototypes });
    Ok(())
}

struct DistancesBackward<'a> {
    queries: &'a [f32],
    prototypes: &'a [f32],
    dim: usize,
    grad: &'a [f32],
    grad_queries: &'a mut [f32],
    grad_prototypes: &'a mut [f32],
}

impl Kernel for DistancesBackward<'_> {
    type Output = ();
    /// A plain loop: the compiler makes it vectors of whatever instruction set encloses it.
    #[inline(always)]
    fn run<V: Vector>(self) {
        let Self { dim, .. } = self;
        self.grad_queries.fill(0.0);
        self.grad_prototypes.fill(0.0);
        let n = self.prototypes.len().checked_div(dim).unwrap_or(0);
        let queries =
            self.queries.chunks_exact(dim.max(1)).zip(self.grad_queries.chunks_exact_mut(dim.max(1)));
        for ((query, grad_query), grads) in queries.zip(self.grad.chunks_exact(n.max(1))) {
            let prototypes =
                self.prototypes.chunks_exact(dim).zip(self.grad_prototypes.chunks_exact_mut(dim));
            for ((prototype, grad_prototype), grad) in prototypes.zip(grads) {
                let factor = 2.0 * grad;
                let ends = query.iter().zip(prototype);
                for ((query, prototype), (a, b)) in ends.zip(grad_query.iter_mut().zip(grad_prototype)) {
                    let step = factor * (query - prototype);
                    *a += step;
                    *b -= step;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instruction_sets_compute_the_same_bits() {
        for dim in [1, 5, 16, 64, 100, 383] {
            let [a, b] =
                [0.37, 0.91].map(|step| (0..dim).map(|i| libm::sinf(i as f32 * step)).collect::<Vec<f32>>());
            let distance = |simd: Simd| {
                let mut out = [f32::NAN];
                simd.run(Distances { queries: &a, prototypes: &b, dim, out: &mut out });
                out[0].to_bits()
            };
            let fused = Simd::available().into_iter().filter(|simd| simd.is_fused());
            let bits: Vec<u32> = fused.map(distance).collect();
            assert!(bits.iter().all(|b| *b == bits[0]), "{dim}: {bits:x?}");
        }
    }

    #[test]
    fn distances_and_gradients_agree_with_the_definition() {
        for (q, n, dim) in [(1, 1, 1), (3, 2, 7), (5, 4, 64), (2, 3, 19)] {
            let queries: Vec<f32> = (0..q * dim).map(|i| (i as f32 * 0.37).sin()).collect();
            let prototypes: Vec<f32> = (0..n * dim).map(|i| (i as f32 * 0.91).cos()).collect();
            let mut out = vec![0.0; q * n];
            squared_distances(&queries, &prototypes, dim, &mut out).unwrap();
            let grad: Vec<f32> = (0..q * n).map(|i| i as f32 - 1.5).collect();
            let (mut gq, mut gp) = (vec![7.0; q * dim], vec![7.0; n * dim]);
            squared_distances_backward(&queries, &prototypes, dim, &grad, &mut gq, &mut gp).unwrap();
            let objective = |queries: &[f32], prototypes: &[f32]| -> f64 {
                let mut total = 0.0;
                for i in 0..q {
                    for j in 0..n {
                        let d: f64 = (0..dim)
                            .map(|k| {
                                (f64::from(queries[i * dim + k]) - f64::from(prototypes[j * dim + k])).powi(2)
                            })
                            .sum();
                        total += d * f64::from(grad[i * n + j]);
                    }
                }
                total
            };
            for (at, &g) in gq.iter().enumerate() {
                let mut up = queries.clone();
                let mut down = queries.clone();
                up[at] += 0.5;
                down[at] -= 0.5;
                let expected = objective(&up, &prototypes) - objective(&down, &prototypes);
                assert!((f64::from(g) - expected).abs() < 1e-3);
            }
            for (at, &g) in gp.iter().enumerate() {
                let mut up = prototypes.clone();
                let mut down = prototypes.clone();
                up[at] += 0.5;
                down[at] -= 0.5;
                let expected = objective(&queries, &up) - objective(&queries, &down);
                assert!((f64::from(g) - expected).abs() < 1e-3);
            }
            let d: f64 = out.iter().zip(&grad).map(|(d, g)| f64::from(*d) * f64::from(*g)).sum();
            assert!((d - objective(&queries, &prototypes)).abs() < 1e-3);
        }
    }
}
