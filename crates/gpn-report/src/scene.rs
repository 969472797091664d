//! What a figure is made of: paths and lines of text, in pixels from the upper left corner.

pub use crate::colour::Colour;
pub use crate::font::Weight;

use crate::font::text_width;

/// A drawing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scene {
    /// Width in pixels.
    pub width: f32,
    /// Height in pixels.
    pub height: f32,
    /// What is drawn, from back to front.
    pub items: Vec<Item>,
}

/// Something drawn, with words that show when a reader points at it.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// What is drawn, from back to front.
    pub marks: Vec<Drawn>,
    /// Words shown on hover.
    pub tip: Option<String>,
}

/// A path or a line of text.
#[derive(Clone, Debug, PartialEq)]
pub enum Drawn {
    /// A shape.
    Shape(Shape),
    /// A line of text.
    Text(Text),
}

/// A path with its fill and its stroke.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Outline.
    pub path: Path,
    /// Fill: colour and opacity.
    pub fill: Option<Paint>,
    /// Stroke.
    pub stroke: Option<Stroke>,
}

/// A colour and how opaque it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paint {
    /// Colour.
    pub colour: Colour,
    /// From 0, not seen, to 1.
    pub opacity: f32,
}

impl From<Colour> for Paint {
    fn from(colour: Colour) -> Self {
        Self { colour, opacity: 1.0 }
    }
}

impl Colour {
    /// The colour with some of the ground shining through.
    #[must_use]
    pub fn at(self, opacity: f32) -> Paint {
        Paint { colour: self, opacity }
    }
}

/// How an outline is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stroke {
    /// Colour.
    pub paint: Paint,
    /// Width in pixels.
    pub width: f32,
    /// Lengths of dash and gap; none for a whole line.
    pub dash: Option<[f32; 2]>,
}

impl Stroke {
    /// A whole line.
    pub fn new(paint: impl Into<Paint>, width: f32) -> Self {
        Self { paint: paint.into(), width, dash: None }
    }

    /// A dashed line.
    #[must_use]
    pub fn dashed(mut self, dash: f32, gap: f32) -> Self {
        self.dash = Some([dash, gap]);
        self
    }
}

/// The steps of a path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Path(pub Vec<Step>);

/// One step of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Starts at a point.
    Move([f32; 2]),
    /// A straight line to a point.
    Line([f32; 2]),
    /// A cubic curve: two control points and the end.
    Curve([f32; 2], [f32; 2], [f32; 2]),
    /// Back to the start.
    Close,
}

impl Path {
    /// A line through points.
    pub fn line(points: &[[f32; 2]]) -> Self {
        let step = |(i, &p): (usize, &[f32; 2])| if i == 0 { Step::Move(p) } else { Step::Line(p) };
        Self(points.iter().enumerate().map(step).collect())
    }

    /// A closed outline through points.
    pub fn polygon(points: &[[f32; 2]]) -> Self {
        let mut path = Self::line(points);
        path.0.push(Step::Close);
        path
    }

    /// A circle.
    pub fn circle([x, y]: [f32; 2], radius: f32) -> Self {
        // The usual distance of the control points of a quarter circle.
        let k = 0.552_284_8 * radius;
        let r = radius;
        Self(vec![
            Step::Move([x + r, y]),
            Step::Curve([x + r, y + k], [x + k, y + r], [x, y + r]),
            Step::Curve([x - k, y + r], [x - r, y + k], [x - r, y]),
            Step::Curve([x - r, y - k], [x - k, y - r], [x, y - r]),
            Step::Curve([x + k, y - r], [x + r, y - k], [x + r, y]),
            Step::Close,
        ])
    }

