//! The register tile: the one inner loop behind every convolution and matrix product.

use crate::simd::Vector;

/// Distances, in values, between the operands of a register tile.
#[derive(Clone, Copy)]
pub(crate) struct Strides {
    /// Between the scalars of one step, from one row of the tile to the next.
    pub(crate) x_row: usize,
    /// Between the scalars of a row, from one step to the next.
    pub(crate) x_step: usize,
    /// Between the vectors of one step and the next.
    pub(crate) w_step: usize,
    /// Between the vectors of one step.
    pub(crate) w_vector: usize,
}

/// `acc[p][q] += sum over k < steps of x[p * x_row + k * x_step] * w[k * w_step + q * w_vector ..]`
///
/// A convolution lets `p` run over pixels and `k` over the input channels of a row of taps; a weight
/// gradient lets `p` run over input channels and `k` over pixels.
///
/// # Safety
/// `x` and `w` are readable at every index the formula names.
#[inline(always)]
pub(crate) unsafe fn accumulate<V: Vector, const P: usize, const Q: usize>(
    acc: [[V; Q]; P],
    x: *const f32,
    w: *const f32,
    strides: Strides,
    steps: usize,
) -> [[V; Q]; P] {
    // SAFETY: passed on.
    unsafe { accumulate_rows::<V, P, Q, 0>(acc, x, w, strides, steps) }
}

/// [`accumulate`] where the compiler knows `x_row` (`ROW`, unless that is 0): a tall tile otherwise keeps more
/// addresses than there are registers for.
///
/// # Safety
/// As [`accumulate`].
#[inline(always)]
pub(crate) unsafe fn accumulate_rows<V: Vector, const P: usize, const Q: usize, const ROW: usize>(
    mut acc: [[V; Q]; P],
    mut x: *const f32,
    mut w: *const f32,
    strides: Strides,
    steps: usize,
) -> [[V; Q]; P] {
    debug_assert!(ROW == 0 || ROW == strides.x_row);
    let row = if ROW == 0 { strides.x_row } else { ROW };
    for _ in 0..steps {
        // SAFETY: the caller's promise; the pointers are advanced past the last step but not read there.
        unsafe {
            let mut vectors = [V::zero(); Q];
            for q in 0..Q {
                vectors[q] = V::load(w.add(q * strides.w_vector));
            }
            for p in 0..P {
                let scalar = V::splat(*x.add(p * row));
                for q in 0..Q {
                    acc[p][q] = scalar.mul_add(vectors[q], acc[p][q]);
                }
            }
        }
        x = x.wrapping_add(strides.x_step);
        w = w.wrapping_add(strides.w_step);
    }
    acc
}

/// Sum of two tiles.
#[inline(always)]
pub(crate) fn add<V: Vector, const P: usize, const Q: usize>(
    mut a: [[V; Q]; P],
    b: [[V; Q]; P],
) -> [[V; Q]; P] {
    for p in 0..P {
        for q in 0..Q {
            a[p][q] = a[p][q].add(b[p][q]);
        }
    }
    a
}

/// Loads a tile from rows `row` values apart, whose vectors are `vector` values apart.
///
/// # Safety
/// `from` is readable at `p * row + q * vector ..` for every `p < P`, `q < Q`.
#[inline(always)]
pub(crate) unsafe fn load<V: Vector, const P: usize, const Q: usize>(
    from: *const f32,
    row: usize,
    vector: usize,
) -> [[V; Q]; P] {
    let mut acc = [[V::zero(); Q]; P];
    for (p, line) in acc.iter_mut().enumerate() {
        for (q, value) in line.iter_mut().enumerate() {
            // SAFETY: the caller's promise.
            *value = unsafe { V::load(from.add(p * row + q * vector)) };
        }
    }
    acc
}

/// Stores the first `rows` rows of a tile, `row` values apart, their vectors `vector` values apart.
///
/// # Safety
/// `to` is writable at `p * row + q * vector ..` for every `p < rows`, `q < Q`.
#[inline(always)]
pub(crate) unsafe fn store<V: Vector, const P: usize, const Q: usize>(
    acc: &[[V; Q]; P],
    to: *mut f32,
    (row, vector): (usize, usize),
    rows: usize,
) {
    for (p, line) in acc.iter().enumerate() {
        if p < rows {
            for (q, value) in line.iter().enumerate() {
                // SAFETY: the caller's promise.
                unsafe { value.store(to.add(p * row + q * vector)) };
            }
        }
    }
}

/// The tile height of `choices` that wastes least of `rows` rows; the first where they are equal.
#[inline(always)]
pub(crate) fn best_height(choices: [usize; 2], rows: usize) -> usize {
    let [first, second] = choices;
    if rows.next_multiple_of(second) < rows.next_multiple_of(first) { second } else { first }
}
