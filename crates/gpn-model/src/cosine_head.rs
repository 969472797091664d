//! The cosine classifier of Baseline++ (Chen et al. 2019), with cross entropy.

use gpn_kernels::linear;

use crate::error::{ModelError, Result};
use crate::head::{HeadPass, check_labels};
use crate::init::first_values;
use crate::tensors::{TensorList, tensor_info};
use crate::trainable::{Trainable, TrainableTensors};
use crate::vector::{add_scaled, dot};

/// Name of the parameter in weight files.
const NAME: &str = "cosine_classifier.weight";
/// Seeds of head and backbone may be the same; their random streams are not.
const FIRST_INDEX: usize = 1 << 19;
/// Vectors shorter than this have no direction: their cosines are 0, and so are their gradients.
const SHORTEST: f32 = 1e-8;

/// Classifier over embeddings whose logits are `scale * cos(embedding, weight of the class)`. Its parameter is
/// `cosine_classifier.weight: [classes, embedding_len]`.
///
/// ```
/// use gpn_model::{Adam, CosineHead, Trainable};
///
/// let mut head = CosineHead::new(2, 10, 10.0, 1)?; // embeddings of 2, 10 classes
/// let pass = head.forward_backward(&[0.5, -1.0, 2.0, 0.0], &[3, 9])?;
/// assert!(pass.logits.iter().all(|logit| logit.abs() < 10.001));
/// Adam::default().step(&mut head.updates(), 1e-3, 1)?;
/// # Ok::<(), gpn_model::ModelError>(())
/// ```
#[derive(Clone, Debug)]
pub struct CosineHead {
    embedding_len: usize,
    classes: usize,
    scale: f32,
    tensors: TrainableTensors,
}

impl CosineHead {
    /// A head with fresh parameters, which depend on `seed` alone. `scale` stretches cosines to logits; the paper's
    /// authors take 10 for more than 200 classes.
    pub fn new(embedding_len: usize, classes: usize, scale: f32, seed: u64) -> Result<Self> {
        for (what, value) in [("length of embeddings", embedding_len), ("number of classes", classes)] {
            if value == 0 {
                return Err(ModelError::Zero { what });
            }
        }
        if !(scale > 0.0 && scale.is_finite()) {
            return Err(ModelError::NotPositive { what: "scale of the cosine classifier", value: scale });
        }
        let infos = vec![tensor_info(NAME, [classes, embedding_len])];
        let parameters = TensorList::new(infos, |index, info| first_values(info, FIRST_INDEX + index, seed));
        let tensors = TrainableTensors::new(parameters, TensorList::default());
        Ok(Self { embedding_len, classes, scale, tensors })
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Logits `[n, classes]` of `embeddings: [n, embedding_len]`.
    pub fn logits(&self, embeddings: &[f32]) -> Result<Vec<f32>> {
        if !embeddings.len().is_multiple_of(self.embedding_len) {
            return Err(ModelError::WrongLength {
                what: "embeddings",
                expected: format!("a multiple of {}", self.embedding_len),
                got: embeddings.len(),
            });
        }
        let units = Units::of(embeddings, self.embedding_len);
        self.unit_logits(&units, &Units::of(self.weight(), self.embedding_len))
    }

    /// Loss of `embeddings: [n, embedding_len]` against `labels: [n]`, with the gradients of the embeddings (returned)
    /// and of the parameters (kept for [`updates`](Trainable::updates)).
    pub fn forward_backward(&mut self, embeddings: &[f32], labels: &[usize]) -> Result<HeadPass> {
        let len = self.embedding_len;
        if labels.is_empty() || embeddings.len() != labels.len() * len {
            return Err(ModelError::WrongLength {
                what: "embeddings",
                expected: format!("{} labels x {len}, at least one", labels.len()),
                got: embeddings.len(),
            });
        }
        check_labels(labels, self.classes)?;
        let (units, weights) = (Units::of(embeddings, len), Units::of(self.weight(), len));
        let logits = self.unit_logits(&units, &weights)?;
        let mut grad_cosines = vec![0.0; logits.len()];
        let loss = linear::cross_entropy(&logits, labels, self.classes, &mut grad_cosines)?;
        for grad in &mut grad_cosines {
            *grad *= self.scale;
        }
        let mut grad_embeddings = vec![0.0; embeddings.len()];
        let grad_weight = &mut self.tensors.gradients[0];
        // The classifier has no bias: this gradient is computed and not used.
        let mut grad_bias = vec![0.0; self.classes];
        linear::backward(
            &units.values,
            &weights.values,
            &grad_cosines,
            len,
            grad_weight,
            &mut grad_bias,
            Some(&mut grad_embeddings),
        )?;
        weights.backward(grad_weight);
        units.backward(&mut grad_embeddings);
        Ok(HeadPass { loss, logits, grad_embeddings })
    }

    /// The weights of all classes, `[classes, embedding_len]`.
    fn weight(&self) -> &[f32] {
        &self.tensors.parameters.values()[0]
    }

    /// The same, to be changed in place.
    pub(crate) fn weight_mut(&mut self) -> &mut [f32] {
        &mut self.tensors.parameters.values_mut()[0]
    }

    fn unit_logits(&self, embeddings: &Units, weights: &Units) -> Result<Vec<f32>> {
        let mut logits = vec![0.0; embeddings.lengths.len() * self.classes];
        linear::forward(&embeddings.values, &weights.values, None, self.embedding_len, &mut logits)?;
        for logit in &mut logits {
            *logit *= self.scale;
        }
        Ok(logits)
    }
}

impl Trainable for CosineHead {
    fn title(&self) -> String {
        "the cosine classifier".into()
    }

