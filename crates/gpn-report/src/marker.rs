//! Markers: shapes that tell series apart without colour.

use crate::colour::Colour;
use crate::scene::{Drawn, Paint, Path, Shape, Step, Stroke};

/// A shape at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marker {
    /// A disc.
    Circle,
    /// Two crossed lines.
    Cross,
    /// A triangle on its base.
    Triangle,
    /// A square on its side.
    Square,
    /// A square on its corner.
    Diamond,
    /// A triangle on its tip.
    Wedge,
}

impl Marker {
    const ALL: [Marker; 6] =
        [Marker::Circle, Marker::Cross, Marker::Triangle, Marker::Square, Marker::Diamond, Marker::Wedge];

    /// The marker of a series; numbers beyond the list start over.
    pub(crate) fn of(series: usize) -> Self {
        Self::ALL[series % Self::ALL.len()]
    }

    /// The marker drawn at a point; `radius` is that of the disc, the others look equally large.
    pub(crate) fn draw(self, at: [f32; 2], radius: f32, paint: impl Into<Paint>) -> Drawn {
        let ([x, y], r, paint) = (at, radius, paint.into());
        let path = match self {
            Marker::Circle => Path::circle(at, r),
            Marker::Cross => {
                let d = r * 0.88;
                let path = Path(vec![
                    Step::Move([x - d, y - d]),
                    Step::Line([x + d, y + d]),
                    Step::Move([x - d, y + d]),
                    Step::Line([x + d, y - d]),
                ]);
                let stroke = Some(Stroke::new(paint, r * 0.52));
                return Drawn::Shape(Shape { path, fill: None, stroke });
            }
            Marker::Triangle | Marker::Wedge => {
                let up = if self == Marker::Triangle { 1.0 } else { -1.0 };
                let (half, tip, base) = (r * 1.17, r * 1.3, r * 0.78);
                Path::polygon(&[[x, y - up * tip], [x + half, y + up * base], [x - half, y + up * base]])
            }
            Marker::Square => Path::rectangle(x - r * 0.9, y - r * 0.9, r * 1.8, r * 1.8, 0.0),
            Marker::Diamond => {
                let d = r * 1.3;
                Path::polygon(&[[x, y - d], [x + d, y], [x, y + d], [x - d, y]])
            }
        };
        // A rim of paper keeps markers apart that lie on one another.
        let stroke = Some(Stroke::new(Colour::Paper, (r * 0.2).max(0.6)));
        Drawn::Shape(Shape { path, fill: Some(paint), stroke })
    }
}
