//! Rows kept in 8-bit codes, to find the nearest by reading a quarter of the memory.
//!
//! A row is the centre of all rows, a step times 8-bit codes, and a rest whose length is kept as the row's
//! error. A query is the same with 16-bit codes. The distance between the two without their rests comes from
//! sums of whole numbers, which are exact, and the true distance differs from it by the two errors at most.

use std::sync::atomic::AtomicU32;

use rayon::prelude::*;

use super::compare::{Progress, Queries, Share, Widest, tiles};
use super::scan;
use crate::buffer::Buffer;
use crate::simd::codes::{ROWS, Reach};
use crate::simd::{Kernel, Simd, Vector};

/// Greatest code of a row.
const MOST: f32 = 127.0;
/// Longest row that is coded: sums of products with a query's codes, which have to be as fine, stay within 32
/// bits.
const LONGEST: usize = 2 * (i32::MAX as usize / (2 * MOST as usize * MOST as usize));
/// Larger values are not coded: their squares might be infinite.
const LARGEST: f32 = 1e15;
/// Values before the codes of a block: step, squared length and error of each row.
pub(super) const HEAD: usize = 3 * ROWS;
/// Rows of which the centre is the mean.
const SAMPLE: usize = 4096;
/// Blocks that a thread takes at a time.
const SHARE: usize = 256;
/// What is added to bounds, so that no rounding makes them too tight. See the test of bounds.
const MARGIN: f64 = 1e-6;

/// Codes of `rows: [n, dim]`, with which the nearest rows are found.
///
/// They take a quarter of the memory of the rows and 12 bytes for each, and are made in O(n * dim).
///
/// ```
/// use gpn_kernels::search::{Codes, nearest};
///
/// let rows: Vec<f32> = (0..3000).map(|i| ((i * 7919) % 2003) as f32).collect();
/// let codes = Codes::new(&rows, 3).unwrap();
/// let query = [1000.0, 300.0, 20.0];
/// assert_eq!(codes.nearest(&rows, &query, 5), nearest(&rows, &query, 3, 5));
/// ```
pub struct Codes {
    dim: usize,
    rows: usize,
    centre: Vec<f32>,
    /// Blocks of [`ROWS`] rows: a [`HEAD`], then two codes of each row after the other.
    blocks: Buffer,
}

impl Codes {
    /// Codes the rows. `None` where a value is not finite or beyond 10^15, or `dim` is beyond 133,144.
    pub fn new(rows: &[f32], dim: usize) -> Option<Self> {
        Self::with(Simd::chosen(), rows, dim)
    }

    fn with(simd: Simd, rows: &[f32], dim: usize) -> Option<Self> {
        if dim == 0 || dim > LONGEST {
            return None;
        }
        let count = rows.len() / dim;
        let centre = centre(rows, dim);
        let stride = stride(dim);
        let mut blocks = Buffer::zeroed(count.div_ceil(ROWS) * stride);
        let are_fit = blocks
            .par_chunks_mut(stride)
            .zip(rows.par_chunks(ROWS * dim))
            .map(|(block, rows)| simd.run(Encode { rows, dim, centre: &centre, block }))
            .reduce(|| true, |a, b| a && b);
        are_fit.then_some(Self { dim, rows: count, centre, blocks })
    }

    /// The `count` of `rows` nearest to each of `queries: [some, dim]`, nearest first; of equally near ones
    /// the first. `rows` are those that were coded. The answer is that of [`nearest`](super::nearest).
    pub fn nearest(&self, rows: &[f32], queries: &[f32], count: usize) -> Vec<Vec<u32>> {
        self.nearest_with(Simd::chosen(), rows, queries, count)
    }

    fn nearest_with(&self, simd: Simd, rows: &[f32], queries: &[f32], count: usize) -> Vec<Vec<u32>> {
        assert_eq!(rows.len() / self.dim, self.rows, "the rows are not those that were coded");
        let is_fit = |query: &f32| query.abs() <= LARGEST;
        if count >= self.rows || !queries.iter().all(is_fit) {
            return scan::nearest_with(simd, rows, queries, self.dim, count);
        }
        if count == 0 {
            return vec![Vec::new(); queries.len() / self.dim];
        }
        let queries: Vec<Query<'_>> =
            queries.chunks_exact(self.dim).map(|values| Query::new(values, &self.centre)).collect();
        let tiles = tiles(&queries, simd.run_codes(Widest));
        let limits: Vec<AtomicU32> =
            queries.iter().map(|_| AtomicU32::new(f32::INFINITY.to_bits())).collect();
        let new = || queries.iter().map(|query| Progress::new(query, count)).collect::<Vec<_>>();
        let merged = |mut a: Vec<Progress>, b: Vec<Progress>| {
            a.iter_mut().zip(&b).for_each(|(a, b)| a.found.merge(&b.found));
            a
        };
        let stride = stride(self.dim);
        let found = self
            .blocks
            .par_chunks(SHARE * stride)
            .enumerate()
            .fold(new, |mut progress, (share, blocks)| {
                let (dim, first) = (self.dim, share * SHARE * ROWS);
                let queries = Queries { all: &queries, tiles: &tiles, limits: &limits };
                simd.run_codes(Share { rows, dim, blocks, first, queries, progress: &mut progress });
                progress
            })
            .reduce(new, merged);
        found.into_iter().map(|progress| progress.found.into_rows()).collect()
    }

