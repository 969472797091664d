//! Scores of known and unknown samples.

use crate::axes::{Frame, LABEL_SIZE, Range};
use crate::colour::Colour;
use crate::figure::Figure;
use crate::legend::{self, Entry};
use crate::scene::{Anchor, Drawn, Path, Scene, Shape, Stroke, Text};

/// How scores for "none of these" part unknown samples from known ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScoreFigure {
    /// Title.
    pub title: String,
    /// Where the first bin begins.
    pub low: f64,
    /// Where the last bin ends.
    pub high: f64,
    /// Known samples in each bin.
    pub known: Vec<usize>,
    /// Unknown samples in each bin.
    pub unknown: Vec<usize>,
    /// From which score on a sample is taken for unknown.
    pub threshold: Option<f64>,
}

impl ScoreFigure {
    /// Draws both histograms, each as shares of its samples.
    pub fn figure(&self) -> Figure {
        let sides = [("known classes", &self.known), ("none of the classes", &self.unknown)];
        let entries: Vec<Entry> = sides
            .iter()
            .enumerate()
            .map(|(i, (name, _))| {
                Entry::new(18.0, *name, move |[x, y]| {
                    let path = Path::rectangle(x - 9.0, y - 6.0, 18.0, 12.0, 2.0);
                    vec![Drawn::Shape(bar(path, i))]
                })
            })
            .collect();
        let (left, right) = (66.0, 620.0);
        let head = legend::height(&entries, left, right);
        let shares = sides.map(|(_, counts)| {
            let total = counts.iter().sum::<usize>().max(1) as f32;
            counts.iter().map(|&count| 100.0 * count as f32 / total).collect::<Vec<_>>()
        });
        let most = shares.iter().flatten().copied().fold(1.0, f32::max);
        let frame = Frame {
            left,
            top: head + 30.0,
            width: right - left,
            height: 220.0,
            x: Range::of([self.low as f32, self.high as f32]),
            y: Range { low: 0.0, high: most * 1.06 },
        };
        let mut scene = Scene::new(640.0, frame.top + frame.height + 54.0);
        legend::draw(&mut scene, &entries, left, right, 8.0);
        frame.draw(&mut scene, "Score for being none of the classes", "Samples (%)", None);
        for (i, (shares, (name, counts))) in shares.iter().zip(sides).enumerate() {
            let step = frame.width / shares.len().max(1) as f32;
            let ground = frame.top + frame.height;
            for (n, (&share, &count)) in
                shares.iter().zip(counts).enumerate().filter(|(_, (_, count))| **count > 0)
            {
                let [_, y] = frame.place(frame.x.low, share);
                let path = Path::rectangle(left + step * n as f32 + 0.5, y, step - 1.0, ground - y, 1.0);
                scene.tipped(
                    format!("{name}: {count} samples, {share:.1} %"),
                    vec![Drawn::Shape(bar(path, i))],
                );
            }
        }
        if let Some(threshold) = self.threshold.filter(|t| (self.low..=self.high).contains(t)) {
            let [x, _] = frame.place(threshold as f32, 0.0);
            let line = Path::line(&[[x, frame.top], [x, frame.top + frame.height]]);
            scene.stroke(line, Stroke::new(Colour::Ink, 1.5).dashed(5.0, 4.0));
            let after = x < left + frame.width * 0.6;
            let (at, anchor) = if after { (x + 7.0, Anchor::Start) } else { (x - 7.0, Anchor::End) };
            let words = if after { "unknown from here →" } else { "unknown from here" };
            scene.text(Text::new(words, [at, frame.top + 14.0], LABEL_SIZE).anchor(anchor).halo());
        }
        Figure {
            title: self.title.clone(),
            caption: "The less the two overlap, the better samples of no class are found.".to_owned(),
            scene,
        }
    }
}

fn bar(path: Path, series: usize) -> Shape {
    Shape { path, fill: Some(Colour::Series(series).at(0.6)), stroke: None }
}
