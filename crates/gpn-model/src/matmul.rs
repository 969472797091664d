//! The three products of a linear map and its gradient, for matrices of a few dozen rows.

use crate::vector::{add_scaled, dot};

/// `x w^T`: `x` is `[rows, inputs]`, `w` is `[outputs, inputs]`, the result `[rows, outputs]`.
pub(crate) fn x_wt(x: &[f32], w: &[f32], inputs: usize, outputs: usize) -> Vec<f32> {
    let mut y = vec![0.0; x.len() / inputs * outputs];
    for (x, y) in x.chunks_exact(inputs).zip(y.chunks_exact_mut(outputs)) {
        for (w, y) in w.chunks_exact(inputs).zip(y) {
            *y = dot(x, w);
        }
    }
    y
}

/// `w_grad += g^T x`: `g` is `[rows, outputs]`, `x` is `[rows, inputs]`, `w_grad` is `[outputs, inputs]`.
pub(crate) fn add_gt_x(g: &[f32], x: &[f32], outputs: usize, inputs: usize, w_grad: &mut [f32]) {
    for (g, x) in g.chunks_exact(outputs).zip(x.chunks_exact(inputs)) {
        for (&g, w_grad) in g.iter().zip(w_grad.chunks_exact_mut(inputs)) {
            add_scaled(w_grad, g, x);
        }
    }
}

/// `x_grad += g w`: `g` is `[rows, outputs]`, `w` is `[outputs, inputs]`, `x_grad` is `[rows, inputs]`.
pub(crate) fn add_g_w(g: &[f32], w: &[f32], outputs: usize, inputs: usize, x_grad: &mut [f32]) {
    for (g, x_grad) in g.chunks_exact(outputs).zip(x_grad.chunks_exact_mut(inputs)) {
        for (&g, w) in g.iter().zip(w.chunks_exact(inputs)) {
            add_scaled(x_grad, g, w);
        }
    }
}
