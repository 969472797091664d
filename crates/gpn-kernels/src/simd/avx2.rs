//! AVX2 with FMA: 8 lanes, 16 registers.

use std::arch::x86_64::{
    __m256, _CMP_GT_OQ, _MM_HINT_T1, _mm_prefetch, _mm_sfence, _mm256_add_ps, _mm256_blendv_ps,
    _mm256_cmp_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_max_ps, _mm256_mul_ps, _mm256_set1_ps,
    _mm256_storeu_ps, _mm256_stream_ps, _mm256_sub_ps,
};

use super::{Kernel, Vector};

/// Runs `kernel` with AVX2 and FMA enabled.
///
/// # Safety
/// The processor has AVX2 and FMA.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn run<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Avx2>()
}

#[derive(Clone, Copy)]
pub(super) struct Avx2(__m256);

// SAFETY of every block below: by the invariant of `Vector` the processor has AVX2 and FMA here;
// loads and stores pass the caller's promise on.
impl Vector for Avx2 {
    type Fused = Self;
    const ROUNDS_ONCE: bool = true;
    const LANES: usize = 8;
    const TILE_PIXELS: [usize; 2] = [6, 4];

    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        unsafe { Self(_mm256_loadu_ps(p)) }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        unsafe { _mm256_storeu_ps(p, self.0) }
    }
    #[inline(always)]
    unsafe fn stream(self, p: *mut f32) {
        unsafe { _mm256_stream_ps(p, self.0) }
    }
    #[inline(always)]
    fn finish_streams() {
        unsafe { _mm_sfence() }
    }
    #[inline(always)]
    fn prefetch(p: *const f32) {
        unsafe { _mm_prefetch::<_MM_HINT_T1>(p.cast()) }
    }
    #[inline(always)]
    fn splat(x: f32) -> Self {
        unsafe { Self(_mm256_set1_ps(x)) }
    }
    #[inline(always)]
    fn add(self, b: Self) -> Self {
        unsafe { Self(_mm256_add_ps(self.0, b.0)) }
    }
    #[inline(always)]
    fn sub(self, b: Self) -> Self {
        unsafe { Self(_mm256_sub_ps(self.0, b.0)) }
    }
    #[inline(always)]
    fn mul(self, b: Self) -> Self {
        unsafe { Self(_mm256_mul_ps(self.0, b.0)) }
    }
    #[inline(always)]
    fn max(self, b: Self) -> Self {
        unsafe { Self(_mm256_max_ps(self.0, b.0)) }
    }
    #[inline(always)]
    fn mul_add(self, b: Self, c: Self) -> Self {
        unsafe { Self(_mm256_fmadd_ps(self.0, b.0, c.0)) }
    }
    #[inline(always)]
    fn mul_add_one(a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }
    #[inline(always)]
    fn select_greater(self, threshold: Self, yes: Self, no: Self) -> Self {
        unsafe {
            let mask = _mm256_cmp_ps::<_CMP_GT_OQ>(self.0, threshold.0);
            Self(_mm256_blendv_ps(no.0, yes.0, mask))
        }
    }
}
