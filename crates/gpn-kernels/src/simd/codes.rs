//! Sums of products of 8-bit codes with 16-bit queries, for the search among many prototypes.
//!
//! A vector here holds one whole number for each of [`ROWS`] rows. The sums are exact, and comparisons with
//! them round the same way everywhere, so that every instruction set computes the same, `portable` included.

use super::{Level, Simd};

/// Rows of a block.
pub(crate) const ROWS: usize = 16;

/// What a row must satisfy to be near enough to a query, as [`Sums::within`] says.
#[derive(Clone, Copy)]
pub(crate) struct Reach {
    /// Squared length of the query's codes.
    pub(crate) length: f32,
    /// Twice the step of the query's codes.
    pub(crate) factor: f32,
    /// How far away a row may be.
    pub(crate) radius: f32,
}

/// Rounding takes less than this share of the squared lengths from a squared distance.
const ROUNDING: f32 = 1.0 - 1e-6;

/// One sum for each of [`ROWS`] rows.
///
/// Invariant that makes the safe methods safe: values of the AVX types exist only inside [`Simd::run_codes`],
/// which is reached only after the processor was asked for the instruction set.
pub(crate) trait Sums: Copy {
    /// Two codes of each row.
    type Codes: Copy;
    /// Queries whose sums fit into registers beside the codes of one block.
    const QUERIES: usize;

    fn zero() -> Self;
    /// Fetches the cache line at `p`, where the processor can. Reads nothing: any address will do.
    #[inline(always)]
    fn prefetch(_p: *const i8) {}
    /// # Safety
    /// `p` is valid for reading `2 * ROWS` codes: two of the first row, two of the second, and so on.
    unsafe fn load(p: *const i8) -> Self::Codes;
    /// Adds the products of a row's two codes with the two values of a query; the first is in the lower half.
    fn add_products(self, codes: Self::Codes, query: i32) -> Self;
    /// A bit for each row that may be within reach:
    /// `(length of row + length of query) * ROUNDING - factor * step * sum <= (radius + error)^2`. A row
    /// whose length is NaN never is.
    ///
    /// # Safety
    /// `rows` is valid for reading `3 * ROWS` values: steps, squared lengths, errors.
    unsafe fn within(self, rows: *const f32, reach: &Reach) -> u16;
}

/// Work that runs on sums of any instruction set. `run` and everything it calls is `#[inline(always)]`.
pub(crate) trait CodeKernel {
    type Output;
    fn run<S: Sums>(self) -> Self::Output;
}

impl Simd {
    /// Runs a kernel compiled for this instruction set.
    pub(crate) fn run_codes<K: CodeKernel>(self, kernel: K) -> K::Output {
        #[cfg(target_arch = "x86_64")]
        {
            // SAFETY of each: the processor was asked for the features; a `Simd` that is not portable has
            // AVX2 and FMA.
            if self.0 == Level::Avx512 && is_x86_feature_detected!("avx512bw") {
                if is_x86_feature_detected!("avx512vnni") {
                    return unsafe { x86::run_vnni(kernel) };
                }
                return unsafe { x86::run_avx512(kernel) };
            }
            if matches!(self.0, Level::Avx512 | Level::Avx2) {
                return unsafe { x86::run_avx2(kernel) };
            }
        }
        kernel.run::<Plain>()
    }
}

/// Plain Rust.
#[derive(Clone, Copy)]
struct Plain([i32; ROWS]);

impl Sums for Plain {
    type Codes = [[i8; 2]; ROWS];
    const QUERIES: usize = 1;

