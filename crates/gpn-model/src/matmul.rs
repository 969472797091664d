//! The three products of a linear map and its gradient, for matrices of a few dozen rows.

use gpn_kernels::linear::Product;

/// `x w^T`: `x` is `[rows, inputs]`, `w` is `[outputs, inputs]`, the result `[rows, outputs]`.
pub(crate) fn x_wt(x: &[f32], w: &[f32], inputs: usize, outputs: usize) -> Vec<f32> {
    let turned = transposed(w, inputs, outputs);
    let mut y = vec![0.0; x.len() / inputs * outputs];
    Product { a: x, a_row: inputs, a_step: 1, b: &turned, steps: inputs, columns: outputs }.run(&mut y);
    y
}

/// `w_grad = g^T x`: `g` is `[rows, outputs]`, `x` is `[rows, inputs]`, `w_grad` is `[outputs, inputs]`.
pub(crate) fn gt_x(g: &[f32], x: &[f32], outputs: usize, inputs: usize, w_grad: &mut [f32]) {
    let steps = g.len() / outputs;
    Product { a: g, a_row: 1, a_step: outputs, b: x, steps, columns: inputs }.run(w_grad);
}

/// `x_grad += g w`: `g` is `[rows, outputs]`, `w` is `[outputs, inputs]`, `x_grad` is `[rows, inputs]`.
pub(crate) fn add_g_w(g: &[f32], w: &[f32], outputs: usize, inputs: usize, x_grad: &mut [f32]) {
    let mut product = vec![0.0; x_grad.len()];
    Product { a: g, a_row: outputs, a_step: 1, b: w, steps: outputs, columns: inputs }.run(&mut product);
    crate::vector::add_scaled(x_grad, 1.0, &product);
}

/// `w: [outputs, inputs]` with rows and columns exchanged, in blocks that stay in the nearest cache.
fn transposed(w: &[f32], inputs: usize, outputs: usize) -> Vec<f32> {
    const BLOCK: usize = 16;
    let mut turned = vec![0.0; w.len()];
    for first in (0..outputs).step_by(BLOCK) {
        let block = BLOCK.min(outputs - first);
        for input in 0..inputs {
            let row = &mut turned[input * outputs + first..][..block];
            for (place, value) in row.iter_mut().enumerate() {
                *value = w[(first + place) * inputs + input];
            }
        }
    }
    turned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_agree_with_the_definition() {
        for (rows, inputs, outputs) in [(1, 1, 1), (3, 5, 33), (42, 64, 128), (7, 40, 20)] {
            let values = |n: usize, by: usize| -> Vec<f32> {
                (0..n).map(|i| ((i * by) % 17) as f32 / 8.0 - 1.0).collect()
            };
            let (x, w, g) =
                (values(rows * inputs, 5), values(outputs * inputs, 7), values(rows * outputs, 3));
            let y = x_wt(&x, &w, inputs, outputs);
            let (mut w_grad, mut x_grad) = (vec![9.0; w.len()], vec![1.0; x.len()]);
            gt_x(&g, &x, outputs, inputs, &mut w_grad);
            add_g_w(&g, &w, outputs, inputs, &mut x_grad);
            let near = |got: f32, terms: &mut dyn Iterator<Item = f32>| {
                assert!((got - terms.sum::<f32>()).abs() < 1e-4);
            };
            for r in 0..rows {
                for o in 0..outputs {
                    near(y[r * outputs + o], &mut (0..inputs).map(|i| x[r * inputs + i] * w[o * inputs + i]));
                }
                for i in 0..inputs {
                    let mut terms = (0..outputs).map(|o| g[r * outputs + o] * w[o * inputs + i]);
                    near(x_grad[r * inputs + i] - 1.0, &mut terms);
                }
            }
            for o in 0..outputs {
                for i in 0..inputs {
                    let mut terms = (0..rows).map(|r| g[r * outputs + o] * x[r * inputs + i]);
                    near(w_grad[o * inputs + i], &mut terms);
                }
            }
        }
    }
}
