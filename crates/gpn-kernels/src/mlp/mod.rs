//! Linear layers with ReLU between them, forward and backward, in memory that is kept from batch to batch.
//!
//! Vectors run along the samples of a batch, so that activations are transposed, `[values, samples]`, and
//! weights are read as they are. A few-shot task has 10 to 100 samples: they fit into the columns of one
//! register tile, and weights are read once.

mod strip;

use std::ops::Range;
use std::sync::Mutex;

use crate::buffer::Buffer;
use crate::error::{KernelError, check_len};
use crate::parallel::Shared;
use crate::reservation::Reservation;
use crate::simd::Simd;
use crate::team::Team;
use strip::{Finish, LINE, Strip};

/// Rows of a product that one thread computes at once: a multiple of the heights of most tiles.
const ROWS: usize = 60;
/// Sums of products below which threads are not woken: they come when the work is done.
const ALONE: usize = 1 << 20;

/// Linear layers of fixed lengths, with the work buffers of a training step. Weights stay with the caller:
/// for each layer `[outputs, inputs]` and a bias `[outputs]`.
///
/// Results are the same bits with any number of threads, and those of
/// [`linear::forward`](crate::linear::forward) and [`linear::backward`](crate::linear::backward).
pub struct Mlp {
    simd: Simd,
    /// Length of a sample, then the outputs of each layer.
    lengths: Vec<usize>,
    /// What goes into each layer and what comes out of the last, transposed:
    /// `[length, samples in whole lines]`.
    transposed: Vec<Buffer>,
    /// What goes into each layer, sample by sample; the last is empty.
    inputs: Vec<Buffer>,
    /// Gradients of `transposed`; that of the samples is not computed, and the first is empty.
    grads: Vec<Buffer>,
    /// Samples of the last forward pass, until a backward pass has gone through it.
    samples: Option<usize>,
}

impl Mlp {
    /// Layers of these lengths: that of a sample, then the outputs of each layer.
    pub fn new(lengths: Vec<usize>) -> Self {
        let buffers = || lengths.iter().map(|_| Buffer::zeroed(0)).collect();
        let (transposed, inputs, grads) = (buffers(), buffers(), buffers());
        Self { simd: Simd::chosen(), lengths, transposed, inputs, grads, samples: None }
    }

    /// Embeds `samples: [n, length]` into `embeddings: [n, last length]` and keeps what
    /// [`backward`](Self::backward) needs. `params` are weight and bias of each layer.
    pub fn forward(
        &mut self,
        params: &[Vec<f32>],
        samples: &[f32],
        n: usize,
        embeddings: &mut [f32],
    ) -> Result<(), KernelError> {
        self.check(params, "parameters")?;
        check_len("samples", samples.len(), n * self.lengths[0])?;
        let layers = self.layers();
        check_len("embeddings", embeddings.len(), n * self.lengths[layers])?;
        self.samples = Some(n);
        if n == 0 {
            return Ok(());
        }
        let line = lines(n);
        for (layer, &length) in self.lengths.iter().enumerate() {
            self.transposed[layer].reserve(length * line);
            if layer > 0 {
                self.grads[layer].reserve(length * line);
            }
            if layer < layers {
                self.inputs[layer].reserve(n * row_of(length));
            }
        }
        self.with_team(n, |mlp, team| {
            mlp.load_samples(team, samples, n);
            for layer in 0..layers {
                mlp.forward_layer(team, layer, params, n);
            }
            mlp.write_embeddings(team, n, embeddings);
        });
        Ok(())
    }

    /// The gradients of all parameters, which are overwritten, for that of the last forward pass's
    /// embeddings. Each forward pass has one backward pass.
    pub fn backward(
        &mut self,
        params: &[Vec<f32>],
        grad_embeddings: &[f32],
        gradients: &mut [Vec<f32>],
    ) -> Result<(), KernelError> {
        let n = self.samples.ok_or(KernelError::NoForward)?;
        self.check(params, "parameters")?;
        self.check(gradients, "gradients")?;
        let dim = self.lengths[self.layers()];
        check_len("gradient of the embeddings", grad_embeddings.len(), n * dim)?;
        self.samples = None;
        if n == 0 {
            for gradient in gradients {
                gradient.fill(0.0);
            }
            return Ok(());
        }
        self.with_team(n, |mlp, team| {
            let line = lines(n);
            let out = Shared::new(&mut mlp.grads[mlp.lengths.len() - 1][..dim * line], line);
            team.for_each(parts(dim), |part, ()| {
                let rows = part_of(part, dim);
                // SAFETY: every row is asked for once.
                let out = unsafe { out.items(rows.clone()) };
                transpose(&grad_embeddings[rows.start..], dim, n, out, line, rows.len());
            });
            for layer in (0..mlp.layers()).rev() {
                mlp.backward_layer(team, layer, params, gradients, n);
            }
        });
        Ok(())
    }

