//! Learning curves: what is measured while training, raw and smoothed.

use crate::axes::{Frame, Range};
use crate::colour::Colour;
use crate::figure::Figure;
use crate::legend::{self, Entry};
use crate::scene::{Drawn, Path, Scene, Shape, Stroke};

/// Curves of several runs.
#[derive(Clone, Debug, PartialEq)]
pub struct LearningCurves {
    /// Title.
    pub title: String,
    /// Name of the horizontal axis, as `Episodes`.
    pub x_label: String,
    /// Name of the vertical axis, as `Validation accuracy (%)`.
    pub y_label: String,
    /// A curve for each run.
    pub curves: Vec<Curve>,
    /// Points each place of the smoothed curve is fitted to; 1 leaves the raw curve alone.
    pub window: usize,
}

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Name of the run.
    pub name: String,
    /// Step and value of each measurement, in the order of the steps; what is no number is left out.
    pub points: Vec<(f32, f32)>,
}

/// Buckets a raw curve is thinned to: more than a page can show.
const BUCKETS: usize = 400;

impl LearningCurves {
    /// Draws raw curves pale and smoothed ones on top.
    pub fn figure(&self) -> Figure {
        let entries: Vec<Entry> = self
            .curves
            .iter()
            .enumerate()
            .map(|(i, curve)| {
                Entry::new(24.0, curve.name.clone(), move |at| {
                    let path = Path::line(&[[at[0] - 12.0, at[1]], [at[0] + 12.0, at[1]]]);
                    vec![Drawn::Shape(Shape { path, fill: None, stroke: Some(line_style(i)) })]
                })
            })
            .collect();
        let (left, right) = (66.0, 620.0);
        let head = legend::height(&entries, left, right);
        let curves: Vec<Vec<(f32, f32)>> = self
            .curves
            .iter()
            .map(|c| c.points.iter().copied().filter(|p| p.0.is_finite() && p.1.is_finite()).collect())
            .collect();
        let frame = Frame {
            left,
            top: head + 22.0,
            width: right - left,
            height: 280.0,
            x: Range::of(curves.iter().flatten().map(|p| p.0)),
            y: Range::of(curves.iter().flatten().map(|p| p.1)).padded(0.04),
        };
        let mut scene = Scene::new(640.0, frame.top + frame.height + 54.0);
        legend::draw(&mut scene, &entries, left, right, 8.0);
        frame.draw(&mut scene, &self.x_label, &self.y_label, None);
        let placed =
            |points: &[(f32, f32)]| points.iter().map(|&(x, y)| frame.place(x, y)).collect::<Vec<_>>();
        if self.window > 1 {
            for (i, points) in curves.iter().enumerate() {
                let path = Path::line(&placed(&thinned(points)));
                scene.stroke(path, Stroke::new(Colour::Series(i).at(0.28), 1.0));
            }
        }
        for (i, points) in curves.iter().enumerate() {
            let line = thinned(&smoothed(points, self.window));
            let shape = Shape { path: Path::line(&placed(&line)), fill: None, stroke: Some(line_style(i)) };
            let last = line.last().map_or(String::new(), |p| format!(", {:.4} at {}", p.1, p.0));
            scene.tipped(format!("{}{last}", self.curves[i].name), vec![Drawn::Shape(shape)]);
        }
        let caption = if self.window > 1 {
            format!(
                "{} over {}; pale lines are single measurements, strong ones are smoothed over {} of them.",
                self.y_label,
                self.x_label.to_lowercase(),
                self.window
            )
        } else {
            format!("{} over {}.", self.y_label, self.x_label.to_lowercase())
        };
        Figure { title: self.title.clone(), caption, scene }
    }
}

/// Lines differ by dashes too, for print without colour.
fn line_style(series: usize) -> Stroke {
    let stroke = Stroke::new(Colour::Series(series), 2.2);
    match series % 4 {
        1 => stroke.dashed(7.0, 3.0),
        2 => stroke.dashed(2.5, 2.5),
        3 => stroke.dashed(12.0, 3.5),
        _ => stroke,
    }
}

/// The straight line that fits the points around each one best, read at that point. Unlike a running mean it
/// keeps slopes to both ends of the curve.
fn smoothed(points: &[(f32, f32)], window: usize) -> Vec<(f32, f32)> {
    let n = points.len();
    let half = (window / 2).min(n / 2);
    if half == 0 {
        return points.to_vec();
    }
    // Sums of all values, and of all values times their number, up to each point.
    let mut sums = vec![[0.0f64; 2]];
    let mut sum = [0.0f64; 2];
    for (i, p) in points.iter().enumerate() {
        sum = [sum[0] + f64::from(p.1), sum[1] + i as f64 * f64::from(p.1)];
        sums.push(sum);
    }
    (0..n)
        .map(|i| {
            let (from, to) = (i.saturating_sub(half), (i + half + 1).min(n));
            let count = (to - from) as f64;
            let middle = (from + to - 1) as f64 / 2.0;
            let values = sums[to][0] - sums[from][0];
            let moments = sums[to][1] - sums[from][1] - middle * values;
            let slope = 12.0 * moments / (count * (count * count - 1.0));
            (points[i].0, (values / count + slope * (i as f64 - middle)) as f32)
        })
        .collect()
}

/// A curve of at most two points in each bucket, its lowest and its highest, so that no peak is lost.
fn thinned(points: &[(f32, f32)]) -> Vec<(f32, f32)> {
    if points.len() <= 2 * BUCKETS {
        return points.to_vec();
    }
    let mut out = vec![points[0]];
    for bucket in 0..BUCKETS {
        let range = bucket * points.len() / BUCKETS..(bucket + 1) * points.len() / BUCKETS;
        let low = range.clone().min_by(|&a, &b| points[a].1.total_cmp(&points[b].1));
        let high = range.max_by(|&a, &b| points[a].1.total_cmp(&points[b].1));
        if let (Some(low), Some(high)) = (low, high) {
            out.push(points[low.min(high)]);
            out.push(points[low.max(high)]);
        }
    }
    out.push(points[points.len() - 1]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smoothing_keeps_lines_and_flattens_noise() {
        let line: Vec<_> = (0..50).map(|i| (i as f32, 2.0 * i as f32)).collect();
        for (a, b) in smoothed(&line, 9).iter().zip(&line) {
            assert!((a.0 - b.0).abs() < 1e-6 && (a.1 - b.1).abs() < 1e-4);
        }
        let noise: Vec<_> = (0..101).map(|i| (i as f32, (i % 2) as f32)).collect();
        assert!(smoothed(&noise, 21)[20..80].iter().all(|p| (p.1 - 0.5).abs() < 0.03));
        assert!(smoothed(&[], 5).is_empty());
    }

    #[test]
    fn thinning_keeps_ends_and_peaks() {
        let mut points: Vec<_> = (0..100_000).map(|i| (i as f32, (i as f32 * 0.01).sin())).collect();
        points[54_321].1 = 9.0;
        let thin = thinned(&points);
        assert!(thin.len() <= 2 * BUCKETS + 2);
        assert!(thin.contains(&(54_321.0, 9.0)));
        assert_eq!((thin[0], thin[thin.len() - 1]), (points[0], points[99_999]));
        assert!(thin.windows(2).all(|w| w[0].0 <= w[1].0));
    }
}
