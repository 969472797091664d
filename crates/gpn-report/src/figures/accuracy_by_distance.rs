//! Accuracy against the distance to the nearest training class.

use crate::axes::{Frame, Range};
use crate::colour::Colour;
use crate::figure::Figure;
use crate::legend::{self, Entry};
use crate::marker::Marker;
use crate::scene::{Drawn, Paint};
use crate::scene::{Path, Scene, Shape, Stroke};

/// Accuracy of several methods on test classes at different distances from the training classes.
#[derive(Clone, Debug, PartialEq)]
pub struct AccuracyByDistance {
    /// Title.
    pub title: String,
    /// A line for each method.
    pub series: Vec<DistanceSeries>,
}

/// One method.
#[derive(Clone, Debug, PartialEq)]
pub struct DistanceSeries {
    /// Name of the method.
    pub name: String,
    /// Its accuracies; drawn in the order of their distance.
    pub points: Vec<DistancePoint>,
}

/// Accuracy at one distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DistancePoint {
    /// Hops to the nearest training class.
    pub distance: f32,
    /// Mean accuracy in percent.
    pub accuracy: f32,
    /// Half the width of its 95% confidence interval.
    pub half_width: f32,
}

impl AccuracyByDistance {
    /// Draws lines with confidence bands; a point that is no number is left out.
    pub fn figure(&self) -> Figure {
        let entries: Vec<Entry> = self
            .series
            .iter()
            .enumerate()
            .map(|(i, series)| {
                Entry::new(26.0, series.name.clone(), move |at| {
                    let line = Path::line(&[[at[0] - 13.0, at[1]], [at[0] + 13.0, at[1]]]);
                    vec![stroke(line, Colour::Series(i), 2.2), Marker::of(i).draw(at, 4.2, Colour::Series(i))]
                })
            })
            .collect();
        let (left, right) = (66.0, 620.0);
        let head = legend::height(&entries, left, right);
        let points = || self.series.iter().flat_map(|s| s.points.iter().filter(|p| p.is_drawable()));
        let frame = Frame {
            left,
            top: head + 22.0,
            width: right - left,
            height: 300.0,
            x: Range::of(points().map(|p| p.distance)).padded(0.05),
            y: Range::of(points().flat_map(|p| [p.accuracy - p.half_width, p.accuracy + p.half_width]))
                .padded(0.06),
        };
        let mut scene = Scene::new(640.0, frame.top + frame.height + 54.0);
        legend::draw(&mut scene, &entries, left, right, 8.0);
        let mut ticks: Vec<f32> = points().map(|p| p.distance).collect();
        ticks.sort_by(f32::total_cmp);
        ticks.dedup();
        let ticks = (ticks.len() <= 12).then_some(ticks);
        frame.draw(&mut scene, "Hops to the nearest training class", "Accuracy (%)", ticks.as_deref());

        let sorted: Vec<Vec<DistancePoint>> = self
            .series
            .iter()
            .map(|series| {
                let mut points: Vec<_> = series.points.iter().filter(|p| p.is_drawable()).copied().collect();
                points.sort_by(|a, b| a.distance.total_cmp(&b.distance));
                points
            })
            .collect();
        for (i, points) in sorted.iter().enumerate() {
            let upper = points.iter().map(|p| frame.place(p.distance, p.accuracy + p.half_width));
            let lower = points.iter().rev().map(|p| frame.place(p.distance, p.accuracy - p.half_width));
            let band: Vec<_> = upper.chain(lower).collect();
            scene.fill(Path::polygon(&band), Colour::Series(i).at(0.15));
        }
        for (i, points) in sorted.iter().enumerate() {
            let line: Vec<_> = points.iter().map(|p| frame.place(p.distance, p.accuracy)).collect();
            scene.stroke(Path::line(&line), Stroke::new(Colour::Series(i), 2.2));
        }
        for (i, (series, points)) in self.series.iter().zip(&sorted).enumerate() {
            for p in points {
                let marker = Marker::of(i).draw(frame.place(p.distance, p.accuracy), 4.2, Colour::Series(i));
                let tip = format!(
                    "{}, {} hops: {:.2} ± {:.2} %",
                    series.name, p.distance, p.accuracy, p.half_width
                );
                scene.tipped(tip, vec![marker]);
            }
        }
        Figure {
            title: self.title.clone(),
            caption:
                "Accuracy on test classes by their distance to the nearest training class; bands are 95% \
                      confidence intervals."
                    .to_owned(),
            scene,
        }
    }
}

impl DistancePoint {
    fn is_drawable(&self) -> bool {
        self.distance.is_finite() && self.accuracy.is_finite() && self.half_width.is_finite()
    }
}

fn stroke(path: Path, paint: impl Into<Paint>, width: f32) -> Drawn {
    Drawn::Shape(Shape { path, fill: None, stroke: Some(Stroke::new(paint, width)) })
}
