//! One sample: a thing of a given look in a pose, light and surroundings of its own.

use rand_chacha::ChaCha8Rng;
use rand_core::Rng;

use super::geometry::{Point, direction, disc, dot, ellipse, hash, rectangle, stroke, sub};
use super::palette::{Palette, Rgb, mix, rgb};
use super::shape::{Finish, Shape};
use super::taxonomy::Look;
use super::texture::{Part, Texture, Weave, edge, wave};

/// Beyond this distance from its centre a thing has no pixel.
const REACH: f32 = 1.3;

/// Values for one sample, from its own stream.
struct Dice<'a>(&'a mut ChaCha8Rng);

impl Dice<'_> {
    fn between(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * ((self.0.next_u32() >> 8) as f32 / (1u32 << 24) as f32)
    }

    /// Around 0, at most `reach` away.
    fn about(&mut self, reach: f32) -> f32 {
        self.between(-reach, reach)
    }

    fn chance(&mut self, probability: f32) -> bool {
        self.between(0.0, 1.0) < probability
    }

    fn direction(&mut self) -> Point {
        direction(self.between(0.0, 1.0))
    }

    /// A colour of the surroundings: any hue, so that colour alone does not tell thing from clutter.
    fn colour(&mut self) -> Rgb {
        rgb([self.between(0.0, 1.0), self.between(0.05, 0.85), self.between(0.15, 0.98)])
    }
}

/// Where a thing stands: a linear map from the image (-1..1 across) to its own upright coordinates.
struct Pose {
    centre: Point,
    rows: [Point; 2],
    /// Size of a pixel in the thing's coordinates.
    pixel: f32,
}

impl Pose {
    fn draw(dice: &mut Dice<'_>, size: u32) -> Self {
        let radius = dice.between(0.44, 0.86);
        let centre = [dice.about(0.29), dice.about(0.29)];
        let [c, s] = direction(dice.about(0.19));
        let mirror = if dice.chance(0.5) { -1.0 } else { 1.0 };
        let stretch = dice.between(0.78, 1.28);
        let shear = dice.about(0.35);
        let (across, down) = (mirror / (radius * stretch), stretch / radius);
        let [x, y] = [[c * across, s * across], [-s * down, c * down]];
        let rows = [[x[0] + shear * y[0], x[1] + shear * y[1]], y];
        Self { centre, rows, pixel: 2.0 / (size as f32 * radius) }
    }

    fn own(&self, p: Point) -> Point {
        let q = sub(p, self.centre);
        [dot(self.rows[0], q), dot(self.rows[1], q)]
    }
}

/// A simple figure of the surroundings, behind or in front of the thing.
struct Figure {
    outline: Outline,
    colours: [Rgb; 2],
    /// Stripes of the second colour along this direction.
    stripes: Point,
}

enum Outline {
    Disc(Point, f32),
    Rectangle(Point, Point, Point),
    Stroke(Point, Point, f32),
}

impl Figure {
    fn draw(dice: &mut Dice<'_>, near: Point, spread: f32, sizes: (f32, f32)) -> Self {
        let at = [near[0] + dice.about(spread), near[1] + dice.about(spread)];
        let size = dice.between(sizes.0, sizes.1);
        let turn = dice.direction();
        let outline = match dice.0.next_u32() % 3 {
            0 => Outline::Disc(at, size),
            1 => Outline::Rectangle(at, turn, [size, size * dice.between(0.4, 1.0)]),
            _ => {
                let far = 2.5 * size;
                Outline::Stroke(at, [at[0] + far * turn[0], at[1] + far * turn[1]], size * 0.45)
            }
        };
        let colour = dice.colour();
        let second = if dice.chance(0.4) { dice.colour() } else { colour };
        let stripes = dice.direction();
        let density = dice.between(1.5, 4.0);
        Self { outline, colours: [colour, second], stripes: stripes.map(|v| v * density) }
    }

