//! The two directions in which points vary most.

/// The coordinates of each point along the two main directions of the data, by power iteration: first from a
/// fixed start, then again on what is left. Signs are chosen so that the largest weight is positive.
pub(crate) fn main_directions(points: &[f32], dim: usize) -> [Vec<f64>; 2] {
    let n = points.len() / dim;
    let mut mean = vec![0.0f64; dim];
    for point in points.chunks_exact(dim) {
        for (m, &v) in mean.iter_mut().zip(point) {
            *m += f64::from(v) / n as f64;
        }
    }
    let mut centred: Vec<f64> = Vec::with_capacity(points.len());
    for point in points.chunks_exact(dim) {
        centred.extend(point.iter().zip(&mean).map(|(&v, m)| f64::from(v) - m));
    }
    // The unit of the data does not matter, and squares of it must not overflow.
    let largest = centred.iter().fold(0.0f64, |a, v| a.max(v.abs()));
    if largest > 0.0 {
        for v in &mut centred {
            *v /= largest;
        }
    }
    [(); 2].map(|()| {
        let direction = strongest(&centred, dim);
        let along: Vec<f64> = centred.chunks_exact(dim).map(|p| dot(p, &direction)).collect();
        for (point, a) in centred.chunks_exact_mut(dim).zip(&along) {
            for (v, d) in point.iter_mut().zip(&direction) {
                *v -= a * d;
            }
        }
        along
    })
}

fn strongest(centred: &[f64], dim: usize) -> Vec<f64> {
    // A start that no ordinary direction is at right angles to.
    let mut direction: Vec<f64> = (0..dim).map(|d| 1.0 + (d as f64 * 1.7).sin() * 0.5).collect();
    normalise(&mut direction);
    for _ in 0..200 {
        let mut next = vec![0.0f64; dim];
        for point in centred.chunks_exact(dim) {
            let along = dot(point, &direction);
            for (t, v) in next.iter_mut().zip(point) {
                *t += along * v;
            }
        }
        if !normalise(&mut next) {
            break;
        }
        let turned = 1.0 - dot(&next, &direction).abs();
        direction = next;
        if turned < 1e-12 {
            break;
        }
    }
    let heaviest = direction.iter().fold(0.0f64, |a, &v| if v.abs() > a.abs() { v } else { a });
    if heaviest < 0.0 {
        for v in &mut direction {
            *v = -*v;
        }
    }
    direction
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// Makes a vector one long; false if it has no length.
fn normalise(vector: &mut [f64]) -> bool {
    let length = dot(vector, vector).sqrt();
    if length < 1e-150 {
        return false;
    }
    for v in vector {
        *v /= length;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_are_found_in_order() {
        // An ellipse in the plane of the second and third of four numbers.
        let points: Vec<f32> = (0..60)
            .flat_map(|i| {
                let angle = i as f32 * std::f32::consts::TAU / 60.0;
                [5.0, 2.0 + 7.0 * angle.cos(), 3.0 * angle.sin(), -1.0]
            })
            .collect();
        let [first, second] = main_directions(&points, 4);
        for i in 0..60 {
            let angle = i as f64 * std::f64::consts::TAU / 60.0;
            assert!((first[i] - angle.cos()).abs() < 1e-4, "{i}");
            assert!((second[i] - angle.sin() * 3.0 / 7.0).abs() < 1e-4, "{i}");
        }
    }
}
