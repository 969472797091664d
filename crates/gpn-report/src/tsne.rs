//! t-SNE: points of many dimensions on a map where near points stay near.
//!
//! The exact method of van der Maaten and Hinton, O(n²) in time for each iteration and O(n²) in memory, good for
//! some thousands of points. It starts from the two main directions of the data, not from chance, and sums in a
//! fixed order, so the same points give the same bits at any number of threads.

use crate::ReportError;
use crate::pca::main_directions;
use rayon::prelude::*;

/// Settings of [`tsne`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TsneSettings {
    /// How many neighbours a point counts with, in effect; at most a third of the points (default 30).
    pub perplexity: f64,
    /// Steps of the descent (default 1000).
    pub iterations: usize,
    /// Factor on the attraction during the first quarter of the steps, which lets clusters form (default 12).
    pub exaggeration: f64,
}

impl Default for TsneSettings {
    fn default() -> Self {
        Self { perplexity: 30.0, iterations: 1000, exaggeration: 12.0 }
    }
}

/// Places points on a map. `points` holds `dim` numbers for each point, one point after the other.
///
/// ```
/// use gpn_report::{TsneSettings, tsne};
/// // Two groups far apart in three dimensions.
/// let points: Vec<f32> = (0..40).flat_map(|i| [i as f32 * 0.01, (i % 2) as f32 * 9.0, 1.0]).collect();
/// let map = tsne(&points, 3, &TsneSettings { iterations: 300, ..TsneSettings::default() })?;
/// assert_eq!(map.len(), 40);
/// # Ok::<(), gpn_report::ReportError>(())
/// ```
pub fn tsne(points: &[f32], dim: usize, settings: &TsneSettings) -> Result<Vec<[f32; 2]>, ReportError> {
    if dim == 0 || !points.len().is_multiple_of(dim) {
        return Err(ReportError::Tsne(format!("{} numbers are no rows of {dim}", points.len())));
    }
    if let Some(i) = points.iter().position(|x| !x.is_finite()) {
        return Err(ReportError::Tsne(format!("point {}, number {} is not finite", i / dim, i % dim)));
    }
    if settings.perplexity.is_nan() || settings.perplexity < 1.0 {
        return Err(ReportError::Tsne(format!("perplexity {} is below 1", settings.perplexity)));
    }
    let n = points.len() / dim;
    let mut map = start(points, dim);
    if n > 2 {
        let perplexity = settings.perplexity.min((n - 1) as f64 / 3.0).max(1.0);
        let affinity = affinities(points, dim, perplexity);
        descend(&mut map, &affinity, settings);
    }
    Ok((0..n).map(|i| [map.x[i] as f32, map.y[i] as f32]).collect())
}

/// Places of the points, one list for each axis.
struct Map {
    x: Vec<f64>,
    y: Vec<f64>,
}

/// The main directions of the data, tiny, as t-SNE wants it.
fn start(points: &[f32], dim: usize) -> Map {
    let n = points.len() / dim;
    let [mut x, mut y] = main_directions(points, dim);
    let spread = (x.iter().map(|v| v * v).sum::<f64>() / n.max(1) as f64).sqrt();
    let scale = if spread > 0.0 { 1e-4 / spread } else { 0.0 };
    for (i, (x, y)) in x.iter_mut().zip(&mut y).enumerate() {
        // Equal points could never part without a push of their own; the golden angle gives each another one.
        let angle = i as f64 * 2.399_963_229_728_653;
        *x = *x * scale + 1e-7 * angle.cos();
        *y = *y * scale + 1e-7 * angle.sin();
    }
    Map { x, y }
}

/// How near every two points are, as probabilities that sum to one (matrix of n x n, symmetric, zero diagonal).
fn affinities(points: &[f32], dim: usize, perplexity: f64) -> Vec<f32> {
    let n = points.len() / dim;
    let mut affinity = vec![0.0f32; n * n];
    affinity.par_chunks_mut(n).enumerate().for_each(|(i, row)| {
        let own = &points[i * dim..(i + 1) * dim];
        let distances: Vec<f64> = points
            .chunks_exact(dim)
            .map(|other| own.iter().zip(other).map(|(a, b)| f64::from(a - b).powi(2)).sum())
            .collect();
        neighbour_probabilities(&distances, i, perplexity.ln(), row);
    });
    let share = 0.5 / n as f32;
    for i in 0..n {
        for j in 0..i {
            let both = (affinity[i * n + j] + affinity[j * n + i]) * share;
            affinity[i * n + j] = both;
            affinity[j * n + i] = both;
        }
    }
    affinity
}