    /// Bytes that the codes take.
    pub fn bytes(&self) -> usize {
        size_of_val::<[f32]>(&self.blocks) + size_of_val::<[f32]>(&self.centre)
    }
}

/// Values of a block: its head, and its codes, four to a value.
pub(super) fn stride(dim: usize) -> usize {
    HEAD + dim.div_ceil(2) * 2 * ROWS / size_of::<f32>()
}

/// Greatest code of a query for which no sum exceeds 32 bits.
fn largest_query_code(dim: usize) -> i32 {
    let sums = dim.div_ceil(2).saturating_mul(2 * MOST as usize);
    (i32::MAX as usize / sums.max(1)).min(i16::MAX as usize) as i32
}

/// The mean of evenly spaced rows. Any point would do; near the midst, codes are finest.
fn centre(rows: &[f32], dim: usize) -> Vec<f32> {
    let count = rows.len() / dim;
    let mut sums = vec![0.0_f64; dim];
    let mut taken = 0.0_f64;
    for row in rows.chunks_exact(dim).step_by(count.div_ceil(SAMPLE).max(1)) {
        taken += 1.0;
        for (sum, &value) in sums.iter_mut().zip(row) {
            *sum += f64::from(value);
        }
    }
    sums.iter().map(|sum| (sum / taken.max(1.0)) as f32).collect()
}

/// Codes the rows of one block; whether all values were fit.
struct Encode<'a> {
    rows: &'a [f32],
    dim: usize,
    centre: &'a [f32],
    block: &'a mut [f32],
}

impl Kernel for Encode<'_> {
    type Output = bool;
    // Plain loops, compiled with the vectors of the instruction set.
    #[inline(always)]
    fn run<V: Vector>(self) -> bool {
        let (head, codes) = self.block.split_at_mut(HEAD);
        // SAFETY: any four bytes are a value of 32 bits.
        let codes = unsafe { codes.align_to_mut::<i8>().1 };
        let mut own = vec![0.0_f32; self.dim];
        let mut are_fit = true;
        for row in 0..ROWS {
            let Some(values) = self.rows.chunks_exact(self.dim).nth(row) else {
                // A block that is not full: nothing is near to such a row.
                head[ROWS + row] = f32::NAN;
                continue;
            };
            are_fit &= values.iter().all(|value| value.abs() <= LARGEST);
            let coded = encode(values, self.centre, MOST, &mut own);
            head[row] = coded.step;
            head[ROWS + row] = coded.length;
            head[2 * ROWS + row] = coded.error;
            for (pair, values) in own.chunks(2).enumerate() {
                for (at, &value) in values.iter().enumerate() {
                    codes[pair * 2 * ROWS + 2 * row + at] = value as i8;
                }
            }
        }
        are_fit
    }
}

/// What a row or query is besides its codes.
struct Coded {
    step: f32,
    /// Squared length of step times codes.
    length: f32,
    /// Length of what step times codes leave out, at least.
    error: f32,
}

/// Codes from `-most` to `most` of `values - centre`.
#[inline(always)]
fn encode(values: &[f32], centre: &[f32], most: f32, codes: &mut [f32]) -> Coded {
    /// Sums that run beside each other.
    const LANES: usize = 8;
    let mut largest = 0.0_f32;
    for (value, centre) in values.iter().zip(centre) {
        let size = (value - centre).abs();
        largest = if size > largest { size } else { largest };
    }
    let step = largest / most;
    let inverse = if step > 0.0 { 1.0 / step } else { 0.0 };
    for ((code, value), centre) in codes.iter_mut().zip(values).zip(centre) {
        // Any whole number will do: how far it is off is measured below.
        *code = ((value - centre) * inverse).round_ties_even().clamp(-most, most);
    }
    let (mut squares, mut rests, mut sizes) = ([0.0_f64; LANES], [0.0_f64; LANES], [0.0_f64; LANES]);
    for ((codes, values), centre) in codes.chunks(LANES).zip(values.chunks(LANES)).zip(centre.chunks(LANES)) {
        for (lane, ((&code, &value), &centre)) in codes.iter().zip(values).zip(centre).enumerate() {
            let [code, value, centre] = [code, value, centre].map(f64::from);
            let rest = value - centre - f64::from(step) * code;
            squares[lane] += code * code;
            rests[lane] += rest * rest;
            sizes[lane] += value * value + centre * centre;
        }
    }
    let [squares, rests, sizes] = [squares, rests, sizes].map(|lanes| lanes.iter().sum::<f64>());
    // The second term covers the rounding of 64-bit arithmetic in the rests.
    let error = rests.sqrt() * (1.0 + MARGIN) + 1e-12 * sizes.sqrt();
    Coded { step, length: (f64::from(step).powi(2) * squares) as f32, error: error as f32 }
}

