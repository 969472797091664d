//! One vector type per instruction set, and the choice between them at run time.
//!
//! A kernel is a struct that implements [`Kernel`]: its `run` is generic over [`Vector`] and always inlined,
//! so that [`Simd::run`] compiles it once per instruction set inside a function that enables that set.
//! This module and its children are the only place that names an instruction of a processor.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub(crate) mod codes;
#[cfg(all(test, target_arch = "x86_64"))]
mod pair;
mod portable;

use std::sync::OnceLock;

use crate::error::KernelError;

/// A vector of `LANES` values of f32.
///
/// Invariant that makes the safe methods safe: values of the AVX types exist only inside [`Simd::run`],
/// which is reached only after the processor was asked for the instruction set.
pub(crate) trait Vector: Copy {
    /// The same with a `mul_add` that rounds once, whatever it costs: for results that are compared bit by
    /// bit.
    type Fused: Vector;
    /// Whether `mul_add` rounds once as it is.
    const ROUNDS_ONCE: bool;
    /// Values per vector; divides [`crate::geometry::CHANNEL_BLOCK`].
    const LANES: usize;
    /// Whether a vector is a whole block of channels. (Constants of their own, so that tiles of the other
    /// instruction sets are not even compiled.)
    const IS_BLOCK: bool = Self::LANES == 16;
    /// Whether a vector is half a block.
    const IS_HALF_BLOCK: bool = Self::LANES == 8;
    /// Register tiles tried by the convolutions, in pixels: the one that wastes less of a row is taken.
    const TILE_PIXELS: [usize; 2];

    /// # Safety
    /// `p` is valid for reading `LANES` values.
    unsafe fn load(p: *const f32) -> Self;
    /// # Safety
    /// `p` is valid for writing `LANES` values.
    unsafe fn store(self, p: *mut f32);
    /// Stores past the cache where the processor can: for what is not read again soon. Where a vector is half a cache
    /// line, the other half is to follow at once.
    ///
    /// # Safety
    /// As [`Vector::store`], and `p` lies on a whole vector. [`Vector::finish_streams`] comes before anyone
    /// else reads.
    #[inline(always)]
    unsafe fn stream(self, p: *mut f32) {
        // SAFETY: passed on.
        unsafe { self.store(p) };
    }
    /// [`Vector::stream`] where a vector is a whole cache line, otherwise [`Vector::store`].
    ///
    /// # Safety
    /// As [`Vector::stream`].
    #[inline(always)]
    unsafe fn stream_line(self, p: *mut f32) {
        // SAFETY: passed on.
        unsafe { if Self::IS_BLOCK { self.stream(p) } else { self.store(p) } };
    }
    /// Makes everything streamed visible to other threads.
    #[inline(always)]
    fn finish_streams() {}
    /// Fetches the cache line at `p` into the second cache, where the processor can. Reads nothing: any
    /// address will do.
    #[inline(always)]
    fn prefetch(_p: *const f32) {}
    /// All lanes equal.
    fn splat(x: f32) -> Self;
    /// `self + b`
    fn add(self, b: Self) -> Self;
    /// `self - b`
    fn sub(self, b: Self) -> Self;
    /// `self * b`
    fn mul(self, b: Self) -> Self;
    /// The larger of the two, lane by lane.
    fn max(self, b: Self) -> Self;
    /// `self * b + c`
    fn mul_add(self, b: Self, c: Self) -> Self;
    /// `a * b + c` of single values, rounded as [`Vector::mul_add`] rounds.
    fn mul_add_one(a: f32, b: f32, c: f32) -> f32;
    /// `yes` where `self > threshold`, else `no`.
    fn select_greater(self, threshold: Self, yes: Self, no: Self) -> Self;

