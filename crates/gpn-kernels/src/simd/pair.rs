//! Two AVX2 vectors as one of 16 lanes: takes the way of AVX-512 through the kernels on processors that lack it, so that
//! tests can compare the two anywhere.

use super::avx2::Avx2;
use super::{Kernel, Vector};

/// Runs `kernel` with AVX2 and FMA enabled.
///
/// # Safety
/// The processor has AVX2 and FMA.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn run<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Pair>()
}

#[derive(Clone, Copy)]
pub(super) struct Pair(Avx2, Avx2);

impl Vector for Pair {
    type Fused = Self;
    const ROUNDS_ONCE: bool = true;
    const LANES: usize = 16;
    const TILE_PIXELS: [usize; 2] = [8, 7];

    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        // SAFETY: the caller promises 16 readable values.
        unsafe { Self(Avx2::load(p), Avx2::load(p.add(8))) }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        // SAFETY: the caller promises 16 writable values.
        unsafe {
            self.0.store(p);
            self.1.store(p.add(8));
        }
    }
    #[inline(always)]
    fn splat(x: f32) -> Self {
        Self(Avx2::splat(x), Avx2::splat(x))
    }
    #[inline(always)]
    fn add(self, b: Self) -> Self {
        Self(self.0.add(b.0), self.1.add(b.1))
    }
    #[inline(always)]
    fn sub(self, b: Self) -> Self {
        Self(self.0.sub(b.0), self.1.sub(b.1))
    }
    #[inline(always)]
    fn mul(self, b: Self) -> Self {
        Self(self.0.mul(b.0), self.1.mul(b.1))
    }
    #[inline(always)]
    fn max(self, b: Self) -> Self {
        Self(self.0.max(b.0), self.1.max(b.1))
    }
    #[inline(always)]
    fn mul_add(self, b: Self, c: Self) -> Self {
        Self(self.0.mul_add(b.0, c.0), self.1.mul_add(b.1, c.1))
    }
    #[inline(always)]
    fn mul_add_one(a: f32, b: f32, c: f32) -> f32 {
        Avx2::mul_add_one(a, b, c)
    }
    #[inline(always)]
    fn select_greater(self, threshold: Self, yes: Self, no: Self) -> Self {
        Self(self.0.select_greater(threshold.0, yes.0, no.0), self.1.select_greater(threshold.1, yes.1, no.1))
    }
}