    fn tensors(&self) -> &TrainableTensors {
        &self.tensors
    }

    fn tensors_mut(&mut self) -> &mut TrainableTensors {
        &mut self.tensors
    }
}

/// Rows of a matrix divided by their lengths.
struct Units {
    /// Length of a row, in values.
    columns: usize,
    values: Vec<f32>,
    /// Euclidean lengths of the rows.
    lengths: Vec<f32>,
}

impl Units {
    fn of(rows: &[f32], columns: usize) -> Self {
        let mut values = vec![0.0; rows.len()];
        let pairs = rows.chunks_exact(columns).zip(values.chunks_exact_mut(columns));
        let lengths = pairs.map(|(row, unit)| to_unit(row, unit)).collect();
        Self { columns, values, lengths }
    }

    /// Turns gradients of the units into those of the rows, in place.
    fn backward(&self, grads: &mut [f32]) {
        let units = self.values.chunks_exact(self.columns);
        for ((grad, unit), &length) in grads.chunks_exact_mut(self.columns).zip(units).zip(&self.lengths) {
            unit_backward(unit, length, grad);
        }
    }
}

/// Writes the vector of length 1 that points where `row` points, and returns the length of `row`. A vector without
/// direction becomes 0.
pub(crate) fn to_unit(row: &[f32], unit: &mut [f32]) -> f32 {
    let length = dot(row, row).sqrt();
    let factor = if length < SHORTEST { 0.0 } else { 1.0 / length };
    for (unit, value) in unit.iter_mut().zip(row) {
        *unit = factor * value;
    }
    length
}

/// Turns the gradient of a unit into that of the row of the given length from which [`to_unit`] made it, in place.
pub(crate) fn unit_backward(unit: &[f32], length: f32, grad: &mut [f32]) {
    if length < SHORTEST {
        grad.fill(0.0);
        return;
    }
    let along = dot(unit, grad);
    add_scaled(grad, -along, unit);
    for grad in grad {
        *grad /= length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(n: usize, by: usize) -> Vec<f32> {
        (0..n).map(|i| ((i * by) % 23) as f32 / 8.0 - 1.4).collect()
    }

    /// The loss in f64, by the definition.
    fn loss(embeddings: &[f64], weight: &[f64], labels: &[usize], len: usize, scale: f64) -> f64 {
        let norm = |row: &[f64]| row.iter().map(|v| v * v).sum::<f64>().sqrt();
        let of = |(x, &label): (&[f64], &usize)| {
            let logits: Vec<f64> = weight
                .chunks(len)
                .map(|w| scale * x.iter().zip(w).map(|(x, w)| x * w).sum::<f64>() / (norm(x) * norm(w)))
                .collect();
            logits.iter().map(|logit| logit.exp()).sum::<f64>().ln() - logits[label]
        };
        embeddings.chunks(len).zip(labels).map(of).sum::<f64>() / labels.len() as f64
    }

    #[test]
    fn gradients_match_finite_differences() {
        let (len, classes, labels) = (5, 4, [3, 0, 2]);
        let mut head = CosineHead::new(len, classes, 3.0, 2).unwrap();
        let embeddings = values(labels.len() * len, 7);
        let pass = head.forward_backward(&embeddings, &labels).unwrap();
        assert_eq!(head.logits(&embeddings).unwrap(), pass.logits);
        let wide = |values: &[f32]| values.iter().map(|&v| f64::from(v)).collect::<Vec<f64>>();
        let points = [wide(&embeddings), wide(head.weight())];
        let at = |points: &[Vec<f64>; 2]| loss(&points[0], &points[1], &labels, len, 3.0);
        assert!((f64::from(pass.loss) - at(&points)).abs() < 1e-5);
        for (which, got) in [&pass.grad_embeddings, &head.tensors.gradients[0]].into_iter().enumerate() {
            for (i, &got) in got.iter().enumerate() {
                let nudged = |step: f64| {
                    let mut points = points.clone();
                    points[which][i] += step;
                    at(&points)
                };
                let expected = (nudged(1e-6) - nudged(-1e-6)) / 2e-6;
                assert!((f64::from(got) - expected).abs() < 1e-5, "{which} {i}: {got} {expected}");
            }
        }
    }

    #[test]
    fn vectors_without_direction_stay_finite() {
        let mut head = CosineHead::new(3, 2, 10.0, 1).unwrap();
        head.weight_mut()[..3].fill(0.0);
        let pass = head.forward_backward(&[0.0, 0.0, 0.0, 1.0, 2.0, 3.0], &[0, 1]).unwrap();
        assert_eq!(pass.logits[..3], [0.0; 3]);
        assert_eq!(pass.grad_embeddings[..3], [0.0; 3]);
        let all = pass.grad_embeddings.iter().chain(&head.tensors.gradients[0]).chain([&pass.loss]);
        assert!(all.into_iter().all(|value| value.is_finite()));
    }

    #[test]
    fn wrong_calls_are_refused() {
        assert!(CosineHead::new(0, 3, 10.0, 1).is_err());
        let message = CosineHead::new(2, 3, f32::NAN, 1).unwrap_err().to_string();
        assert!(message.contains("scale of the cosine classifier must be a positive number"), "{message}");
        let mut head = CosineHead::new(2, 3, 10.0, 1).unwrap();
        assert!(matches!(head.logits(&[0.0; 3]), Err(ModelError::WrongLength { .. })));
        assert!(matches!(head.forward_backward(&[], &[]), Err(ModelError::WrongLength { .. })));
        let label = head.forward_backward(&[0.0; 2], &[3]);
        assert!(matches!(label, Err(ModelError::LabelOutOfRange { .. })));
    }

    #[test]
    fn weight_files_go_round() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("head.safetensors");
        let head = CosineHead::new(3, 4, 10.0, 1).unwrap();
        crate::save_weights(&file, head.parameters().iter(), None).unwrap();
        let mut other = CosineHead::new(3, 4, 10.0, 2).unwrap();
        other.load(&crate::Weights::read(&file).unwrap()).unwrap();
        assert_eq!(other.parameters(), head.parameters());
    }
}