    /// All lanes zero.
    #[inline(always)]
    fn zero() -> Self {
        Self::splat(0.0)
    }
    /// `max(self, 0)`
    #[inline(always)]
    fn relu(self) -> Self {
        self.max(Self::zero())
    }
    /// `self` where it is positive, else `slope * self`; a slope of 0 is [`Vector::relu`].
    #[inline(always)]
    fn leaky_relu(self, slope: f32) -> Self {
        if slope == 0.0 { self.relu() } else { self.max(self.mul(Self::splat(slope))) }
    }
    /// A gradient on its way back through [`Vector::leaky_relu`]. `gate` has the sign of what went in.
    #[inline(always)]
    fn through_leaky_relu(self, gate: Self, slope: f32) -> Self {
        if slope == 0.0 {
            return self.where_positive(gate);
        }
        gate.select_greater(Self::zero(), self, self.mul(Self::splat(slope)))
    }
    /// `self` where `gate > 0`, else 0.
    #[inline(always)]
    fn where_positive(self, gate: Self) -> Self {
        gate.select_greater(Self::zero(), self, Self::zero())
    }
    /// Sum of the lanes, from the first to the last.
    #[inline(always)]
    fn sum(self) -> f32 {
        let mut lanes = [0.0; 16];
        // SAFETY: no vector has more than 16 lanes.
        unsafe { self.store(lanes.as_mut_ptr()) };
        lanes[..Self::LANES].iter().sum()
    }
}

/// Work that runs on any vector type. `run` and everything it calls is `#[inline(always)]`.
pub(crate) trait Kernel {
    /// What the work returns.
    type Output;
    /// Does the work with vectors of type `V`.
    fn run<V: Vector>(self) -> Self::Output;
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Level {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(all(test, target_arch = "x86_64"))]
    Pair,
    Fused,
    Portable,
}

/// An instruction set that this processor has. Values come only from [`Simd::detect`] and
/// [`Simd::available`], so holding one is proof that it may be used.
///
/// `avx512`, `avx2` and `fused` compute the same bits. `fused` is plain Rust for processors whose instruction
/// for `a * b + c` rounds once. `portable` rounds twice, and so computes other bits: it is for processors
/// without that instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Simd(Level);

impl Simd {
    /// Instruction sets that run here, fastest first; the last is always the portable one.
    pub fn available() -> Vec<Simd> {
        let mut found = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("fma") {
                found.push(Simd(Level::Avx512));
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                found.push(Simd(Level::Avx2));
                #[cfg(test)]
                found.push(Simd(Level::Pair));
            }
        }
        if has_fused_instruction() {
            found.push(Simd(Level::Fused));
        }
        found.push(Simd(Level::Portable));
        found
    }

    /// The fastest instruction set, or the one named by the environment variable `GPN_SIMD`
    /// (`avx512`, `avx2`, `fused` or `portable`), which is read once.
    pub fn detect() -> Result<Simd, KernelError> {
        static CHOICE: OnceLock<Result<Simd, String>> = OnceLock::new();
        let choice = CHOICE.get_or_init(|| match std::env::var("GPN_SIMD") {
            Ok(asked) if !asked.is_empty() => {
                Self::available().into_iter().find(|s| s.name() == asked).ok_or(asked)
            }
            _ => Ok(Self::available()[0]),
        });
        choice.clone().map_err(|asked| KernelError::Simd {
            asked,
            available: Self::available().iter().map(|s| s.name()).collect::<Vec<_>>().join(", "),
        })
    }

    /// The choice of [`Simd::detect`], or the fastest where that fails.
    pub(crate) fn chosen() -> Simd {
        Self::detect().unwrap_or_else(|_| Self::available()[0])
    }

    /// Whether it computes the bits that all instruction sets but `portable` compute.
    pub fn is_fused(self) -> bool {
        self.0 != Level::Portable
    }

    /// `avx512`, `avx2`, `fused` or `portable`.
    pub fn name(self) -> &'static str {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => "avx512",
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => "avx2",
            #[cfg(all(test, target_arch = "x86_64"))]
            Level::Pair => "pair",
            Level::Fused => "fused",
            Level::Portable => "portable",
        }
    }

    /// Runs a kernel compiled for this instruction set.
    #[inline]
    pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self.0 {
            // SAFETY: a `Simd` of this level exists only where the processor has the features.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { avx512::run(kernel) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => unsafe { avx2::run(kernel) },
            // SAFETY: as above.
            #[cfg(all(test, target_arch = "x86_64"))]
            Level::Pair => unsafe { pair::run(kernel) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Level::Fused => unsafe { portable::run_with_fma(kernel) },
            #[cfg(not(target_arch = "x86_64"))]
            Level::Fused => kernel.run::<portable::Portable<portable::Once>>(),
            Level::Portable => kernel.run::<portable::Portable<portable::Twice>>(),
        }
    }
}

