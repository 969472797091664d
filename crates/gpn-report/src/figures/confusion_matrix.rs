//! Which classes are taken for which, relatives beside one another.

use crate::ReportError;
use crate::axes::{LABEL_SIZE, TICK_SIZE};
use crate::colour::Colour;
use crate::figure::Figure;
use crate::font::{Weight, fit, text_width};
use crate::labels::first_name;
use crate::scene::{Anchor, Drawn, Path, Scene, Shape, Stroke, Text};

/// How often each class was answered for each class. Classes come in the order of the class graph, so mistakes between
/// relatives lie near the diagonal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConfusionMatrix {
    /// Title.
    pub title: String,
    /// The classes, relatives beside one another.
    pub classes: Vec<ConfusionClass>,
    /// Place of the true class, place of the answered one, and how often; a pair not listed never happened.
    pub counts: Vec<(usize, usize, usize)>,
    /// What the classes shown are, where they are not all, as `the 30 classes with most mistakes`.
    pub selection: String,
}

/// A row and a column of the matrix.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConfusionClass {
    /// Name.
    pub name: String,
    /// Name of the class above, which relatives share.
    pub group: String,
    /// Samples labelled with it.
    pub samples: usize,
    /// How often a class was answered that the matrix does not show.
    pub elsewhere: usize,
}

/// Room for a name.
const NAME: f32 = 168.0;

impl ConfusionMatrix {
    /// Draws the matrix: rows are what samples are, columns what was answered. Right answers are blue, mistakes orange, the
    /// stronger the larger their share of the row; a frame holds classes below the same class.
    pub fn figure(&self) -> Result<Figure, ReportError> {
        let count = self.classes.len();
        if let Some(&(row, column, _)) = self.counts.iter().find(|(row, column, _)| *row.max(column) >= count)
        {
            let what = format!("answer {column} to class {row}, but there are {count} classes");
            return Err(ReportError::Figure { figure: self.title.clone(), what });
        }
        let side = (420.0 / count.max(1) as f32).clamp(21.0, 40.0);
        let name = |class: &ConfusionClass| fit(first_name(&class.name), TICK_SIZE, Weight::Regular, NAME);
        let widest = |texts: Vec<String>| {
            texts.iter().map(|text| text_width(text, TICK_SIZE, Weight::Regular)).fold(0.0, f32::max)
        };
        let names = widest(self.classes.iter().map(name).collect());
        let group = |class: &ConfusionClass| fit(first_name(&class.group), TICK_SIZE, Weight::Regular, 120.0);
        let groups = widest(self.classes.iter().map(group).collect());
        let (left, top) = (names + 34.0, names + 36.0);
        let matrix = side * count as f32;
        let elsewhere = self.classes.iter().any(|class| class.elsewhere > 0);
        let beside = left + matrix + if elsewhere { side + 10.0 } else { 0.0 };
        let mut scene = Scene::new(beside + groups + 20.0, top + matrix + 12.0);
        let centre = |n: usize| side * (n as f32 + 0.5);
        let ground = Path::rectangle(left, top, matrix, matrix, 0.0);
        scene.fill(ground, Colour::Grid.at(0.35));
        for (n, class) in self.classes.iter().enumerate() {
            let row = Text::new(name(class), [left - 7.0, top + centre(n) + 4.2], TICK_SIZE);
            scene.text(row.anchor(Anchor::End));
            let column = Text::new(name(class), [left + centre(n) + 4.2, top - 7.0], TICK_SIZE);
            scene.text(column.upright());
        }
        let title = |text: &str, at: [f32; 2]| {
            Text::new(text, at, LABEL_SIZE).anchor(Anchor::Middle).paint(Colour::Muted)
        };
        scene.text(title("Answer", [left + matrix / 2.0, 16.0]));
        scene.text(title("Truth", [16.0, top + matrix / 2.0]).upright());
        for &(row, column, times) in &self.counts {
            let (truth, answer) = (&self.classes[row], &self.classes[column]);
            let at = [left + side * column as f32, top + side * row as f32];
            let tip = if row == column {
                format!("{}: {times} of {} right", truth.name, truth.samples)
            } else {
                format!("{} taken for {}: {times} of {}", truth.name, answer.name, truth.samples)
            };
            let colour = Colour::Series(usize::from(row != column));
            scene.tipped(tip, cell(at, side, times, truth.samples, colour));
        }
        if elsewhere {
            let x = left + matrix + 10.0;
            scene.text(
                Text::new("others", [x + side / 2.0 + 4.2, top - 7.0], TICK_SIZE)
                    .upright()
                    .paint(Colour::Muted),
            );
            for (n, class) in self.classes.iter().enumerate().filter(|(_, class)| class.elsewhere > 0) {
                let tip = format!("{} taken for a class not shown: {}", class.name, class.elsewhere);
                let at = [x, top + side * n as f32];
                scene.tipped(tip, cell(at, side, class.elsewhere, class.samples, Colour::Series(1)));
            }
        }
        let mut first = 0;
        for relatives in self.classes.chunk_by(|a, b| a.group == b.group) {
            let (from, length) = (side * first as f32, side * relatives.len() as f32);
            let frame = Path::rectangle(left + from, top + from, length, length, 0.0);
            scene.stroke(frame, Stroke::new(Colour::Muted, 1.3));
            let y = top + from + length / 2.0 + 4.2;
            scene.text(Text::new(group(&relatives[0]), [beside + 8.0, y], TICK_SIZE).paint(Colour::Muted));
            first += relatives.len();
        }
        let shown =
            if self.selection.is_empty() { String::new() } else { format!(" Shown: {}.", self.selection) };
        Ok(Figure {
            title: self.title.clone(),
            caption: format!(
                "Rows are what samples are, columns what was answered. Frames hold classes below the same class, named at the \
                 right: a mistake inside a frame is one between relatives.{shown}"
            ),
            scene,
        })
    }
}

/// A square with its number; the stronger the larger the share.
fn cell([x, y]: [f32; 2], side: f32, count: usize, of: usize, colour: Colour) -> Vec<Drawn> {
    let share = (count as f32 / of.max(1) as f32).min(1.0);
    let path = Path::rectangle(x + 1.0, y + 1.0, side - 2.0, side - 2.0, 2.0);
    // A step between weak and strong keeps the number readable on both, on light and on dark paper.
    let (opacity, ink) =
        if share > 0.5 { (0.62 + 0.35 * share, Colour::Paper) } else { (0.14 + 0.5 * share, Colour::Ink) };
    let fill = Some(colour.at(opacity));
    let size = if count > 999 { 8.0 } else { 11.0 };
    let text = Text::new(count.to_string(), [x + side / 2.0, y + side / 2.0 + 4.0], size);
    vec![
        Drawn::Shape(Shape { path, fill, stroke: None }),
        Drawn::Text(text.anchor(Anchor::Middle).paint(ink)),
    ]
}