/// A query with its codes.
pub(super) struct Query<'a> {
    pub(super) values: &'a [f32],
    /// Two 16-bit codes in each, the first in the lower half.
    pub(super) codes: Vec<i32>,
    pub(super) reach: Reach,
    error: f64,
}

impl<'a> Query<'a> {
    fn new(values: &'a [f32], centre: &[f32]) -> Self {
        let mut codes = vec![0.0; values.len()];
        let coded = encode(values, centre, largest_query_code(values.len()) as f32, &mut codes);
        let pair = |pair: &[f32]| {
            let at = |at: usize| i32::from(pair.get(at).copied().unwrap_or(0.0) as i16);
            at(0) & 0xffff | at(1) << 16
        };
        let reach = Reach { length: coded.length, factor: 2.0 * coded.step, radius: f32::INFINITY };
        Self { values, codes: codes.chunks(2).map(pair).collect(), reach, error: f64::from(coded.error) }
    }

    /// How far away codes may be of a row whose squared distance, as
    /// [`squared_distance`](super::squared_distance) computes it, is `limit` at most.
    pub(super) fn radius(&self, limit: f32) -> f32 {
        // A computed distance is off by the roundings on the way: two differences and a product in each of
        // its terms, and as many sums as there are in a lane, then of lanes, then of the last values.
        let roundings = self.values.len() as f64 / 16.0 + 40.0;
        let distance = (f64::from(limit) * (1.0 + 2.0 * roundings * f64::from(f32::EPSILON))).sqrt();
        // The last term is for values so small that their squares are not.
        ((distance + self.error) * (1.0 + MARGIN) + 1e-17) as f32
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha8Rng;
    use rand_core::{Rng as _, SeedableRng as _};

    use super::*;
    use crate::search::squared_distance;
    use crate::simd::codes::{CodeKernel, Sums};

    /// Sums of uniform values: nearly normal, and the same everywhere.
    fn normal(count: usize, seed: u64) -> Vec<f32> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut uniform = || (random.next_u32() >> 8) as f32 / (1 << 24) as f32;
        (0..count).map(|_| (0..6).map(|_| uniform()).sum::<f32>() - 3.0).collect()
    }

    /// Rows of every kind that is hard: noise, groups, equal ones, far from zero, of very different lengths,
    /// tiny, one number.
    fn kinds(rows: usize, dim: usize) -> Vec<(&'static str, Vec<f32>)> {
        let noise = normal(rows * dim, 1);
        let with = |change: &dyn Fn(usize, usize, f32) -> f32| -> Vec<f32> {
            noise.iter().enumerate().map(|(at, &value)| change(at / dim, at % dim, value)).collect()
        };
        vec![
            ("noise", noise.clone()),
            ("groups", with(&|row, at, value| 10.0 * noise[row % 7 * dim + at] + 0.01 * value)),
            ("pairs", with(&|row, at, _| noise[row / 2 * dim + at])),
            ("far from zero", with(&|_, _, value| 1e6 + value)),
            ("of many lengths", with(&|row, _, value| value * [1e-9, 1.0, 1e9][row % 3])),
            ("one long side", with(&|_, at, value| if at == 0 { 1e4 * value } else { value })),
            ("tiny", with(&|_, _, value| 1e-22 * value)),
            ("tinier", with(&|_, _, value| 1e-38 * value)),
            ("all one", vec![0.25; rows * dim]),
            ("zeros", vec![0.0; rows * dim]),
        ]
    }

