//! What follows a backbone: linear heads, cross-entropy, distances to prototypes, and Adam.
//!
//! Functions work on flat slices in row-major order and use the instruction set of [`crate::simd_name`].

mod adam;
mod distance;
mod loss;
mod packed;
mod product;
mod softmax;

pub use adam::Adam;
pub use distance::{squared_distances, squared_distances_backward};
pub use loss::cross_entropy;
pub use packed::PackedMatrix;
pub use product::Product;
pub use softmax::{softmax, softmax_of, sum_of_exponentials};

use crate::error::{KernelError, check_len};

/// `y = x W' + b` for `x: [n, dim]`, `weight: [out, dim]`, `bias: [out]`, `y: [n, out]`.
pub fn forward(
    x: &[f32],
    weight: &[f32],
    bias: Option<&[f32]>,
    dim: usize,
    y: &mut [f32],
) -> Result<(), KernelError> {
    let (n, out) = (rows("x", x.len(), dim)?, rows("weight", weight.len(), dim)?);
    check_len("y", y.len(), n * out)?;
    if let Some(bias) = bias {
        check_len("bias", bias.len(), out)?;
    }
    // Vectors run along the rows of x, so x is transposed: it is the smaller of the two.
    let mut transposed = vec![0.0; x.len()];
    for (i, row) in x.chunks_exact(dim.max(1)).enumerate() {
        for (k, &value) in row.iter().enumerate() {
            transposed[k * n + i] = value;
        }
    }
    let mut result = vec![0.0; n * out];
    Product { a: weight, a_row: dim, a_step: 1, b: &transposed, steps: dim, columns: n }.run(&mut result);
    for (i, row) in y.chunks_exact_mut(out.max(1)).enumerate() {
        for (o, value) in row.iter_mut().enumerate() {
            *value = result[o * n + i] + bias.map_or(0.0, |b| b[o]);
        }
    }
    Ok(())
}

/// Gradients of [`forward`]: `grad_weight: [out, dim]`, `grad_bias: [out]` and, where wanted,
/// `grad_x: [n, dim]` are overwritten.
pub fn backward(
    x: &[f32],
    weight: &[f32],
    grad_y: &[f32],
    dim: usize,
    grad_weight: &mut [f32],
    grad_bias: &mut [f32],
    grad_x: Option<&mut [f32]>,
) -> Result<(), KernelError> {
    let (n, out) = (rows("x", x.len(), dim)?, rows("weight", weight.len(), dim)?);
    check_len("grad_y", grad_y.len(), n * out)?;
    check_len("grad_weight", grad_weight.len(), weight.len())?;
    check_len("grad_bias", grad_bias.len(), out)?;
    Product { a: grad_y, a_row: 1, a_step: out, b: x, steps: n, columns: dim }.run(grad_weight);
    grad_bias.fill(0.0);
    for row in grad_y.chunks_exact(out.max(1)) {
        for (sum, value) in grad_bias.iter_mut().zip(row) {
            *sum += value;
        }
    }
    if let Some(grad_x) = grad_x {
        check_len("grad_x", grad_x.len(), x.len())?;
        Product { a: grad_y, a_row: out, a_step: 1, b: weight, steps: out, columns: dim }.run(grad_x);
    }
    Ok(())
}

/// Number of rows of `dim` values.
fn rows(what: &str, len: usize, dim: usize) -> Result<usize, KernelError> {
    let rows = len.checked_div(dim).unwrap_or(0);
    check_len(what, len, rows * dim)?;
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(n: usize, seed: u32) -> Vec<f32> {
        (0..n as u32).map(|i| ((i * 7919 + seed * 104_729) % 1000) as f32 / 500.0 - 1.0).collect()
    }

    #[test]
    fn forward_and_backward_agree_with_the_definition() {
        for (n, dim, out) in [(1, 1, 1), (3, 5, 2), (10, 64, 33), (17, 40, 7), (128, 16, 19)] {
            let (x, w, b, g) = (values(n * dim, 1), values(out * dim, 2), values(out, 3), values(n * out, 4));
            let mut y = vec![0.0; n * out];
            forward(&x, &w, Some(&b), dim, &mut y).unwrap();
            let (mut gw, mut gb, mut gx) = (vec![9.0; w.len()], vec![9.0; out], vec![9.0; x.len()]);
            backward(&x, &w, &g, dim, &mut gw, &mut gb, Some(&mut gx)).unwrap();
            for i in 0..n {
                for o in 0..out {
                    let expected: f64 =
                        (0..dim).map(|k| f64::from(x[i * dim + k]) * f64::from(w[o * dim + k])).sum::<f64>()
                            + f64::from(b[o]);
                    assert!((f64::from(y[i * out + o]) - expected).abs() < 1e-4);
                }
                for k in 0..dim {
                    let expected: f64 =
                        (0..out).map(|o| f64::from(g[i * out + o]) * f64::from(w[o * dim + k])).sum();
                    assert!((f64::from(gx[i * dim + k]) - expected).abs() < 1e-4);
                }
            }
            for o in 0..out {
                let expected: f64 = (0..n).map(|i| f64::from(g[i * out + o])).sum();
                assert!((f64::from(gb[o]) - expected).abs() < 1e-4);
                for k in 0..dim {
                    let expected: f64 =
                        (0..n).map(|i| f64::from(g[i * out + o]) * f64::from(x[i * dim + k])).sum();
                    assert!((f64::from(gw[o * dim + k]) - expected).abs() < 1e-4);
                }
            }
        }
    }

    #[test]
    fn wrong_lengths_are_refused() {
        let mut y = [0.0; 4];
        assert!(forward(&[0.0; 5], &[0.0; 4], None, 2, &mut y).is_err());
        assert!(forward(&[0.0; 4], &[0.0; 4], Some(&[0.0]), 2, &mut y).is_err());
        assert!(forward(&[], &[], None, 0, &mut []).is_ok());
    }
}
