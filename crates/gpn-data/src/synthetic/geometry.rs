//! Signed distances (negative inside) in arithmetic that gives the same bits everywhere: no library
//! functions beyond the square root.

/// A point or vector: right and down.
pub(super) type Point = [f32; 2];

pub(super) fn sub(a: Point, b: Point) -> Point {
    [a[0] - b[0], a[1] - b[1]]
}

pub(super) fn dot(a: Point, b: Point) -> f32 {
    a[0] * b[0] + a[1] * b[1]
}

pub(super) fn length(a: Point) -> f32 {
    dot(a, a).sqrt()
}

pub(super) fn disc(p: Point, centre: Point, radius: f32) -> f32 {
    length(sub(p, centre)) - radius
}

/// An ellipse with axes along the coordinates; the distance is a good approximation near the border.
pub(super) fn ellipse(p: Point, centre: Point, half: Point) -> f32 {
    let d = sub(p, centre);
    let scaled = length([d[0] / half[0], d[1] / half[1]]);
    let slope = length([d[0] / (half[0] * half[0]), d[1] / (half[1] * half[1])]);
    scaled * (scaled - 1.0) / slope.max(1e-6)
}

pub(super) fn rectangle(p: Point, centre: Point, half: Point) -> f32 {
    let d = sub(p, centre);
    let [x, y] = [d[0].abs() - half[0], d[1].abs() - half[1]];
    length([x.max(0.0), y.max(0.0)]) + x.max(y).min(0.0)
}

/// A stroke with round ends.
pub(super) fn stroke(p: Point, from: Point, to: Point, radius: f32) -> f32 {
    square_to_segment(p, from, to).sqrt() - radius
}

/// Square of the distance to the nearest point between two ends.
fn square_to_segment(p: Point, from: Point, to: Point) -> f32 {
    let [a, b] = [sub(p, from), sub(to, from)];
    let along = (dot(a, b) / dot(b, b)).clamp(0.0, 1.0);
    let away = [a[0] - b[0] * along, a[1] - b[1] * along];
    dot(away, away)
}

/// A polygon, convex or not.
pub(super) fn polygon(p: Point, corners: &[Point]) -> f32 {
    let mut nearest = f32::INFINITY;
    let mut inside = false;
    for (i, &from) in corners.iter().enumerate() {
        let to = corners[(i + 1) % corners.len()];
        nearest = nearest.min(square_to_segment(p, from, to));
        // A ray to the right crosses this side.
        if (from[1] > p[1]) != (to[1] > p[1]) {
            let at = from[0] + (p[1] - from[1]) / (to[1] - from[1]) * (to[0] - from[0]);
            inside ^= p[0] < at;
        }
    }
    if inside { -nearest.sqrt() } else { nearest.sqrt() }
}

/// Cosine of `times` times the angle of `p`, by powers of a complex number.
pub(super) fn cosine_of_multiple(p: Point, times: u32) -> f32 {
    let radius = length(p).max(1e-6);
    let unit = [p[0] / radius, p[1] / radius];
    let mut power = [1.0, 0.0];
    for _ in 0..times {
        power = [power[0] * unit[0] - power[1] * unit[1], power[0] * unit[1] + power[1] * unit[0]];
    }
    power[0]
}

/// Cosine and sine of an angle given in turns, to about 1e-3, which is below a pixel's width at any size used.
pub(super) fn direction(turns: f32) -> Point {
    let cosine = |t: f32| {
        // Bhaskara's rational form on a half wave.
        let t = t - t.floor();
        let (t, sign) = if t > 0.25 && t < 0.75 { (t - 0.5, -1.0) } else { (t - t.round(), 1.0) };
        let square = 4.0 * t * t;
        sign * (1.0 - 4.0 * square) / (1.0 + square)
    };
    let [x, y] = [cosine(turns), cosine(turns - 0.25)];
    let norm = length([x, y]);
    [x / norm, y / norm]
}

/// Random bits for a cell of a grid.
pub(super) fn hash(seed: u32, x: u32, y: u32) -> u32 {
    let mut h = seed ^ x.wrapping_mul(0x9E37_79B1) ^ y.wrapping_mul(0x85EB_CA77);
    h = (h ^ (h >> 15)).wrapping_mul(0x2C1B_3C6D);
    h = (h ^ (h >> 12)).wrapping_mul(0x297A_2D39);
    h ^ (h >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_have_the_right_sign_and_size() {
        assert!((disc([2.0, 0.0], [0.0, 0.0], 0.5) - 1.5).abs() < 1e-6);
        assert!((rectangle([0.0, 0.0], [0.0, 0.0], [0.4, 0.3]) + 0.3).abs() < 1e-6);
        assert!((ellipse([0.7, 0.0], [0.0, 0.0], [0.5, 0.3]) - 0.2).abs() < 1e-5);
        let square = [[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]];
        assert!((polygon([0.5, 0.0], &square) + 0.5).abs() < 1e-6);
        assert!((polygon([3.0, 0.0], &square) - 2.0).abs() < 1e-6);
    }

    #[test]
    fn directions_are_close_to_the_circle_functions() {
        for i in -100..100 {
            let turns = i as f32 / 37.0;
            let (sin, cos) = (turns * std::f32::consts::TAU).sin_cos();
            let [x, y] = direction(turns);
            assert!((x - cos).abs() < 3e-3 && (y - sin).abs() < 3e-3, "{turns}: {x} {y}, {cos} {sin}");
            assert!(
                (cosine_of_multiple([cos, sin], 5) - (5.0 * turns * std::f32::consts::TAU).cos()).abs()
                    < 1e-3
            );
        }
    }
}
