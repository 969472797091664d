//! Silhouettes. Each is drawn upright in about -1..1, with the mark that its family shares: eyes of
//! creatures, stems of plants, mouths of vessels, windows of buildings, wheels of vehicles, grips of tools,
//! bosses of badges.

use super::geometry::{Point, cosine_of_multiple, disc, ellipse, length, polygon, rectangle, stroke, sub};

/// The shapes, in the order of the taxonomy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Fish,
    Bird,
    Beetle,
    Flower,
    Tree,
    Mushroom,
    Vase,
    Mug,
    Bottle,
    House,
    Tower,
    Car,
    Boat,
    Plane,
    Key,
    Hammer,
    Star,
    Heart,
    Arrow,
    Shield,
    Ring,
}

/// What all things of a realm have in common: how they meet the light.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finish {
    /// Soft, darker towards the border.
    Round,
    /// Crisp, with a dark outline.
    Outlined,
    /// Flat, with a pale margin around it.
    Framed,
}

/// Signed distances of a point to the two areas of a shape.
#[derive(Debug, Clone, Copy)]
pub(super) struct Distances {
    /// To the body, which carries the texture.
    pub(super) body: f32,
    /// To the mark of the family.
    pub(super) mark: f32,
}

impl Shape {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Fish => "fish",
            Self::Bird => "bird",
            Self::Beetle => "beetle",
            Self::Flower => "flower",
            Self::Tree => "tree",
            Self::Mushroom => "mushroom",
            Self::Vase => "vase",
            Self::Mug => "mug",
            Self::Bottle => "bottle",
            Self::House => "house",
            Self::Tower => "tower",
            Self::Car => "car",
            Self::Boat => "boat",
            Self::Plane => "plane",
            Self::Key => "key",
            Self::Hammer => "hammer",
            Self::Star => "star",
            Self::Heart => "heart",
            Self::Arrow => "arrow",
            Self::Shield => "shield",
            Self::Ring => "ring",
        }
    }

    pub(super) fn finish(self) -> Finish {
        match self {
            Self::Fish | Self::Bird | Self::Beetle | Self::Flower | Self::Tree | Self::Mushroom => {
                Finish::Round
            }
            Self::Star | Self::Heart | Self::Arrow | Self::Shield | Self::Ring => Finish::Framed,
            _ => Finish::Outlined,
        }
    }

    /// Hue, saturation and value of the family's mark.
    pub(super) fn mark_colour(self) -> [f32; 3] {
        match self {
            Self::Fish | Self::Bird | Self::Beetle => [0.6, 0.3, 0.08],
            Self::Flower | Self::Tree | Self::Mushroom => [0.27, 0.65, 0.45],
            Self::Vase | Self::Mug | Self::Bottle => [0.05, 0.4, 0.15],
            Self::House | Self::Tower => [0.15, 0.6, 0.98],
            Self::Car | Self::Boat | Self::Plane => [0.6, 0.1, 0.12],
            Self::Key | Self::Hammer => [0.08, 0.6, 0.5],
            Self::Star | Self::Heart | Self::Arrow | Self::Shield | Self::Ring => [0.5, 0.05, 0.98],
        }
    }

    pub(super) fn distances(self, p: Point) -> Distances {
        let [x, y] = p;
        // Most shapes are their own mirror image.
        let m = [x.abs(), y];
        let none = f32::INFINITY;
        let (body, mark) = match self {
            Self::Fish => (
                ellipse(p, [-0.15, 0.0], [0.65, 0.4])
                    .min(polygon(p, &[[0.3, 0.0], [0.9, -0.5], [0.75, 0.0], [0.9, 0.5]]))
                    .min(polygon(p, &[[-0.3, -0.3], [0.25, -0.65], [0.25, -0.2]])),
                disc(p, [-0.48, -0.08], 0.1),
            ),
            Self::Bird => (
                ellipse(p, [0.05, 0.12], [0.52, 0.36])
                    .min(disc(p, [-0.42, -0.36], 0.27))
                    .min(polygon(p, &[[-0.6, -0.5], [-0.98, -0.3], [-0.6, -0.25]]))
                    .min(polygon(p, &[[0.35, 0.0], [0.95, -0.3], [0.85, 0.25], [0.4, 0.3]])),
                disc(p, [-0.47, -0.4], 0.1).min(stroke(p, [0.0, 0.4], [-0.05, 0.85], 0.05)),
            ),
            Self::Beetle => (
                ellipse(p, [0.0, 0.15], [0.48, 0.6]).min(disc(p, [0.0, -0.52], 0.26)),
                stroke(m, [0.4, -0.15], [0.8, -0.45], 0.06)
                    .min(stroke(m, [0.4, 0.2], [0.85, 0.2], 0.06))
                    .min(stroke(m, [0.35, 0.5], [0.75, 0.8], 0.06))
                    .min(disc(m, [0.12, -0.62], 0.08)),
            ),
            Self::Flower => {
                let q = sub(p, [0.0, -0.28]);
                let petals = length(q) - 0.5 - 0.16 * cosine_of_multiple([q[1], q[0]], 6);
                (0.8 * petals, plant_stem(p, 0.07).min(ellipse(p, [0.28, 0.62], [0.28, 0.11])))
            }
            Self::Tree => (
                polygon(m, &[[0.0, -0.95], [0.42, -0.35], [0.25, -0.35], [0.68, 0.4], [0.0, 0.4]]),
                plant_stem(p, 0.13),
            ),
            Self::Mushroom => (ellipse(p, [0.0, 0.05], [0.78, 0.75]).max(y - 0.08), plant_stem(p, 0.2)),
            Self::Vase => (
                ellipse(p, [0.0, 0.28], [0.55, 0.55])
                    .min(rectangle(p, [0.0, -0.4], [0.2, 0.35]))
                    .min(rectangle(p, [0.0, -0.75], [0.36, 0.1])),
                ellipse(p, [0.0, -0.78], [0.26, 0.07]),
            ),
            Self::Mug => {
                let handle = disc(p, [0.5, 0.05], 0.32).abs() - 0.08;
                (rectangle(p, [-0.1, 0.05], [0.5, 0.62]).min(handle), ellipse(p, [-0.1, -0.52], [0.4, 0.11]))
            }
            Self::Bottle => (
                (rectangle(p, [0.0, 0.35], [0.26, 0.48]) - 0.08).min(rectangle(
                    p,
                    [0.0, -0.45],
                    [0.14, 0.45],
                )),
                rectangle(p, [0.0, -0.85], [0.17, 0.09]),
            ),
            Self::House => (
                rectangle(p, [0.0, 0.35], [0.6, 0.45])
                    .min(polygon(m, &[[0.0, -0.85], [0.85, -0.05], [0.0, -0.05]])),
                rectangle(p, [-0.25, 0.52], [0.13, 0.28]).min(rectangle(p, [0.27, 0.3], [0.15, 0.15])),
            ),
            Self::Tower => {
                let gaps = (m[0] - 0.2).abs() - 0.08;
                (
                    rectangle(p, [0.0, 0.2], [0.3, 0.72])
                        .min(rectangle(p, [0.0, -0.65], [0.46, 0.22]).max(-gaps.max(y + 0.7))),
                    rectangle(p, [0.0, -0.2], [0.1, 0.16]).min(rectangle(p, [0.0, 0.4], [0.1, 0.16])),
                )
            }
            Self::Car => (
                (rectangle(p, [0.0, 0.15], [0.82, 0.18]) - 0.06)
                    .min(polygon(p, &[[-0.55, 0.0], [-0.3, -0.45], [0.35, -0.45], [0.6, 0.0]])),
                disc(m, [0.48, 0.42], 0.21),
            ),
            Self::Boat => (
                polygon(p, &[[-0.9, 0.25], [0.9, 0.25], [0.55, 0.75], [-0.55, 0.75]])
                    .min(polygon(p, &[[0.05, -0.95], [0.65, 0.12], [0.05, 0.12]]))
                    .min(polygon(p, &[[-0.08, -0.6], [-0.55, 0.12], [-0.08, 0.12]])),
                disc(m, [0.3, 0.48], 0.13),
            ),
            Self::Plane => {
                let q = [x, y.abs()];
                (
                    ellipse(p, [0.0, 0.0], [0.95, 0.2])
                        .min(polygon(q, &[[-0.3, 0.0], [0.2, 0.0], [0.45, 0.85], [0.2, 0.85]]))
                        .min(polygon(q, &[[0.6, 0.0], [0.85, 0.0], [0.98, 0.4], [0.82, 0.4]])),
                    disc(p, [-0.6, 0.0], 0.12).min(disc(p, [-0.3, 0.0], 0.12)),
                )
            }
            Self::Key => (
                disc(p, [-0.5, 0.0], 0.42)
                    .max(-disc(p, [-0.56, 0.0], 0.18))
                    .min(rectangle(p, [0.52, 0.22], [0.1, 0.22]))
                    .min(rectangle(p, [0.84, 0.22], [0.1, 0.22])),
                stroke(p, [-0.1, 0.0], [0.88, 0.0], 0.1),
            ),
            Self::Hammer => (
                rectangle(p, [-0.15, -0.55], [0.5, 0.26])
                    .min(polygon(p, &[[0.3, -0.81], [0.9, -0.5], [0.3, -0.29]])),
                stroke(p, [0.0, -0.3], [0.0, 0.85], 0.11),
            ),
            Self::Star => (star(p), none),
            Self::Heart => {
                let lobes = disc(m, [0.36, -0.25], 0.42);
                (lobes.min(polygon(m, &[[0.0, -0.3], [0.72, -0.03], [0.0, 0.85]])), none)
            }
            Self::Arrow => (
                rectangle(p, [-0.35, 0.0], [0.55, 0.22])
                    .min(polygon(p, &[[0.1, -0.65], [0.95, 0.0], [0.1, 0.65]])),
                none,
            ),
            Self::Shield => (
                disc(m, [-0.35, -0.35], 1.08).max(-(y + 0.75)).max(x.abs() - 0.66),
                disc(p, [0.0, -0.15], 0.19),
            ),
            Self::Ring => ((length(p) - 0.58).abs() - 0.24, disc(p, [0.0, 0.0], 0.17)),
        };
        Distances { body, mark }
    }
}

fn plant_stem(p: Point, half_width: f32) -> f32 {
    rectangle(p, [0.0, 0.55], [half_width, 0.4])
}

/// A five-pointed star.
fn star(p: Point) -> f32 {
    const OUTER: [Point; 5] =
        [[0.0, -0.95], [0.9035, -0.2936], [0.5584, 0.7686], [-0.5584, 0.7686], [-0.9035, -0.2936]];
    const INNER: [Point; 5] =
        [[0.2645, -0.3641], [0.428, 0.1391], [0.0, 0.45], [-0.428, 0.1391], [-0.2645, -0.3641]];
    let mut corners = [[0.0; 2]; 10];
    for (i, (outer, inner)) in OUTER.into_iter().zip(INNER).enumerate() {
        corners[2 * i] = outer;
        corners[2 * i + 1] = inner;
    }
    polygon(p, &corners)
}
