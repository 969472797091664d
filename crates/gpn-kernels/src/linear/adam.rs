//! Adam, as `torch.optim.Adam` computes it.

use rayon::prelude::*;

use crate::error::{KernelError, check_len};
use crate::simd::{Kernel, Simd, Vector};

/// Settings of Adam. The weight decay is an L2 penalty: it is added to the gradient.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Adam {
    /// Step size (default 1e-3).
    pub learning_rate: f64,
    /// Decay of the mean of the gradients (default 0.9).
    pub beta1: f64,
    /// Decay of the mean of their squares (default 0.999).
    pub beta2: f64,
    /// Added to the root of the mean square (default 1e-8).
    pub epsilon: f64,
    /// Weight of the L2 penalty (default 0).
    pub weight_decay: f64,
}

impl Default for Adam {
    fn default() -> Self {
        Adam { learning_rate: 1e-3, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.0 }
    }
}

/// Values that one task updates.
const CHUNK: usize = 1 << 14;

impl Adam {
    /// Updates `params` in place. `step` counts from 1; `first` and `second` hold the running means of the
    /// gradients and of their squares, zero before the first step.
    pub fn step(
        &self,
        step: u32,
        params: &mut [f32],
        grads: &[f32],
        first: &mut [f32],
        second: &mut [f32],
    ) -> Result<(), KernelError> {
        if params.len() <= CHUNK {
            return self.step_alone(step, params, grads, first, second);
        }
        let (factors, simd) = (self.factors(step, params, grads, first, second)?, Simd::chosen());
        let chunks = params.par_chunks_mut(CHUNK).zip(grads.par_chunks(CHUNK));
        let moments = first.par_chunks_mut(CHUNK).zip(second.par_chunks_mut(CHUNK));
        chunks.zip(moments).for_each(|((params, grads), (first, second))| {
            simd.run(Update { factors, params, grads, first, second });
        });
        Ok(())
    }

    /// [`step`](Self::step) on the calling thread alone.
    pub fn step_alone(
        &self,
        step: u32,
        params: &mut [f32],
        grads: &[f32],
        first: &mut [f32],
        second: &mut [f32],
    ) -> Result<(), KernelError> {
        let factors = self.factors(step, params, grads, first, second)?;
        Simd::chosen().run(Update { factors, params, grads, first, second });
        Ok(())
    }

    /// What all values of a step have in common, where the lengths agree.
    fn factors(
        &self,
        step: u32,
        params: &[f32],
        grads: &[f32],
        first: &[f32],
        second: &[f32],
    ) -> Result<Factors, KernelError> {
        check_len("gradients", grads.len(), params.len())?;
        check_len("first moments", first.len(), params.len())?;
        check_len("second moments", second.len(), params.len())?;
        let power = i32::try_from(step).unwrap_or(i32::MAX);
        Ok(Factors {
            beta1: self.beta1 as f32,
            beta2: self.beta2 as f32,
            rest1: (1.0 - self.beta1) as f32,
            rest2: (1.0 - self.beta2) as f32,
            decay: self.weight_decay as f32,
            rate: (self.learning_rate / (1.0 - self.beta1.powi(power))) as f32,
            unbias: (1.0 - self.beta2.powi(power)).sqrt().recip() as f32,
            epsilon: self.epsilon as f32,
        })
    }
}

#[derive(Clone, Copy)]
struct Factors {
    beta1: f32,
    beta2: f32,
    rest1: f32,
    rest2: f32,
    decay: f32,
    rate: f32,
    unbias: f32,
    epsilon: f32,
}

struct Update<'a> {
    factors: Factors,
    params: &'a mut [f32],
    grads: &'a [f32],
    first: &'a mut [f32],
    second: &'a mut [f32],
}

impl Kernel for Update<'_> {
    type Output = ();
    /// A plain loop: the compiler makes it vectors of whatever instruction set encloses it.
    #[inline(always)]
    fn run<V: Vector>(self) {
        let f = self.factors;
        let moments = self.first.iter_mut().zip(self.second);
        for ((param, &grad), (first, second)) in self.params.iter_mut().zip(self.grads).zip(moments) {
            let grad = grad + f.decay * *param;
            *first = f.beta1 * *first + f.rest1 * grad;
            *second = f.beta2 * *second + f.rest2 * grad * grad;
            *param -= f.rate * *first / (second.sqrt() * f.unbias + f.epsilon);
        }
    }
}
