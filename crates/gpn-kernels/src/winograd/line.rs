//! Winograd's transforms of one line of values.

use crate::simd::Vector;

/// Interpolation points are 0, +-NEAR, +-FAR and infinity. The textbook's 1 and 2 lose three bits more, enough
/// to flip a ReLU near zero now and then.
const NEAR: f32 = 0.625;
const FAR: f32 = 1.5;
const NEAR2: f32 = NEAR * NEAR;
const FAR2: f32 = FAR * FAR;

/// `B' d`
#[inline(always)]
pub(super) fn input_transform<V: Vector>(d: [V; 6]) -> [V; 6] {
    let (product, sum) = (V::splat(NEAR2 * FAR2), V::splat(-NEAR2 - FAR2));
    let even = d[2].mul_add(V::splat(-FAR2), d[4]);
    let odd = d[1].mul_add(V::splat(-FAR2), d[3]);
    let far_even = d[2].mul_add(V::splat(-NEAR2), d[4]);
    let far_odd = d[1].mul_add(V::splat(-NEAR2), d[3]);
    [
        d[0].mul_add(product, d[2].mul_add(sum, d[4])),
        odd.mul_add(V::splat(NEAR), even),
        odd.mul_add(V::splat(-NEAR), even),
        far_odd.mul_add(V::splat(FAR), far_even),
        far_odd.mul_add(V::splat(-FAR), far_even),
        d[1].mul_add(product, d[3].mul_add(sum, d[5])),
    ]
}

/// `A' m`
#[inline(always)]
pub(super) fn output_transform<V: Vector>(m: [V; 6]) -> [V; 4] {
    let (sum, difference) = (m[1].add(m[2]), m[1].sub(m[2]));
    let (far_sum, far_difference) = (m[3].add(m[4]), m[3].sub(m[4]));
    [
        m[0].add(sum).add(far_sum),
        far_difference.mul_add(V::splat(FAR), difference.mul(V::splat(NEAR))),
        far_sum.mul_add(V::splat(FAR2), sum.mul(V::splat(NEAR2))),
        far_difference.mul_add(V::splat(FAR * FAR2), difference.mul_add(V::splat(NEAR * NEAR2), m[5])),
    ]
}

/// `A g`
#[inline(always)]
pub(super) fn output_transform_transposed<V: Vector>(g: [V; 4]) -> [V; 6] {
    let even = g[2].mul_add(V::splat(NEAR2), g[0]);
    let odd = g[3].mul_add(V::splat(NEAR2), g[1]);
    let far_even = g[2].mul_add(V::splat(FAR2), g[0]);
    let far_odd = g[3].mul_add(V::splat(FAR2), g[1]);
    [
        g[0],
        odd.mul_add(V::splat(NEAR), even),
        odd.mul_add(V::splat(-NEAR), even),
        far_odd.mul_add(V::splat(FAR), far_even),
        far_odd.mul_add(V::splat(-FAR), far_even),
        g[3],
    ]
}

/// The rows of G that belong to +-point are (1, +-point, point^2) times this; `other` is the other point.
const fn weight_factor(point: f64, other: f64) -> f64 {
    0.5 / (point * point * (point * point - other * other))
}
const NEAR_FACTOR: f64 = weight_factor(NEAR as f64, FAR as f64);
const FAR_FACTOR: f64 = weight_factor(FAR as f64, NEAR as f64);
/// G's row of the point 0 has this as its first value.
const ZERO_FACTOR: f32 = 1.0 / (NEAR2 * FAR2);
/// First, second and third value of those rows.
const NEAR_ROW: [f32; 3] = factor_row(NEAR_FACTOR, NEAR as f64);
const FAR_ROW: [f32; 3] = factor_row(FAR_FACTOR, FAR as f64);

const fn factor_row(factor: f64, point: f64) -> [f32; 3] {
    [factor as f32, (factor * point) as f32, (factor * point * point) as f32]
}

/// `G w`
#[inline(always)]
pub(super) fn weight_transform<V: Vector>(w: [V; 3]) -> [V; 6] {
    let near = weighted(NEAR_ROW[0], w[0], NEAR_ROW[2], w[2]);
    let far = weighted(FAR_ROW[0], w[0], FAR_ROW[2], w[2]);
    [
        w[0].mul(V::splat(ZERO_FACTOR)),
        w[1].mul_add(V::splat(NEAR_ROW[1]), near),
        w[1].mul_add(V::splat(-NEAR_ROW[1]), near),
        w[1].mul_add(V::splat(FAR_ROW[1]), far),
        w[1].mul_add(V::splat(-FAR_ROW[1]), far),
        w[2],
    ]
}

/// `G' u`
#[inline(always)]
pub(super) fn weight_transform_transposed<V: Vector>(u: [V; 6]) -> [V; 3] {
    let (near, far) = (u[1].add(u[2]), u[3].add(u[4]));
    let (near_odd, far_odd) = (u[1].sub(u[2]), u[3].sub(u[4]));
    [
        u[0].mul_add(V::splat(ZERO_FACTOR), weighted(NEAR_ROW[0], near, FAR_ROW[0], far)),
        weighted(NEAR_ROW[1], near_odd, FAR_ROW[1], far_odd),
        weighted(NEAR_ROW[2], near, FAR_ROW[2], far).add(u[5]),
    ]
}

/// `a * x + b * y`
#[inline(always)]
fn weighted<V: Vector>(a: f32, x: V, b: f32, y: V) -> V {
    x.mul_add(V::splat(a), y.mul(V::splat(b)))
}