    #[test]
    fn codes_find_what_a_scan_finds_with_every_instruction_set() {
        for (count, dim) in [(1, 1), (15, 2), (17, 3), (700, 19), (5000, 16), (3001, 64)] {
            for (kind, rows) in kinds(count, dim) {
                // Rows themselves, and others of their kind.
                let mut queries = rows[..rows.len().min(5 * dim)].to_vec();
                queries.extend(rows.iter().zip(normal(9 * dim, 2)).map(|(a, b)| a + 0.5 * b * a));
                for found in [1, 3, 10] {
                    let expected = scan::nearest(&rows, &queries, dim, found);
                    for simd in Simd::available() {
                        let codes = Codes::with(simd, &rows, dim).unwrap();
                        let got = codes.nearest_with(simd, &rows, &queries, found);
                        assert_eq!(got, expected, "{kind} {count} {dim} {}", simd.name());
                        assert_eq!(scan::nearest_with(simd, &rows, &queries, dim, found), expected);
                    }
                }
            }
        }
    }

    #[test]
    fn threads_and_companions_change_nothing() {
        let (dim, rows) = (24, normal(24 * 9000, 3));
        let queries = normal(13 * dim, 4);
        let codes = Codes::new(&rows, dim).unwrap();
        let on_threads = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| codes.nearest(&rows, &queries, 10))
        };
        let together = on_threads(1);
        assert_eq!(together, on_threads(3));
        let alone: Vec<_> =
            queries.chunks_exact(dim).flat_map(|query| codes.nearest(&rows, query, 10)).collect();
        assert_eq!(together, alone);
    }

    /// The rows of one block that are within reach of a query, a bit for each, as a search computes them.
    struct Within<'a> {
        block: &'a [f32],
        query: &'a Query<'a>,
        reach: Reach,
    }

    impl CodeKernel for Within<'_> {
        type Output = u16;
        #[inline(always)]
        fn run<S: Sums>(self) -> u16 {
            let mut sums = S::zero();
            // SAFETY: a block is a head, and codes of as many pairs as a query has.
            unsafe {
                let codes = self.block.as_ptr().add(HEAD).cast::<i8>();
                for (pair, &query) in self.query.codes.iter().enumerate() {
                    sums = sums.add_products(S::load(codes.add(pair * 2 * ROWS)), query);
                }
                sums.within(self.block.as_ptr(), &self.reach)
            }
        }
    }

    /// Every row is within reach of its distance from the query: the true one, in double precision, and the
    /// computed one.
    #[test]
    fn true_distances_are_within_the_bounds() {
        let (count, dim) = (160, 40);
        for (kind, rows) in kinds(count, dim) {
            let values: Vec<f32> =
                rows[..dim].iter().zip(normal(dim, 5)).map(|(a, b)| a + 0.3 * b * a).collect();
            for simd in Simd::available() {
                let codes = Codes::with(simd, &rows, dim).unwrap();
                let query = Query::new(&values, &codes.centre);
                for (number, row) in rows.chunks_exact(dim).enumerate() {
                    let block = &codes.blocks[number / ROWS * stride(dim)..][..stride(dim)];
                    let is_within = |limit: f32| {
                        let reach = Reach { radius: query.radius(limit), ..query.reach };
                        let within = simd.run_codes(Within { block, query: &query, reach });
                        (within >> (number % ROWS)) & 1 == 1
                    };
                    let differences = row.iter().zip(&values).map(|(&a, &b)| f64::from(a) - f64::from(b));
                    let exact: f64 = differences.map(|difference| difference * difference).sum();
                    for limit in [exact as f32, squared_distance(row, &values)] {
                        assert!(is_within(limit), "{kind} {number} {limit} {}", simd.name());
                    }
                    // The bounds of noise are tight enough to leave out what is twice as far.
                    assert!(kind != "noise" || !is_within(0.25 * exact as f32), "{number} {}", simd.name());
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_coded_is_told_or_scanned() {
        assert!(Codes::new(&[1.0, f32::NAN], 2).is_none());
        assert!(Codes::new(&[1.0, f32::INFINITY], 1).is_none());
        assert!(Codes::new(&[1.0, 1e16], 1).is_none());
        assert!(Codes::new(&[], 0).is_none());
        assert_eq!(LONGEST, 133_144);
        assert_eq!([LONGEST, LONGEST + 1].map(largest_query_code), [127, 126]);
        assert!(Codes::new(&[], LONGEST).is_some() && Codes::new(&[], LONGEST + 1).is_none());
        let rows = normal(50, 6);
        let codes = Codes::new(&rows, 1).unwrap();
        for query in [f32::NAN, f32::INFINITY, -1e30] {
            assert_eq!(codes.nearest(&rows, &[query], 3), scan::nearest(&rows, &[query], 1, 3));
        }
        assert_eq!(codes.nearest(&rows, &[0.5], 60), scan::nearest(&rows, &[0.5], 1, 60));
        assert_eq!(codes.nearest(&rows, &[0.5, 1.0], 0), [vec![], vec![]]);
        assert!(codes.nearest(&rows, &[], 3).is_empty());
    }
}