/// Whether the processor computes `a * b + c` in one instruction, which rounds once.
fn has_fused_instruction() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    return cfg!(target_arch = "aarch64");
}

/// How results are rounded with the chosen instruction set: `fused` on all processors that compute the same
/// bits, otherwise `portable`.
pub fn rounding() -> &'static str {
    if Simd::chosen().is_fused() { "fused" } else { "portable" }
}

/// Name of the instruction set that new networks and the functions of [`crate::linear`] use.
pub fn simd_name() -> &'static str {
    Simd::chosen().name()
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "these values are exact")]
mod tests {
    use super::*;

    struct EveryOperation;
    impl Kernel for EveryOperation {
        type Output = Vec<Vec<f32>>;
        #[inline(always)]
        fn run<V: Vector>(self) -> Self::Output {
            let a: Vec<f32> = (0..16).map(|i| i as f32 - 7.5).collect();
            let b: Vec<f32> = (0..16).map(|i| 3.0 - (i % 5) as f32).collect();
            let mut out = vec![vec![0.0; 16]; 13];
            for at in (0..16).step_by(V::LANES) {
                // SAFETY: `at + LANES <= 16`, the length of every slice.
                unsafe {
                    let (x, y) = (V::load(a.as_ptr().add(at)), V::load(b.as_ptr().add(at)));
                    x.add(y).store(out[0].as_mut_ptr().add(at));
                    x.sub(y).store(out[1].as_mut_ptr().add(at));
                    x.mul(y).store(out[2].as_mut_ptr().add(at));
                    x.max(y).store(out[3].as_mut_ptr().add(at));
                    x.mul_add(y, V::splat(2.0)).store(out[4].as_mut_ptr().add(at));
                    x.select_greater(y, V::splat(1.0), V::splat(-1.0)).store(out[5].as_mut_ptr().add(at));
                    x.where_positive(y).store(out[6].as_mut_ptr().add(at));
                    out[7][at] = x.relu().sum();
                    for (i, slope) in [0.0, 0.1].into_iter().enumerate() {
                        x.leaky_relu(slope).store(out[9 + i].as_mut_ptr().add(at));
                        x.through_leaky_relu(y, slope).store(out[11 + i].as_mut_ptr().add(at));
                    }
                }
                for i in at..at + V::LANES {
                    out[8][i] = V::mul_add_one(a[i], b[i], 2.0);
                }
            }
            out[7][0] = out[7].iter().sum();
            out[7][1..].fill(0.0);
            out
        }
    }

    #[test]
    fn every_instruction_set_computes_the_same() {
        let expected = Simd(Level::Portable).run(EveryOperation);
        assert_eq!(expected[0][0], -7.5 + 3.0);
        assert_eq!(expected[5][0], -1.0);
        assert_eq!([9, 10].map(|i: usize| expected[i][0]), [0.0, -7.5 * 0.1]);
        assert_eq!([11, 12].map(|i: usize| expected[i][4]), [0.0, -3.5 * 0.1]);
        for simd in Simd::available() {
            assert_eq!(simd.run(EveryOperation), expected, "{}", simd.name());
        }
    }
}