    /// A rectangle with rounded corners.
    pub fn rectangle(x: f32, y: f32, width: f32, height: f32, radius: f32) -> Self {
        let r = radius.min(width / 2.0).min(height / 2.0);
        let (right, bottom) = (x + width, y + height);
        if r <= 0.0 {
            return Self::polygon(&[[x, y], [right, y], [right, bottom], [x, bottom]]);
        }
        let k = r * (1.0 - 0.552_284_8);
        Self(vec![
            Step::Move([x + r, y]),
            Step::Line([right - r, y]),
            Step::Curve([right - k, y], [right, y + k], [right, y + r]),
            Step::Line([right, bottom - r]),
            Step::Curve([right, bottom - k], [right - k, bottom], [right - r, bottom]),
            Step::Line([x + r, bottom]),
            Step::Curve([x + k, bottom], [x, bottom - k], [x, bottom - r]),
            Step::Line([x, y + r]),
            Step::Curve([x, y + k], [x + k, y], [x + r, y]),
            Step::Close,
        ])
    }
}

/// Where a text stands to its point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Anchor {
    /// It starts there.
    #[default]
    Start,
    /// Its middle is there.
    Middle,
    /// It ends there.
    End,
}

/// A line of text.
#[derive(Clone, Debug, PartialEq)]
pub struct Text {
    /// The words.
    pub text: String,
    /// Point of the baseline that `anchor` speaks of.
    pub at: [f32; 2],
    /// Where the text stands to its point.
    pub anchor: Anchor,
    /// Height of an em in pixels.
    pub size: f32,
    /// Weight.
    pub weight: Weight,
    /// Colour.
    pub paint: Paint,
    /// Whether a rim of paper parts the text from what is behind it.
    pub halo: bool,
    /// Whether the text runs upwards.
    pub upright: bool,
}

impl Text {
    /// A text in ink at a size.
    pub fn new(text: impl Into<String>, at: [f32; 2], size: f32) -> Self {
        Self {
            text: text.into(),
            at,
            anchor: Anchor::Start,
            size,
            weight: Weight::Regular,
            paint: Colour::Ink.into(),
            halo: false,
            upright: false,
        }
    }

    /// Sets where the text stands to its point.
    #[must_use]
    pub fn anchor(mut self, anchor: Anchor) -> Self {
        self.anchor = anchor;
        self
    }

    /// Sets the colour.
    #[must_use]
    pub fn paint(mut self, paint: impl Into<Paint>) -> Self {
        self.paint = paint.into();
        self
    }

    /// Makes the text bold.
    #[must_use]
    pub fn bold(mut self) -> Self {
        self.weight = Weight::Bold;
        self
    }

    /// Gives the text a rim of paper.
    #[must_use]
    pub fn halo(mut self) -> Self {
        self.halo = true;
        self
    }

    /// Lets the text run upwards.
    #[must_use]
    pub fn upright(mut self) -> Self {
        self.upright = true;
        self
    }

    /// Width of the text in pixels.
    pub fn width(&self) -> f32 {
        text_width(&self.text, self.size, self.weight)
    }

    /// Point where the baseline starts.
    pub(crate) fn start(&self) -> [f32; 2] {
        let back = match self.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => self.width() / 2.0,
            Anchor::End => self.width(),
        };
        if self.upright { [self.at[0], self.at[1] + back] } else { [self.at[0] - back, self.at[1]] }
    }
}

impl Scene {
    /// An empty drawing.
    pub fn new(width: f32, height: f32) -> Self {
        Self { width, height, items: Vec::new() }
    }

    /// Draws a filled shape.
    pub fn fill(&mut self, path: Path, paint: impl Into<Paint>) {
        self.shape(Shape { path, fill: Some(paint.into()), stroke: None });
    }

    /// Draws a line.
    pub fn stroke(&mut self, path: Path, stroke: Stroke) {
        self.shape(Shape { path, fill: None, stroke: Some(stroke) });
    }

    /// Draws a shape.
    pub fn shape(&mut self, shape: Shape) {
        self.items.push(Item { marks: vec![Drawn::Shape(shape)], tip: None });
    }

    /// Draws a line of text.
    pub fn text(&mut self, text: Text) {
        self.items.push(Item { marks: vec![Drawn::Text(text)], tip: None });
    }

    /// Draws several things that show the same words on hover.
    pub fn tipped(&mut self, tip: impl Into<String>, marks: Vec<Drawn>) {
        self.items.push(Item { marks, tip: Some(tip.into()) });
    }
}