    #[inline(always)]
    fn zero() -> Self {
        Self([0; ROWS])
    }
    #[inline(always)]
    unsafe fn load(p: *const i8) -> Self::Codes {
        // SAFETY: the caller's promise; an array of bytes is aligned anywhere.
        unsafe { *p.cast() }
    }
    #[inline(always)]
    fn add_products(mut self, codes: Self::Codes, query: i32) -> Self {
        let [low, high] = [query as i16, (query >> 16) as i16].map(i32::from);
        for (sum, [a, b]) in self.0.iter_mut().zip(codes) {
            *sum += i32::from(a) * low + i32::from(b) * high;
        }
        self
    }
    #[inline(always)]
    unsafe fn within(self, rows: *const f32, reach: &Reach) -> u16 {
        // SAFETY: the caller's promise.
        let [steps, lengths, errors]: [[f32; ROWS]; 3] =
            unsafe { rows.cast::<[[f32; ROWS]; 3]>().read_unaligned() };
        let mut bits = 0;
        for row in 0..ROWS {
            let distance =
                (lengths[row] + reach.length) * ROUNDING - steps[row] * reach.factor * self.0[row] as f32;
            let radius = reach.radius + errors[row];
            bits |= u16::from(distance <= radius * radius) << row;
        }
        bits
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256i, __m512i, _CMP_LE_OQ, _MM_HINT_T0, _mm_loadu_si128, _mm_prefetch, _mm256_add_epi32,
        _mm256_add_ps, _mm256_cmp_ps, _mm256_cvtepi8_epi16, _mm256_cvtepi32_ps, _mm256_loadu_ps,
        _mm256_loadu_si256, _mm256_madd_epi16, _mm256_movemask_ps, _mm256_mul_ps, _mm256_set1_epi32,
        _mm256_set1_ps, _mm256_setzero_si256, _mm256_sub_ps, _mm512_add_epi32, _mm512_add_ps,
        _mm512_cmp_ps_mask, _mm512_cvtepi8_epi16, _mm512_cvtepi32_ps, _mm512_dpwssd_epi32, _mm512_loadu_ps,
        _mm512_madd_epi16, _mm512_mul_ps, _mm512_set1_epi32, _mm512_set1_ps, _mm512_setzero_si512,
        _mm512_sub_ps,
    };

    use super::{CodeKernel, ROUNDING, ROWS, Reach, Sums};

