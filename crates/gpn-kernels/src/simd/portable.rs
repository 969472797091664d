//! Plain Rust: 4 lanes, which every SIMD unit has (SSE2 and NEON are baseline on their machines).

use std::marker::PhantomData;

use super::Vector;

const LANES: usize = 4;

/// How `a * b + c` is rounded.
pub(super) trait Rounding: Copy {
    /// What rounds once, without being slow.
    type Fused: Rounding;
    /// Whether once.
    const ONCE: bool;
    fn mul_add(a: f32, b: f32, c: f32) -> f32;
}

/// After the product and after the sum: what processors without a fused instruction do quickly.
#[derive(Clone, Copy)]
pub(super) struct Twice;

impl Rounding for Twice {
    type Fused = ThroughF64;
    const ONCE: bool = false;
    #[inline(always)]
    fn mul_add(a: f32, b: f32, c: f32) -> f32 {
        a * b + c
    }
}

/// Once, as the fused instruction does.
#[derive(Clone, Copy)]
pub(super) struct Once;

impl Rounding for Once {
    type Fused = Self;
    const ONCE: bool = true;
    #[inline(always)]
    fn mul_add(a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }
}

/// Nearly always as [`Once`], and quick without the instruction: the product is exact in f64, the sum there is
/// rounded, and then rounded again.
#[derive(Clone, Copy)]
pub(super) struct ThroughF64;

impl Rounding for ThroughF64 {
    type Fused = Self;
    const ONCE: bool = true;
    #[inline(always)]
    fn mul_add(a: f32, b: f32, c: f32) -> f32 {
        (f64::from(a) * f64::from(b) + f64::from(c)) as f32
    }
}

/// Runs `kernel` in plain code with the fused instruction enabled.
///
/// # Safety
/// The processor has AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn run_with_fma<K: super::Kernel>(kernel: K) -> K::Output {
    kernel.run::<Portable<Once>>()
}

#[derive(Clone, Copy)]
pub(super) struct Portable<R>([f32; LANES], PhantomData<R>);

impl<R: Rounding> Portable<R> {
    #[inline(always)]
    fn from_lanes(lane: impl Fn(usize) -> f32) -> Self {
        let mut lanes = [0.0; LANES];
        for (i, value) in lanes.iter_mut().enumerate() {
            *value = lane(i);
        }
        Self(lanes, PhantomData)
    }
}

impl<R: Rounding> Vector for Portable<R> {
    type Fused = Portable<R::Fused>;
    const ROUNDS_ONCE: bool = R::ONCE;
    const LANES: usize = LANES;
    const TILE_PIXELS: [usize; 2] = [4, 3];

    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        // SAFETY: the caller promises `LANES` readable values; an array of f32 is aligned as an f32.
        unsafe { Self(*p.cast::<[f32; LANES]>(), PhantomData) }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        // SAFETY: the caller promises `LANES` writable values.
        unsafe { *p.cast::<[f32; LANES]>() = self.0 }
    }
    #[inline(always)]
    fn splat(x: f32) -> Self {
        Self([x; LANES], PhantomData)
    }
    #[inline(always)]
    fn add(self, b: Self) -> Self {
        Self::from_lanes(|i| self.0[i] + b.0[i])
    }
    #[inline(always)]
    fn sub(self, b: Self) -> Self {
        Self::from_lanes(|i| self.0[i] - b.0[i])
    }
    #[inline(always)]
    fn mul(self, b: Self) -> Self {
        Self::from_lanes(|i| self.0[i] * b.0[i])
    }
    #[inline(always)]
    fn max(self, b: Self) -> Self {
        Self::from_lanes(|i| if self.0[i] > b.0[i] { self.0[i] } else { b.0[i] })
    }
    #[inline(always)]
    fn mul_add(self, b: Self, c: Self) -> Self {
        Self::from_lanes(|i| R::mul_add(self.0[i], b.0[i], c.0[i]))
    }
    #[inline(always)]
    fn mul_add_one(a: f32, b: f32, c: f32) -> f32 {
        R::mul_add(a, b, c)
    }
    #[inline(always)]
    fn select_greater(self, threshold: Self, yes: Self, no: Self) -> Self {
        Self::from_lanes(|i| if self.0[i] > threshold.0[i] { yes.0[i] } else { no.0[i] })
    }
}
