//! Batch norm as numbers per channel: statistics, the scale and shift they amount to, and its gradient.

use crate::simd::Vector;

/// Added to the variance, as in PyTorch.
const EPSILON: f64 = 1e-5;
/// Weight of the newest batch in the running statistics, as in PyTorch.
const MOMENTUM: f64 = 0.1;

/// The batch norm of one layer for one pass. Padded channels have scale and shift zero, so they stay zero.
#[derive(Clone, Default)]
pub(crate) struct BatchNorm {
    pub(crate) scale: Vec<f32>,
    pub(crate) shift: Vec<f32>,
    mean: Vec<f64>,
    /// 1 / standard deviation.
    rate: Vec<f64>,
    /// Values per channel that made the statistics; 0 where they are the running ones.
    count: usize,
}

/// `gradient of the input = of_output * dz + of_input * y + constant`, per channel.
#[derive(Clone, Default)]
pub(crate) struct BatchNormGradient {
    pub(crate) of_output: Vec<f32>,
    pub(crate) of_input: Vec<f32>,
    pub(crate) constant: Vec<f32>,
}

impl BatchNormGradient {
    /// The three for a vector of channels.
    ///
    /// # Safety
    /// `c + LANES` does not exceed the channels.
    #[inline(always)]
    pub(crate) unsafe fn vectors<V: Vector>(&self, c: usize) -> [V; 3] {
        // SAFETY: the caller's promise.
        unsafe {
            [
                V::load(self.of_output.as_ptr().add(c)),
                V::load(self.of_input.as_ptr().add(c)),
                V::load(self.constant.as_ptr().add(c)),
            ]
        }
    }
}

/// Turns the sum of squares of each channel, behind the sums, into the sum of squared deviations.
pub(crate) fn centre(sums: &mut [f64], count: usize) {
    let (sum, squares) = sums.split_at_mut(sums.len() / 2);
    for (sum, squares) in sum.iter().zip(squares) {
        *squares = (*squares - sum * (sum / count as f64)).max(0.0);
    }
}

/// Sum and sum of squared deviations of each channel, rounded as PyTorch rounds them: for small batches.
pub(crate) fn sums_of_maps(maps: &[f32], sums: &mut [f64]) {
    let channels = sums.len() / 2;
    let count = maps.len() / channels;
    sums.fill(0.0);
    let (sum, deviations) = sums.split_at_mut(channels);
    for pixel in maps.chunks_exact(channels) {
        for (sum, &value) in sum.iter_mut().zip(pixel) {
            *sum += f64::from(value);
        }
    }
    let mean: Vec<f32> = sum.iter().map(|sum| (sum / count as f64) as f32).collect();
    for pixel in maps.chunks_exact(channels) {
        for ((deviation, &value), mean) in deviations.iter_mut().zip(pixel).zip(&mean) {
            *deviation += f64::from((value - mean) * (value - mean));
        }
    }
}

impl BatchNorm {
    /// With the statistics of a batch: `sums` holds the sum and then the sum of squared deviations of each
    /// stored channel over `count` values. The running statistics move towards them.
    pub(crate) fn set_from_batch(
        &mut self,
        (gamma, beta): (&[f32], &[f32]),
        sums: &[f64],
        count: usize,
        running_mean: &mut [f32],
        running_var: &mut [f32],
    ) {
        let (sum, deviations) = sums.split_at(sums.len() / 2);
        let n = count as f64;
        self.clear(sum.len(), count);
        for c in 0..gamma.len() {
            let mean = sum[c] / n;
            let var = deviations[c] as f32 / count as f32;
            self.set(c, gamma[c], beta[c], mean, 1.0 / (f64::from(var) + EPSILON).sqrt());
            // PyTorch keeps the unbiased variance; a single value has none, and divides by zero there.
            let unbiased = deviations[c] / (n - 1.0).max(1.0);
            running_mean[c] = (f64::from(running_mean[c]) * (1.0 - MOMENTUM) + mean * MOMENTUM) as f32;
            running_var[c] = (f64::from(running_var[c]) * (1.0 - MOMENTUM) + unbiased * MOMENTUM) as f32;
        }
    }

    /// With the running statistics.
    pub(crate) fn set_from_running(
        &mut self,
        (gamma, beta): (&[f32], &[f32]),
        mean: &[f32],
        var: &[f32],
        channels: usize,
    ) {
        self.clear(channels, 0);
        for c in 0..gamma.len() {
            let rate = 1.0 / (var[c] + EPSILON as f32).sqrt();
            self.set(c, gamma[c], beta[c], f64::from(mean[c]), f64::from(rate));
        }
    }

    fn clear(&mut self, channels: usize, count: usize) {
        for values in [&mut self.scale, &mut self.shift] {
            values.clear();
            values.resize(channels, 0.0);
        }
        for values in [&mut self.mean, &mut self.rate] {
            values.clear();
            values.resize(channels, 0.0);
        }
        self.count = count;
    }

    /// Scale and shift are rounded as PyTorch rounds them, so that a ReLU near zero falls on the same side.
    fn set(&mut self, c: usize, gamma: f32, beta: f32, mean: f64, rate: f64) {
        self.mean[c] = mean;
        self.rate[c] = rate;
        self.scale[c] = rate as f32 * gamma;
        self.shift[c] = (-(mean as f32)).mul_add(self.scale[c], beta);
    }

    /// Gradients of gamma and beta, and the affine form of the input's gradient. `sums` holds the sum of the
    /// output's gradient and then the sum of its products with the input.
    pub(crate) fn backward(
        &self,
        sums: &[f64],
        out: &mut BatchNormGradient,
        gamma_gradient: &mut [f32],
        beta_gradient: &mut [f32],
    ) {
        let (sum, products) = sums.split_at(sums.len() / 2);
        for values in [&mut out.of_output, &mut out.of_input, &mut out.constant] {
            values.clear();
            values.resize(sum.len(), 0.0);
        }
        for c in 0..gamma_gradient.len() {
            let (mean, rate, scale) = (self.mean[c], self.rate[c], f64::from(self.scale[c]));
            let along = rate * (products[c] - mean * sum[c]);
            gamma_gradient[c] = along as f32;
            beta_gradient[c] = sum[c] as f32;
            out.of_output[c] = scale as f32;
            if self.count > 0 {
                let n = self.count as f64;
                out.of_input[c] = (-scale * rate * along / n) as f32;
                out.constant[c] = (scale * (mean * rate * along - sum[c]) / n) as f32;
            }
        }
    }
}