    /// # Safety
    /// The processor has AVX2 and FMA.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn run_avx2<K: CodeKernel>(kernel: K) -> K::Output {
        kernel.run::<Avx2>()
    }

    /// # Safety
    /// The processor has AVX-512 F and BW, AVX2 and FMA.
    #[target_feature(enable = "avx512f,avx512bw,avx2,fma")]
    pub(super) unsafe fn run_avx512<K: CodeKernel>(kernel: K) -> K::Output {
        kernel.run::<Avx512<false>>()
    }

    /// # Safety
    /// The processor has AVX-512 F, BW and VNNI, AVX2 and FMA.
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma")]
    pub(super) unsafe fn run_vnni<K: CodeKernel>(kernel: K) -> K::Output {
        kernel.run::<Avx512<true>>()
    }

    /// Two vectors of 8 sums.
    #[derive(Clone, Copy)]
    pub(super) struct Avx2([__m256i; 2]);

    // SAFETY of every block below: by the invariant of `Sums` the processor has AVX2 here; loads pass the
    // caller's promise on.
    impl Sums for Avx2 {
        type Codes = [__m256i; 2];
        const QUERIES: usize = 4;

        #[inline(always)]
        fn zero() -> Self {
            unsafe { Self([_mm256_setzero_si256(); 2]) }
        }
        #[inline(always)]
        fn prefetch(p: *const i8) {
            unsafe { _mm_prefetch::<_MM_HINT_T0>(p) }
        }
        #[inline(always)]
        unsafe fn load(p: *const i8) -> Self::Codes {
            unsafe {
                [
                    _mm256_cvtepi8_epi16(_mm_loadu_si128(p.cast())),
                    _mm256_cvtepi8_epi16(_mm_loadu_si128(p.add(ROWS).cast())),
                ]
            }
        }
        #[inline(always)]
        fn add_products(self, codes: Self::Codes, query: i32) -> Self {
            unsafe {
                let query = _mm256_set1_epi32(query);
                let [a, b] = self.0;
                Self([
                    _mm256_add_epi32(a, _mm256_madd_epi16(codes[0], query)),
                    _mm256_add_epi32(b, _mm256_madd_epi16(codes[1], query)),
                ])
            }
        }
        #[inline(always)]
        unsafe fn within(self, rows: *const f32, reach: &Reach) -> u16 {
            unsafe { half_within(self.0[0], rows, reach) | half_within(self.0[1], rows.add(8), reach) << 8 }
        }
    }

    /// [`Sums::within`] for 8 of the rows. No closure: it would be compiled without the instruction set.
    ///
    /// # Safety
    /// The processor has AVX2; `rows` is valid for reading 8 steps, lengths and errors, `ROWS` apart.
    #[inline(always)]
    unsafe fn half_within(sums: __m256i, rows: *const f32, reach: &Reach) -> u16 {
        unsafe {
            let steps = _mm256_mul_ps(_mm256_loadu_ps(rows), _mm256_set1_ps(reach.factor));
            let lengths = _mm256_add_ps(_mm256_loadu_ps(rows.add(ROWS)), _mm256_set1_ps(reach.length));
            let radius = _mm256_add_ps(_mm256_loadu_ps(rows.add(2 * ROWS)), _mm256_set1_ps(reach.radius));
            let together = _mm256_mul_ps(lengths, _mm256_set1_ps(ROUNDING));
            let distance = _mm256_sub_ps(together, _mm256_mul_ps(steps, _mm256_cvtepi32_ps(sums)));
            _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_LE_OQ>(distance, _mm256_mul_ps(radius, radius))) as u16
        }
    }

    /// One vector of 16 sums; with VNNI, products are added in the same instruction.
    #[derive(Clone, Copy)]
    pub(super) struct Avx512<const VNNI: bool>(__m512i);

    // SAFETY of every block below: by the invariant of `Sums` the processor has AVX-512 F and BW here, and
    // VNNI where the type says so; loads pass the caller's promise on.
    impl<const VNNI: bool> Sums for Avx512<VNNI> {
        type Codes = __m512i;
        const QUERIES: usize = 8;

        #[inline(always)]
        fn zero() -> Self {
            unsafe { Self(_mm512_setzero_si512()) }
        }
        #[inline(always)]
        fn prefetch(p: *const i8) {
            unsafe { _mm_prefetch::<_MM_HINT_T0>(p) }
        }
        #[inline(always)]
        unsafe fn load(p: *const i8) -> Self::Codes {
            unsafe { _mm512_cvtepi8_epi16(_mm256_loadu_si256(p.cast())) }
        }
        #[inline(always)]
        fn add_products(self, codes: Self::Codes, query: i32) -> Self {
            unsafe {
                let query = _mm512_set1_epi32(query);
                if VNNI {
                    return Self(_mm512_dpwssd_epi32(self.0, codes, query));
                }
                Self(_mm512_add_epi32(self.0, _mm512_madd_epi16(codes, query)))
            }
        }
        #[inline(always)]
        unsafe fn within(self, rows: *const f32, reach: &Reach) -> u16 {
            unsafe {
                let steps = _mm512_mul_ps(_mm512_loadu_ps(rows), _mm512_set1_ps(reach.factor));
                let lengths = _mm512_add_ps(_mm512_loadu_ps(rows.add(ROWS)), _mm512_set1_ps(reach.length));
                let radius = _mm512_add_ps(_mm512_loadu_ps(rows.add(2 * ROWS)), _mm512_set1_ps(reach.radius));
                let together = _mm512_mul_ps(lengths, _mm512_set1_ps(ROUNDING));
                let distance = _mm512_sub_ps(together, _mm512_mul_ps(steps, _mm512_cvtepi32_ps(self.0)));
                _mm512_cmp_ps_mask::<_CMP_LE_OQ>(distance, _mm512_mul_ps(radius, radius))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct EveryOperation;
    impl CodeKernel for EveryOperation {
        type Output = Vec<u16>;
        #[inline(always)]
        fn run<S: Sums>(self) -> Self::Output {
            let codes: Vec<i8> = (0..4 * ROWS as i32).map(|i| (i * 37 % 255 - 127) as i8).collect();
            let queries = [i32::from(-32767_i16 as u16) | 32767 << 16, 5 | -3 << 16];
            let mut sums = S::zero();
            for (codes, query) in codes.chunks_exact(2 * ROWS).zip(queries) {
                // SAFETY: a chunk has `2 * ROWS` codes.
                sums = sums.add_products(unsafe { S::load(codes.as_ptr()) }, query);
            }
            let steps = (0..ROWS).map(|row| 1e-3 * row as f32);
            let lengths = (0..ROWS).map(|row| if row == 3 { f32::NAN } else { 1e4 * row as f32 });
            let errors = (0..ROWS).map(|row| 0.5 * row as f32);
            let rows: Vec<f32> = steps.chain(lengths).chain(errors).collect();
            let bits = |radius| {
                let reach = Reach { length: 100.0, factor: 0.01, radius };
                // SAFETY: there are three values for each row.
                unsafe { sums.within(rows.as_ptr(), &reach) }
            };
            [0.0, 100.0, 200.0, 300.0, 1e9, f32::INFINITY].map(bits).to_vec()
        }
    }

    #[test]
    fn every_instruction_set_computes_the_same() {
        let expected = Simd(Level::Portable).run_codes(EveryOperation);
        assert_eq!(expected[4], !(1 << 3), "all but the row without a length");
        assert_eq!(expected[5], !(1 << 3));
        assert!(expected[2].count_ones() > expected[1].count_ones(), "{expected:x?}");
        for simd in Simd::available() {
            assert_eq!(simd.run_codes(EveryOperation), expected, "{}", simd.name());
        }
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("fma") {
            // SAFETY: just asked. On processors with VNNI nothing else takes this way.
            assert_eq!(unsafe { x86::run_avx512(EveryOperation) }, expected);
        }
    }
}
