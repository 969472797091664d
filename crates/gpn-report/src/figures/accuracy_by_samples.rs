//! Accuracy against the number of samples that classes were learned from.

use crate::axes::{Frame, LABEL_SIZE, Range, TICK_SIZE};
use crate::colour::Colour;
use crate::figure::Figure;
use crate::font::{Weight, fit};
use crate::scene::{Anchor, Drawn, Path, Scene, Shape, Stroke, Text};

/// Accuracy on classes with few and with many samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AccuracyBySamples {
    /// Title.
    pub title: String,
    /// Groups of classes, from few samples to many.
    pub groups: Vec<SampleGroup>,
}

/// Classes with about the same number of samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampleGroup {
    /// How many samples, as `3–4`.
    pub label: String,
    /// Number of classes.
    pub classes: usize,
    /// Samples they were tested on.
    pub tested: usize,
    /// Share of right answers, from 0 to 1.
    pub accuracy: f64,
    /// Its 95% interval.
    pub interval: [f64; 2],
}

impl AccuracyBySamples {
    /// Draws a bar for each group, with its interval; a group whose values are no numbers is left out.
    pub fn figure(&self) -> Figure {
        let (left, width) = (66.0, 554.0);
        let is_drawable =
            |g: &&SampleGroup| g.accuracy.is_finite() && g.interval.iter().all(|end| end.is_finite());
        let groups: Vec<&SampleGroup> = self.groups.iter().filter(is_drawable).collect();
        let count = groups.len().max(1) as f32;
        let frame = Frame {
            left,
            top: 26.0,
            width,
            height: 240.0,
            x: Range { low: 0.0, high: count },
            y: Range { low: 0.0, high: 100.0 },
        };
        let mut scene = Scene::new(640.0, frame.top + frame.height + 76.0);
        frame.draw(&mut scene, "", "Accuracy (%)", Some(&[]));
        let step = width / count;
        let bar = (step * 0.56).min(64.0);
        for (i, group) in groups.into_iter().enumerate() {
            let at = |share: f64| frame.place(i as f32 + 0.5, 100.0 * share.clamp(0.0, 1.0) as f32);
            let [x, top] = at(group.accuracy);
            let [_, ground] = at(0.0);
            let [low, high] = group.interval.map(|share| at(share)[1]);
            let whisker = |points: &[[f32; 2]]| {
                let stroke = Some(Stroke::new(Colour::Ink, 1.4));
                Drawn::Shape(Shape { path: Path::line(points), fill: None, stroke })
            };
            let shape = Shape {
                path: Path::rectangle(x - bar / 2.0, top, bar, (ground - top).max(0.5), 3.0),
                fill: Some(Colour::Series(0).at(0.82)),
                stroke: None,
            };
            let marks = vec![
                Drawn::Shape(shape),
                whisker(&[[x, low], [x, high]]),
                whisker(&[[x - 4.0, low], [x + 4.0, low]]),
                whisker(&[[x - 4.0, high], [x + 4.0, high]]),
            ];
            let tip = format!(
                "{} samples: {:.1} % of {} answers right, 95% interval {:.1} to {:.1} %",
                group.label,
                100.0 * group.accuracy,
                group.tested,
                100.0 * group.interval[0],
                100.0 * group.interval[1]
            );
            scene.tipped(tip, marks);
            let number = Text::new(format!("{:.0}", 100.0 * group.accuracy), [x, high - 7.0], LABEL_SIZE);
            scene.text(number.bold().halo().anchor(Anchor::Middle));
            let label = fit(&group.label, LABEL_SIZE, Weight::Regular, step - 4.0);
            scene.text(Text::new(label, [x, ground + 19.0], LABEL_SIZE).anchor(Anchor::Middle));
            let plural = if group.classes == 1 { "class" } else { "classes" };
            let words = fit(&format!("{} {plural}", group.classes), TICK_SIZE, Weight::Regular, step - 4.0);
            let below = Text::new(words, [x, ground + 36.0], TICK_SIZE);
            scene.text(below.anchor(Anchor::Middle).paint(Colour::Muted));
        }
        let middle = [left + width / 2.0, frame.top + frame.height + 62.0];
        scene.text(Text::new("Samples of a class to learn from", middle, LABEL_SIZE).anchor(Anchor::Middle));
        Figure {
            title: self.title.clone(),
            caption: "Share of right answers by how many samples a class was learned from; lines are 95% intervals."
                .to_owned(),
            scene,
        }
    }
}
