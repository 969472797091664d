//! The nearest of very many rows, exactly.
//!
//! [`nearest`] compares a query with every row in 32-bit arithmetic. [`Codes`] finds the same rows, bit for
//! bit, by reading a quarter of the memory: each row is kept a second time in 8-bit codes with the length of
//! what the codes leave out. By the triangle inequality, a row whose codes are farther away than the nearest
//! rows found so far, by more than what query and row leave out, cannot be among the nearest. All others,
//! some dozens of a million, are compared in 32-bit arithmetic ([`squared_distance`]). The answer is always
//! exact; rows that are all equally far only take longer.
//!
//! Answers do not depend on the instruction set, `portable` included, on the number of threads, or on which
//! queries are asked together. Of equally near rows the first comes first.

mod codes;
mod compare;
mod found;
mod scan;

pub use codes::Codes;
pub use found::Nearest;
pub use scan::nearest;

/// `||a - b||^2`, summed in sixteen lanes in a fixed order, so that vectors of any width give the same
/// result. Products are rounded before they are added, as `portable` does too.
/// [`squared_distances`](crate::linear::squared_distances) rounds the two together, so the last bits differ.
#[inline(always)]
pub fn squared_distance(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 16;
    let square = |(a, b): (&f32, &f32)| (a - b) * (a - b);
    let (a, last_of_a) = a.as_chunks::<LANES>();
    let (b, last_of_b) = b.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for (a, b) in a.iter().zip(b) {
        for (sum, pair) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += square(pair);
        }
    }
    let last = last_of_a.iter().zip(last_of_b).map(square);
    sums.into_iter().chain(last).sum()
}