    fn cover(&self, colour: Rgb, p: Point, pixel: f32) -> Rgb {
        let distance = match self.outline {
            Outline::Disc(at, radius) => disc(p, at, radius),
            Outline::Rectangle(at, [c, s], half) => {
                let q = sub(p, at);
                rectangle([c * q[0] + s * q[1], c * q[1] - s * q[0]], [0.0, 0.0], half)
            }
            Outline::Stroke(from, to, radius) => stroke(p, from, to, radius),
        };
        let coverage = edge(-distance, pixel);
        if coverage == 0.0 {
            return colour;
        }
        let stripe = edge(wave(dot(self.stripes, p)), 8.0 * pixel);
        mix(colour, mix(self.colours[0], self.colours[1], stripe), coverage)
    }
}

/// The thing itself, with this sample's colours.
struct Thing {
    shape: Shape,
    texture: Texture,
    part: Part,
    pose: Pose,
    weave: Weave,
    colours: [Rgb; 2],
    part_colour: Rgb,
    mark_colour: Rgb,
}

impl Thing {
    fn draw(dice: &mut Dice<'_>, look: Look, size: u32) -> Self {
        let pose = Pose::draw(dice, size);
        let weave = Weave {
            density: dice.between(0.85, 1.2),
            phase: [dice.about(0.5), dice.about(0.5)],
            pixel: pose.pixel,
            seed: dice.0.next_u32(),
        };
        let [hue, saturation, value] =
            [dice.about(0.055), dice.between(0.55, 1.15), dice.between(0.75, 1.12)];
        let jitter = |[h, s, v]: [f32; 3]| rgb([h + hue, s * saturation, v * value]);
        let colours = look.palette.colours().map(jitter);
        Self {
            shape: look.shape,
            texture: look.texture,
            part: look.part,
            pose,
            weave,
            colours,
            part_colour: part_colour(look.palette, jitter),
            mark_colour: jitter(look.shape.mark_colour()),
        }
    }

    fn cover(&self, under: Rgb, p: Point) -> Rgb {
        let q = self.pose.own(p);
        if dot(q, q) > REACH * REACH {
            return under;
        }
        let pixel = self.pose.pixel;
        let distances = self.shape.distances(q);
        let body = self.part.reshape(distances.body, q);
        let outer = body.min(distances.mark);
        let mut colour = under;
        let margin = match self.shape.finish() {
            Finish::Round => 0.0,
            Finish::Outlined => 0.05,
            Finish::Framed => 0.13,
        };
        if outer > margin + pixel {
            return under;
        }
        let rim = match self.shape.finish() {
            Finish::Framed => [0.95, 0.95, 0.92],
            Finish::Round | Finish::Outlined => [0.08, 0.08, 0.1],
        };
        if margin > 0.0 {
            colour = mix(colour, rim, edge(margin - outer, pixel));
        }
        let mut skin = mix(self.colours[0], self.colours[1], self.texture.share(q, &self.weave));
        skin = mix(skin, self.part_colour, self.part.share(body, q, pixel));
        if self.shape.finish() == Finish::Round {
            // Darker towards the border, as a ball is.
            let shade = 0.62 + 0.5 * (-body * 2.5).clamp(0.0, 1.0);
            skin = skin.map(|v| (v * shade).min(1.0));
        }
        colour = mix(colour, skin, edge(-body, pixel));
        mix(colour, self.mark_colour, edge(-distances.mark, pixel))
    }
}

/// Rims and bands are a deep tone of the main colour.
fn part_colour(palette: Palette, jitter: impl Fn([f32; 3]) -> Rgb) -> Rgb {
    let [[hue, saturation, value], _] = palette.colours();
    jitter([hue, saturation, 0.4 * value])
}

/// Light that falls on everything.
struct Light {
    gain: Rgb,
    /// Change of brightness across the image.
    slope: Point,
}

impl Light {
    fn draw(dice: &mut Dice<'_>) -> Self {
        let gain = dice.between(0.65, 1.25);
        let gain = [0, 1, 2].map(|_| gain * dice.between(0.85, 1.12));
        let slope = dice.between(0.0, 0.4);
        Self { gain, slope: dice.direction().map(|v| v * slope) }
    }