/// The chance that point `own` would pick each other point as neighbour, under a bell curve whose width gives
/// the wanted entropy; found by halving an interval.
fn neighbour_probabilities(distances: &[f64], own: usize, entropy: f64, row: &mut [f32]) {
    let others = || distances.iter().enumerate().filter(|&(j, _)| j != own).map(|(_, &d)| d);
    let nearest = others().fold(f64::INFINITY, f64::min);
    let mean = others().map(|d| d - nearest).sum::<f64>() / (distances.len() - 1) as f64;
    let (mut low, mut high) = (0.0, f64::INFINITY);
    // Distances have no unit; their mean gives the search its scale.
    let mut sharpness = if mean > 0.0 { 1.0 / mean } else { 1.0 };
    let mut sum = 1.0;
    for _ in 0..100 {
        let mut weighted = 0.0;
        sum = 0.0;
        for d in others() {
            let p = (-(d - nearest) * sharpness).exp();
            sum += p;
            weighted += p * (d - nearest);
        }
        let found = sum.ln() + sharpness * weighted / sum;
        if (found - entropy).abs() < 1e-6 {
            break;
        }
        if found > entropy {
            low = sharpness;
            sharpness = if high.is_finite() { f64::midpoint(low, high) } else { sharpness * 2.0 };
        } else {
            high = sharpness;
            sharpness = f64::midpoint(low, high);
        }
        if !sharpness.is_finite() {
            sharpness = f64::MAX.sqrt();
            break;
        }
    }
    for (j, (p, d)) in row.iter_mut().zip(distances).enumerate() {
        *p = if j == own { 0.0 } else { ((-(d - nearest) * sharpness).exp() / sum) as f32 };
    }
}

/// Gradient descent with momentum and a gain for each coordinate.
fn descend(map: &mut Map, affinity: &[f32], settings: &TsneSettings) {
    let n = map.x.len();
    let rate = (n as f64 / settings.exaggeration.max(1.0) / 4.0).max(50.0);
    let early = settings.iterations / 4;
    let mut speed = vec![[0.0f64; 2]; n];
    let mut gain = vec![[1.0f64; 2]; n];
    for iteration in 0..settings.iterations {
        let (exaggeration, momentum) =
            if iteration < early { (settings.exaggeration, 0.5) } else { (1.0, 0.8) };
        let [x, y] = [&map.x, &map.y].map(|axis| axis.iter().map(|&v| v as f32).collect::<Vec<_>>());
        let forces: Vec<Forces> =
            (0..n).into_par_iter().map(|i| forces(&x, &y, &affinity[i * n..(i + 1) * n], i)).collect();
        let total = forces.iter().map(|f| f.weight).sum::<f64>().max(f64::MIN_POSITIVE);
        for (i, force) in forces.iter().enumerate() {
            for axis in 0..2 {
                let slope = 4.0 * (exaggeration * force.pull[axis] - force.push[axis] / total);
                let (speed, gain) = (&mut speed[i][axis], &mut gain[i][axis]);
                *gain = if (slope > 0.0) == (*speed > 0.0) { (*gain * 0.8).max(0.01) } else { *gain + 0.2 };
                *speed = momentum * *speed - rate * *gain * slope;
            }
            map.x[i] += speed[i][0];
            map.y[i] += speed[i][1];
        }
        for axis in [&mut map.x, &mut map.y] {
            let mean = axis.iter().sum::<f64>() / n as f64;
            for v in axis {
                *v -= mean;
            }
        }
    }
}

/// What acts on one point: the pull of its neighbours, the push of all points, and the sum of the weights the
/// push is measured in.
struct Forces {
    pull: [f64; 2],
    push: [f64; 2],
    weight: f64,
}

/// Sums run in lanes that the processor can handle at once; their number is part of the order of summation.
const LANES: usize = 8;

/// Farther than any map is wide, yet its square is a number.
const FAR: f32 = 1e18;

/// Single precision is enough for the forces, whose errors the next step corrects, and twice as fast.
fn forces(x: &[f32], y: &[f32], affinity: &[f32], i: usize) -> Forces {
    let (xi, yi) = (x[i], y[i]);
    let mut sums = Sums::default();
    let whole = affinity.len() / LANES * LANES;
    let chunks = x[..whole].chunks_exact(LANES).zip(y.chunks_exact(LANES)).zip(affinity.chunks_exact(LANES));
    for ((x, y), p) in chunks {
        sums.add(xi, yi, x, y, p);
    }
    // The last points, filled up with points too far away to pull or push.
    let mut rest = [[FAR; LANES], [0.0; LANES], [0.0; LANES]];
    for (lane, j) in (whole..affinity.len()).enumerate() {
        rest[0][lane] = x[j];
        rest[1][lane] = y[j];
        rest[2][lane] = affinity[j];
    }
    sums.add(xi, yi, &rest[0], &rest[1], &rest[2]);
    let sum = |lanes: [f32; LANES]| lanes.iter().map(|&v| f64::from(v)).sum::<f64>();
    Forces {
        pull: [sum(sums.pull_x), sum(sums.pull_y)],
        push: [sum(sums.push_x), sum(sums.push_y)],
        // The point itself is among the points, at distance zero: weight one, no force.
        weight: sum(sums.weight) - 1.0,
    }
}

/// Sums of the forces on a point, in lanes.
#[derive(Default)]
struct Sums {
    pull_x: [f32; LANES],
    pull_y: [f32; LANES],
    push_x: [f32; LANES],
    push_y: [f32; LANES],
    weight: [f32; LANES],
}