    fn layers(&self) -> usize {
        self.lengths.len() - 1
    }

    fn check(&self, tensors: &[Vec<f32>], what: &str) -> Result<(), KernelError> {
        check_len(what, tensors.len(), 2 * self.layers())?;
        for (lengths, tensors) in self.lengths.windows(2).zip(tensors.chunks_exact(2)) {
            check_len(what, tensors[0].len(), lengths[0] * lengths[1])?;
            check_len(what, tensors[1].len(), lengths[1])?;
        }
        Ok(())
    }

    /// Runs a pass over `n` samples with a team of the current rayon pool, or alone where there is little to
    /// do.
    fn with_team(&mut self, n: usize, pass: impl FnOnce(&mut Self, &Team<'_, ()>)) {
        let work: usize = self.lengths.windows(2).map(|lengths| lengths[0] * lengths[1] * n).sum();
        let is_small = work < ALONE;
        let reservation = if is_small { Reservation::free_threads(1) } else { Reservation::whole_pool() };
        let workers: Vec<Mutex<()>> = (0..reservation.threads()).map(|_| Mutex::new(())).collect();
        Team::gather(&workers, |team| pass(self, team));
    }

    /// Keeps the samples, both ways round.
    fn load_samples(&mut self, team: &Team<'_, ()>, samples: &[f32], n: usize) {
        let (length, line) = (self.lengths[0], lines(n));
        let row = row_of(length);
        let transposed = Shared::new(&mut self.transposed[0][..length * line], line);
        team.for_each(parts(length), |part, ()| {
            let rows = part_of(part, length);
            // SAFETY: every row is asked for once.
            let out = unsafe { transposed.items(rows.clone()) };
            transpose(&samples[rows.start..], length, n, out, line, rows.len());
        });
        for (to, from) in self.inputs[0].chunks_exact_mut(row).zip(samples.chunks_exact(length.max(1))) {
            to[..length].copy_from_slice(from);
        }
    }

    fn forward_layer(&mut self, team: &Team<'_, ()>, layer: usize, params: &[Vec<f32>], n: usize) {
        let ([inputs, outputs], line) = ([self.lengths[layer], self.lengths[layer + 1]], lines(n));
        let (weight, bias) = (&params[2 * layer], &params[2 * layer + 1]);
        let finish = if layer + 1 < self.layers() { Finish::BiasRelu(bias) } else { Finish::Bias(bias) };
        let (before, after) = self.transposed.split_at_mut(layer + 1);
        let (b, simd) = (&before[layer][..inputs * line], self.simd);
        let out = Shared::new(&mut after[0][..outputs * line], line);
        team.for_each(parts(outputs), |part, ()| {
            let rows = part_of(part, outputs);
            // SAFETY: every row is asked for once.
            let out = unsafe { out.items(rows.clone()) };
            simd.run(Strip {
                a: weight,
                a_row: inputs,
                a_step: 1,
                b,
                b_row: line,
                steps: inputs,
                rows,
                columns: line,
                out,
                out_row: line,
                finish,
            });
        });
    }

    /// The embeddings, sample by sample.
    fn write_embeddings(&mut self, team: &Team<'_, ()>, n: usize, embeddings: &mut [f32]) {
        let (dim, line) = (self.lengths[self.layers()], lines(n));
        let transposed = &self.transposed[self.layers()][..dim * line];
        let out = Shared::new(embeddings, dim);
        team.for_each(n.div_ceil(LINE), |part, ()| {
            let samples = part * LINE..((part + 1) * LINE).min(n);
            // SAFETY: every sample is asked for once.
            let out = unsafe { out.items(samples.clone()) };
            transpose(&transposed[samples.start..], line, dim, out, dim, samples.len());
        });
    }

    /// Gradients of a layer's weights, and of its inputs where another layer comes before it.
    fn backward_layer(
        &mut self,
        team: &Team<'_, ()>,
        layer: usize,
        params: &[Vec<f32>],
        gradients: &mut [Vec<f32>],
        n: usize,
    ) {
        let ([inputs, outputs], line) = ([self.lengths[layer], self.lengths[layer + 1]], lines(n));
        let row = row_of(inputs);
        let transposed = &self.transposed[layer][..inputs * line];
        if layer > 0 {
            let rows = Shared::new(&mut self.inputs[layer][..n * row], row);
            team.for_each(n.div_ceil(LINE), |part, ()| {
                let samples = part * LINE..((part + 1) * LINE).min(n);
                // SAFETY: every sample is asked for once.
                let out = unsafe { rows.items(samples.clone()) };
                transpose(&transposed[samples.start..], line, inputs, out, row, samples.len());
            });
        }
        let (before, after) = self.grads.split_at_mut(layer + 1);
        let grad = &after[0][..outputs * line];
        let [grad_weight, grad_bias] = &mut gradients[2 * layer..2 * layer + 2] else {
            // invariant: `check` found two tensors per layer.
            unreachable!()
        };
        let (grad_weight, grad_bias) = (Shared::new(grad_weight, inputs), Shared::new(grad_bias, 1));
        let of_inputs = if layer > 0 { inputs } else { 0 };
        let grad_inputs = Shared::new(&mut before[layer][..of_inputs * line], line);
        let (weight, kept, simd) = (&params[2 * layer], &self.inputs[layer][..], self.simd);
        let of_weights = parts(outputs);
        team.for_each(of_weights + parts(of_inputs), |part, ()| {
            if let Some(part) = part.checked_sub(of_weights) {
                let rows = part_of(part, inputs);
                // SAFETY: every row is asked for once.
                let out = unsafe { grad_inputs.items(rows.clone()) };
                simd.run(Strip {
                    a: weight,
                    a_row: 1,
                    a_step: inputs,
                    b: grad,
                    b_row: line,
                    steps: outputs,
                    rows,
                    columns: line,
                    out,
                    out_row: line,
                    finish: Finish::WherePositive(transposed),
                });
                return;
            }
            let rows = part_of(part, outputs);
            // SAFETY: every row is asked for once.
            let (out, bias) = unsafe { (grad_weight.items(rows.clone()), grad_bias.items(rows.clone())) };
            sum_rows(&grad[rows.start * line..], line, n, bias);
            simd.run(Strip {
                a: grad,
                a_row: line,
                a_step: 1,
                b: kept,
                b_row: row,
                steps: n,
                rows,
                columns: inputs,
                out,
                out_row: inputs,
                finish: Finish::Store,
            });
        });
    }
}

/// Values in whole lines.
fn lines(values: usize) -> usize {
    values.next_multiple_of(LINE)
}

/// From a sample to the next, in whole lines and an odd number of them: with a power of two, the values of
/// all samples at one place would share a few places in the nearest cache.
fn row_of(length: usize) -> usize {
    ((lines(length) / LINE) | 1) * LINE
}

/// Parts of `rows` rows.
fn parts(rows: usize) -> usize {
    rows.div_ceil(ROWS)
}

fn part_of(part: usize, rows: usize) -> Range<usize> {
    part * ROWS..((part + 1) * ROWS).min(rows)
}

/// Writes the first `columns` columns of a matrix of `rows` rows as rows: `to[j][i] = from[i][j]`. What
/// follows in each row of `to` becomes 0.
fn transpose(from: &[f32], from_row: usize, rows: usize, to: &mut [f32], to_row: usize, columns: usize) {
    for first in (0..columns).step_by(LINE) {
        let block = LINE.min(columns - first);
        for (i, from) in from.chunks(from_row).enumerate().take(rows) {
            let values = &from[first..first + block];
            for (value, to) in values.iter().zip(to[first * to_row..].chunks_mut(to_row)) {
                to[i] = *value;
            }
        }
    }
    if rows < to_row {
        for row in to.chunks_exact_mut(to_row) {
            row[rows..].fill(0.0);
        }
    }
}

/// The sum of the first `n` values of each row, from the first to the last.
fn sum_rows(values: &[f32], row: usize, n: usize, sums: &mut [f32]) {
    // Several rows at once: one sum waits for itself.
    for (rows, sums) in values.chunks(LINE * row).zip(sums.chunks_mut(LINE)) {
        sums.fill(0.0);
        for at in 0..n {
            for (sum, values) in sums.iter_mut().zip(rows.chunks_exact(row)) {
                *sum += values[at];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linear;

    fn values(n: usize, seed: usize) -> Vec<f32> {
        (0..n).map(|i| ((i * 7919 + seed * 104_729) % 2003) as f32 / 1001.5 - 1.0).collect()
    }

    /// Embeddings and gradients by [`linear`], layer by layer.
    fn by_layers(
        lengths: &[usize],
        params: &[Vec<f32>],
        samples: &[f32],
        n: usize,
        grad: &[f32],
    ) -> Vec<Vec<f32>> {
        let layers = lengths.len() - 1;
        let mut inputs = vec![samples.to_vec()];
        for layer in 0..layers {
            let mut out = vec![0.0; n * lengths[layer + 1]];
            let (weight, bias) = (&params[2 * layer], &params[2 * layer + 1]);
            linear::forward(&inputs[layer], weight, Some(bias), lengths[layer], &mut out).unwrap();
            if layer + 1 < layers {
                for value in &mut out {
                    *value = value.max(0.0);
                }
            }
            inputs.push(out);
        }
        let (mut results, mut grad) = (Vec::new(), grad.to_vec());
        for layer in (0..layers).rev() {
            let (input, weight) = (&inputs[layer], &params[2 * layer]);
            let mut grad_weight = vec![0.0; weight.len()];
            let mut grad_bias = vec![0.0; lengths[layer + 1]];
            let mut grad_input = vec![0.0; input.len()];
            let into = Some(&mut grad_input[..]);
            linear::backward(input, weight, &grad, lengths[layer], &mut grad_weight, &mut grad_bias, into)
                .unwrap();
            for (grad, &value) in grad_input.iter_mut().zip(input) {
                *grad = if value > 0.0 { *grad } else { 0.0 };
            }
            results.extend([grad_bias, grad_weight]);
            grad = grad_input;
        }
        results.push(inputs.remove(layers));
        results.reverse();
        results
    }

    #[test]
    fn the_bits_are_those_of_single_layers_with_any_instruction_set_and_number_of_threads() {
        let shapes: [(usize, &[usize]); 6] = [
            (80, &[384, 512, 256]),
            (1, &[3, 2]),
            (10, &[7, 65, 33, 5]),
            (17, &[40, 64]),
            (128, &[100, 130, 16]),
            (250, &[19, 61, 3]),
        ];
        for (n, lengths) in shapes {
            let sizes = lengths.windows(2).flat_map(|pair| [pair[0] * pair[1], pair[1]]);
            let params: Vec<Vec<f32>> = sizes.enumerate().map(|(i, size)| values(size, i)).collect();
            let (samples, grad) = (values(n * lengths[0], 50), values(n * lengths[lengths.len() - 1], 51));
            let expected = by_layers(lengths, &params, &samples, n, &grad);
            let chosen = Simd::chosen();
            let alike = Simd::available().into_iter().filter(|simd| simd.is_fused() == chosen.is_fused());
            for (simd, threads) in alike.flat_map(|simd| [1, 3].map(|threads| (simd, threads))) {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let mut mlp = Mlp { simd, ..Mlp::new(lengths.to_vec()) };
                let mut results: Vec<Vec<f32>> = params.iter().map(|p| vec![f32::NAN; p.len()]).collect();
                let mut embeddings = vec![f32::NAN; n * lengths[lengths.len() - 1]];
                pool.install(|| {
                    // A larger batch before: what is left of it in the buffers changes nothing.
                    let more = values((n + 20) * lengths[0], 52);
                    let mut out = vec![0.0; (n + 20) * lengths[lengths.len() - 1]];
                    mlp.forward(&params, &more, n + 20, &mut out).unwrap();
                    mlp.forward(&params, &samples, n, &mut embeddings).unwrap();
                    mlp.backward(&params, &grad, &mut results).unwrap();
                });
                results.insert(0, embeddings);
                assert!(results == expected, "{} {threads} {n} {lengths:?}", simd.name());
            }
        }
    }

    #[test]
    fn wrong_lengths_and_missing_passes_are_refused() {
        let mut mlp = Mlp::new(vec![2, 1]);
        let (params, mut out) = (vec![vec![1.0; 2], vec![0.0]], [0.0]);
        let mut gradients = params.clone();
        assert_eq!(mlp.backward(&params, &[1.0], &mut gradients), Err(KernelError::NoForward));
        assert!(mlp.forward(&params, &[1.0; 3], 1, &mut out).is_err());
        assert!(mlp.forward(&params[..1], &[1.0; 2], 1, &mut out).is_err());
        mlp.forward(&params, &[1.0; 2], 1, &mut out).unwrap();
        assert!(mlp.backward(&params, &[1.0; 2], &mut gradients).is_err());
        mlp.backward(&params, &[1.0], &mut gradients).unwrap();
        assert_eq!(mlp.backward(&params, &[1.0], &mut gradients), Err(KernelError::NoForward));
        mlp.forward(&params, &[], 0, &mut []).unwrap();
        mlp.backward(&params, &[], &mut gradients).unwrap();
        assert_eq!(gradients, [vec![0.0; 2], vec![0.0]]);
    }
}
