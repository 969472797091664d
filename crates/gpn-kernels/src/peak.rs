//! What the processor can do at best.

use std::time::Instant;

use rayon::prelude::*;

use crate::simd::{Kernel, Simd, Vector};

/// Multiplications and additions per second (in units of 10^9) of a loop of nothing but fused multiply-adds in
/// registers, on `threads` threads. The best of many short rounds counts, because other work or a thread that is still
/// waking up slows some of them down. Takes about a tenth of a second.
pub fn measured_peak_gflops(threads: usize) -> f64 {
    let Ok(pool) = rayon::ThreadPoolBuilder::new().num_threads(threads.max(1)).build() else { return 0.0 };
    let simd = Simd::chosen();
    let mut best: f64 = 0.0;
    for _ in 0..40 {
        let start = Instant::now();
        let flops: f64 = pool.install(|| {
            (0..threads.max(1)).into_par_iter().with_max_len(1).map(|_| simd.run(MultiplyAdd)).sum()
        });
        best = best.max(flops / start.elapsed().as_secs_f64() / 1e9);
    }
    best
}

struct MultiplyAdd;

impl Kernel for MultiplyAdd {
    type Output = f64;
    #[inline(always)]
    fn run<V: Vector>(self) -> f64 {
        const CHAINS: usize = 12;
        const STEPS: usize = 1_000_000;
        let factor = V::splat(std::hint::black_box(0.999));
        let mut chains = [V::splat(1.0); CHAINS];
        for _ in 0..STEPS {
            for chain in &mut chains {
                *chain = chain.mul_add(factor, factor);
            }
        }
        for chain in chains {
            std::hint::black_box(chain.sum());
        }
        (2 * CHAINS * STEPS * V::LANES) as f64
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_peak_is_a_number_above_zero() {
        assert!(super::measured_peak_gflops(1) > 0.1);
    }
}