impl Sums {
    /// Adds what as many points as there are lanes do to the point at `(xi, yi)`.
    #[inline]
    fn add(&mut self, xi: f32, yi: f32, x: &[f32], y: &[f32], p: &[f32]) {
        for lane in 0..LANES {
            let (dx, dy) = (xi - x[lane], yi - y[lane]);
            let w = 1.0 / (1.0 + dx * dx + dy * dy);
            let (pull, push) = (p[lane] * w, w * w);
            self.pull_x[lane] += pull * dx;
            self.pull_y[lane] += pull * dy;
            self.push_x[lane] += push * dx;
            self.push_y[lane] += push * dy;
            self.weight[lane] += w;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clusters of points around corners far apart, from a fixed rule that looks like noise.
    fn clusters(count: usize, each: usize, dim: usize) -> (Vec<f32>, Vec<usize>) {
        let mut state = 0x9e37_79b9_u64;
        let mut noise = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1u64 << 24) as f32 - 0.5
        };
        let mut points = Vec::new();
        let mut labels = Vec::new();
        for i in 0..count * each {
            let label = i % count;
            labels.push(label);
            points.extend((0..dim).map(|d| noise() + if d == label { 4.0 } else { 0.0 }));
        }
        (points, labels)
    }

    fn quick() -> TsneSettings {
        TsneSettings { perplexity: 15.0, iterations: 400, ..TsneSettings::default() }
    }

    #[test]
    fn clusters_stay_apart() {
        let (points, labels) = clusters(6, 30, 10);
        let map = tsne(&points, 10, &quick()).unwrap();
        let nearest = |i: usize| {
            let distance = |j: usize| (map[i][0] - map[j][0]).powi(2) + (map[i][1] - map[j][1]).powi(2);
            (0..map.len()).filter(|&j| j != i).min_by(|&a, &b| distance(a).total_cmp(&distance(b))).unwrap()
        };
        let agree = (0..map.len()).filter(|&i| labels[nearest(i)] == labels[i]).count();
        assert_eq!(agree, map.len());
        // Each cluster is small compared with the map.
        let width = |points: &[[f32; 2]], axis: usize| {
            let values = || points.iter().map(|p| p[axis]);
            values().fold(f32::MIN, f32::max) - values().fold(f32::MAX, f32::min)
        };
        let own: Vec<[f32; 2]> = (0..map.len()).filter(|&i| labels[i] == 2).map(|i| map[i]).collect();
        for axis in 0..2 {
            assert!(width(&own, axis) < 0.5 * width(&map, axis));
        }
    }

    #[test]
    fn same_bits_at_any_number_of_threads() {
        let (points, _) = clusters(3, 35, 7);
        let bits = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let map = pool.install(|| tsne(&points, 7, &quick()).unwrap());
            map.iter().map(|p| [p[0].to_bits(), p[1].to_bits()]).collect::<Vec<_>>()
        };
        let one = bits(1);
        assert_eq!(one, bits(1));
        assert_eq!(one, bits(3));
    }

    #[test]
    fn every_number_and_kind_of_points_has_a_map() {
        for n in 0..9 {
            let equal = vec![1.5; n * 4];
            let line: Vec<f32> = (0..n * 4).map(|i| (i / 4) as f32).collect();
            for points in [equal, line] {
                let map = tsne(&points, 4, &quick()).unwrap();
                assert_eq!(map.len(), n);
                assert!(map.iter().flatten().all(|v| v.is_finite()), "{n}");
            }
        }
        let far = [0.0, 1e30, 1e-30, -1e30, 0.0, 1.0, 2.0, 3.0];
        assert!(tsne(&far, 2, &quick()).unwrap().iter().flatten().all(|v| v.is_finite()));
    }

    #[test]
    fn perplexity_is_met() {
        let (points, _) = clusters(2, 40, 5);
        let own: Vec<f64> = points
            .chunks(5)
            .map(|p| p.iter().zip(&points).map(|(a, b)| f64::from(a - b).powi(2)).sum())
            .collect();
        let mut row = vec![0.0; own.len()];
        neighbour_probabilities(&own, 0, 12f64.ln(), &mut row);
        let entropy: f64 = row.iter().filter(|p| **p > 0.0).map(|&p| -f64::from(p) * f64::from(p).ln()).sum();
        assert!((entropy.exp() - 12.0).abs() < 0.01, "{}", entropy.exp());
        assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5);
    }

    #[test]
    fn bad_input_is_named() {
        let message = |r: Result<_, ReportError>| r.map(|_: Vec<[f32; 2]>| ()).unwrap_err().to_string();
        assert_eq!(message(tsne(&[1.0; 7], 2, &quick())), "t-SNE: 7 numbers are no rows of 2");
        let odd = [0.0, 0.0, 0.0, f32::NAN];
        assert_eq!(message(tsne(&odd, 2, &quick())), "t-SNE: point 1, number 1 is not finite");
    }
}
