//! Plain Rust: 4 lanes, which every SIMD unit has (SSE2 and NEON are baseline on their machines).

use super::Vector;

const LANES: usize = 4;

/// `FUSED`: whether `mul_add` rounds once.
#[derive(Clone, Copy)]
pub(super) struct Portable<const FUSED: bool>([f32; LANES]);

impl<const FUSED: bool> Portable<FUSED> {
    #[inline(always)]
    fn zip(self, b: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        Self(std::array::from_fn(|i| f(self.0[i], b.0[i])))
    }
}

impl<const FUSED: bool> Vector for Portable<FUSED> {
    type Fused = Portable<true>;
    const ROUNDS_ONCE: bool = FUSED || cfg!(target_arch = "aarch64");
    const LANES: usize = LANES;
    const TILE_PIXELS: [usize; 2] = [4, 3];

    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        // SAFETY: the caller promises `LANES` readable values; an array of f32 is aligned as an f32.
        unsafe { Self(*p.cast::<[f32; LANES]>()) }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        // SAFETY: the caller promises `LANES` writable values.
        unsafe { *p.cast::<[f32; LANES]>() = self.0 }
    }
    #[inline(always)]
    fn splat(x: f32) -> Self {
        Self([x; LANES])
    }
    #[inline(always)]
    fn add(self, b: Self) -> Self {
        self.zip(b, |x, y| x + y)
    }
    #[inline(always)]
    fn sub(self, b: Self) -> Self {
        self.zip(b, |x, y| x - y)
    }
    #[inline(always)]
    fn mul(self, b: Self) -> Self {
        self.zip(b, |x, y| x * y)
    }
    #[inline(always)]
    fn max(self, b: Self) -> Self {
        self.zip(b, |x, y| if x > y { x } else { y })
    }
    #[inline(always)]
    fn mul_add(self, b: Self, c: Self) -> Self {
        // Without the instruction `f32::mul_add` is a slow call. A product of two f32 is exact in f64.
        if cfg!(target_arch = "aarch64") {
            Self(std::array::from_fn(|i| self.0[i].mul_add(b.0[i], c.0[i])))
        } else if FUSED {
            let wide = |x: f32| f64::from(x);
            Self(std::array::from_fn(|i| (wide(self.0[i]) * wide(b.0[i]) + wide(c.0[i])) as f32))
        } else {
            self.mul(b).add(c)
        }
    }
    #[inline(always)]
    fn select_greater(self, threshold: Self, yes: Self, no: Self) -> Self {
        Self(std::array::from_fn(|i| if self.0[i] > threshold.0[i] { yes.0[i] } else { no.0[i] }))
    }
}
