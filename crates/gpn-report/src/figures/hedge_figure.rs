//! As deep as sure: accuracy and information against the confidence that is asked for.

use crate::axes::{Frame, Range};
use crate::colour::Colour;
use crate::figure::Figure;
use crate::legend::{self, Entry};
use crate::marker::Marker;
use crate::scene::{Drawn, Path, Scene, Shape, Stroke};

/// What answers are worth when only those are given that are sure enough, else a class above.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HedgeFigure {
    /// Title.
    pub title: String,
    /// The points; drawn in the order of their confidence.
    pub points: Vec<HedgeFigurePoint>,
}

/// What answers are worth at one confidence. All values are from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HedgeFigurePoint {
    /// Least probability that was asked for.
    pub confidence: f64,
    /// Share of right answers.
    pub accuracy: f64,
    /// Information gain as a share of that of right leaves.
    pub information: f64,
    /// Share of answers that are leaves.
    pub leaf_share: f64,
}

impl HedgeFigure {
    /// Draws a line for each of the three.
    pub fn figure(&self) -> Figure {
        type Take = fn(&HedgeFigurePoint) -> f64;
        let lines: [(&str, Take); 3] = [
            ("right answers", |point| point.accuracy),
            ("information", |point| point.information),
            ("answers that are leaves", |point| point.leaf_share),
        ];
        let entry = |(i, (name, _)): (usize, &(&str, Take))| {
            Entry::new(26.0, *name, move |at| {
                let path = Path::line(&[[at[0] - 13.0, at[1]], [at[0] + 13.0, at[1]]]);
                let line = Shape { path, fill: None, stroke: Some(Stroke::new(Colour::Series(i), 2.2)) };
                vec![Drawn::Shape(line), Marker::of(i).draw(at, 4.0, Colour::Series(i))]
            })
        };
        let entries: Vec<Entry> = lines.iter().enumerate().map(entry).collect();
        let (left, right) = (66.0, 620.0);
        let head = legend::height(&entries, left, right);
        let is_drawable = |p: &&HedgeFigurePoint| {
            [p.confidence, p.accuracy, p.information, p.leaf_share].iter().all(|value| value.is_finite())
        };
        let mut points: Vec<HedgeFigurePoint> = self.points.iter().filter(is_drawable).copied().collect();
        points.sort_by(|a, b| a.confidence.total_cmp(&b.confidence));
        let frame = Frame {
            left,
            top: head + 22.0,
            width: right - left,
            height: 270.0,
            x: Range::of(points.iter().map(|p| 100.0 * p.confidence as f32)).padded(0.03),
            y: Range { low: 0.0, high: 103.0 },
        };
        let mut scene = Scene::new(640.0, frame.top + frame.height + 54.0);
        legend::draw(&mut scene, &entries, left, right, 8.0);
        frame.draw(&mut scene, "Confidence asked for (%)", "Share (%)", None);
        let place = |p: &HedgeFigurePoint, take: Take| {
            frame.place(100.0 * p.confidence as f32, 100.0 * take(p) as f32)
        };
        for (i, &(_, take)) in lines.iter().enumerate() {
            let line: Vec<_> = points.iter().map(|p| place(p, take)).collect();
            scene.stroke(Path::line(&line), Stroke::new(Colour::Series(i), 2.2));
        }
        for (i, &(name, take)) in lines.iter().enumerate() {
            for p in &points {
                let tip = format!(
                    "{name}: {:.1} % at a confidence of {:.0} %",
                    100.0 * take(p),
                    100.0 * p.confidence
                );
                scene.tipped(tip, vec![Marker::of(i).draw(place(p, take), 4.0, Colour::Series(i))]);
            }
        }
        Figure {
            title: self.title.clone(),
            caption: "Where no leaf is sure enough, the answer is a class above: right more often, and saying less. Information \
                      is what answers tell, as a share of what right leaves would."
                .to_owned(),
            scene,
        }
    }
}
