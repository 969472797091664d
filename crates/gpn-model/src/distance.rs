//! Classification by squared distance to prototypes, with cross entropy.

use gpn_kernels::linear;
pub use gpn_kernels::search::squared_distance;

use crate::error::{ModelError, Result};
use crate::head::check_labels;

/// Result of [`distance_loss`].
#[derive(Clone, Debug, PartialEq)]
pub struct DistancePass {
    /// Mean of `-log Pr(label | query)` over the queries.
    pub loss: f32,
    /// `-||query - prototype||^2`, `[queries, classes]`.
    pub logits: Vec<f32>,
    /// Gradient of the loss with respect to the queries, `[queries, len]`.
    pub grad_queries: Vec<f32>,
    /// Gradient of the loss with respect to the prototypes, `[classes, len]`.
    pub grad_prototypes: Vec<f32>,
}

/// Loss of `queries: [queries, len]` whose class is that of the nearest of `prototypes: [classes, len]`, where
/// `Pr(y | q) = softmax_y(-||q - P_y||^2)`, against `labels: [queries]`. Takes `O(queries * classes * len)`.
///
/// ```
/// let pass = gpn_model::distance_loss(&[0.9, 0.1], &[1.0, 0.0, 0.0, 1.0], &[0], 2)?;
/// assert!(pass.logits[0] > pass.logits[1]);
/// assert!(pass.loss < 0.2);
/// # Ok::<(), gpn_model::ModelError>(())
/// ```
pub fn distance_loss(
    queries: &[f32],
    prototypes: &[f32],
    labels: &[usize],
    len: usize,
) -> Result<DistancePass> {
    if len == 0 {
        return Err(ModelError::Zero { what: "length of embeddings" });
    }
    let n = labels.len();
    if n == 0 || queries.len() != n * len {
        let expected = format!("{n} labels x {len}, at least one");
        return Err(ModelError::WrongLength { what: "queries", expected, got: queries.len() });
    }
    if prototypes.is_empty() || !prototypes.len().is_multiple_of(len) {
        let expected = format!("a multiple of {len}, at least one prototype");
        return Err(ModelError::WrongLength { what: "prototypes", expected, got: prototypes.len() });
    }
    let classes = prototypes.len() / len;
    check_labels(labels, classes)?;

    let mut logits = vec![0.0; n * classes];
    linear::squared_distances(queries, prototypes, len, &mut logits)?;
    negate(&mut logits);
    let mut grad = vec![0.0; logits.len()];
    let loss = linear::cross_entropy(&logits, labels, classes, &mut grad)?;
    negate(&mut grad);
    let mut grad_queries = vec![0.0; queries.len()];
    let mut grad_prototypes = vec![0.0; prototypes.len()];
    linear::squared_distances_backward(
        queries,
        prototypes,
        len,
        &grad,
        &mut grad_queries,
        &mut grad_prototypes,
    )?;
    Ok(DistancePass { loss, logits, grad_queries, grad_prototypes })
}

/// A logit is a negative distance.
fn negate(values: &mut [f32]) {
    for value in values {
        *value = -*value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gradients_are_those_of_finite_differences() {
        let len = 11;
        let value = |i: usize| ((i * 37 % 23) as f32 - 11.0) / 20.0;
        let queries: Vec<f32> = (0..3 * len).map(value).collect();
        let prototypes: Vec<f32> = (0..4 * len).map(|i| value(i + 5)).collect();
        let labels = [2, 0, 3];
        let pass = distance_loss(&queries, &prototypes, &labels, len).unwrap();
        let loss = |q: &[f32], p: &[f32]| distance_loss(q, p, &labels, len).unwrap().loss;
        let difference = |values: &[f32], i: usize, loss: &dyn Fn(&[f32]) -> f32| {
            let at = |shift: f32| {
                let mut moved = values.to_vec();
                moved[i] += shift;
                loss(&moved)
            };
            (at(0.01) - at(-0.01)) / 0.02
        };
        for i in 0..queries.len() {
            let expected = difference(&queries, i, &|q| loss(q, &prototypes));
            assert!((pass.grad_queries[i] - expected).abs() < 1e-3, "query {i}");
        }
        for i in 0..prototypes.len() {
            let expected = difference(&prototypes, i, &|p| loss(&queries, p));
            assert!((pass.grad_prototypes[i] - expected).abs() < 1e-3, "prototype {i}");
        }
    }

    #[test]
    fn far_queries_give_finite_losses() {
        let pass = distance_loss(&[1e4], &[0.0, 1.0], &[0], 1).unwrap();
        assert!(pass.loss.is_finite() && pass.grad_queries[0].is_finite());
    }

    #[test]
    fn wrong_lengths_are_refused() {
        assert!(distance_loss(&[1.0; 3], &[1.0; 4], &[0], 2).is_err());
        assert!(distance_loss(&[1.0; 2], &[1.0; 3], &[0], 2).is_err());
        assert!(distance_loss(&[1.0; 2], &[1.0; 4], &[2], 2).is_err());
        assert!(distance_loss(&[], &[1.0; 4], &[], 2).is_err());
    }
}