    fn fall(&self, colour: Rgb, p: Point) -> Rgb {
        let here = 1.0 + dot(self.slope, p);
        [0, 1, 2].map(|channel| (colour[channel] * self.gain[channel] * here).clamp(0.0, 1.0))
    }
}

/// Paints a sample of `look` into `out`, `size` x `size` RGB pixels.
pub(super) fn paint(look: Look, size: u32, rng: &mut ChaCha8Rng, out: &mut [u8]) {
    let dice = &mut Dice(rng);
    let thing = Thing::draw(dice, look, size);
    let ground = [dice.colour(), dice.colour()];
    let ground_slope = dice.direction();
    let clutter: Vec<Figure> =
        (0..3 + dice.0.next_u32() % 5).map(|_| Figure::draw(dice, [0.0, 0.0], 1.1, (0.12, 0.5))).collect();
    let shadow_at = [thing.pose.centre[0] + dice.about(0.3), thing.pose.centre[1] + dice.between(0.1, 0.5)];
    let shadow = dice.between(0.0, 0.5);
    let in_front = dice.chance(0.55).then(|| Figure::draw(dice, thing.pose.centre, 0.5, (0.14, 0.32)));
    let light = Light::draw(dice);
    let blur = if dice.chance(0.4) { dice.between(0.1, 1.0) } else { 0.0 };
    let grain = dice.between(0.01, 0.16);
    let grain_seed = dice.0.next_u32();

    let step = 2.0 / size as f32;
    let mut canvas = vec![[0.0f32; 3]; (size * size) as usize];
    for (row, line) in canvas.chunks_exact_mut(size as usize).enumerate() {
        for (column, pixel) in line.iter_mut().enumerate() {
            let p = [(column as f32 + 0.5) * step - 1.0, (row as f32 + 0.5) * step - 1.0];
            let mut colour = mix(ground[0], ground[1], (0.5 + 0.5 * dot(ground_slope, p)).clamp(0.0, 1.0));
            for figure in &clutter {
                colour = figure.cover(colour, p, step);
            }
            let dark = shadow * edge(-ellipse(p, shadow_at, [0.6, 0.35]), 0.4);
            colour = thing.cover(colour.map(|v| v * (1.0 - dark)), p);
            if let Some(figure) = &in_front {
                colour = figure.cover(colour, p, step);
            }
            *pixel = light.fall(colour, p);
        }
    }
    develop(&canvas, size as usize, blur, grain, grain_seed, out);
}

/// Blurs a little, adds grain and rounds to bytes.
fn develop(canvas: &[Rgb], size: usize, blur: f32, grain: f32, seed: u32, out: &mut [u8]) {
    let at = |row: usize, column: usize| canvas[row * size + column];
    for (i, bytes) in out.as_chunks_mut::<3>().0.iter_mut().enumerate() {
        let (row, column) = (i / size, i % size);
        let mut colour = at(row, column);
        if blur > 0.0 {
            let rows = [row.saturating_sub(1), row, (row + 1).min(size - 1)];
            let columns = [column.saturating_sub(1), column, (column + 1).min(size - 1)];
            let mut soft = [0.0; 3];
            for (r, by_row) in rows.into_iter().zip([0.25, 0.5, 0.25]) {
                for (c, by_column) in columns.into_iter().zip([0.25, 0.5, 0.25]) {
                    let neighbour = at(r, c);
                    soft = [0, 1, 2].map(|k| soft[k] + by_row * by_column * neighbour[k]);
                }
            }
            colour = mix(colour, soft, blur);
        }
        *bytes = [0, 1, 2].map(|k| {
            // The sum of two even draws, between -1 and 1.
            let bits = hash(seed, i as u32, k);
            let noise = ((bits & 0xFFFF) + (bits >> 16)) as f32 / 65535.0 - 1.0;
            ((colour[k as usize] + grain * noise).clamp(0.0, 1.0) * 255.0 + 0.5) as u8
        });
    }
}
