//! Textures inside a silhouette, and the parts a leaf may add to it.

use super::geometry::{Point, hash, length};

/// How the two colours of a palette are laid out over a thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Texture {
    Plain,
    Striped,
    Spotted,
    Chequered,
    Ringed,
    Zigzag,
    Halved,
    Speckled,
    Netted,
}

/// What varies between samples of one texture.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weave {
    /// Repetitions per unit length, about 1.
    pub(super) density: f32,
    /// Shift of the pattern.
    pub(super) phase: Point,
    /// Width of a pixel in the thing's own coordinates: edges are softened by as much.
    pub(super) pixel: f32,
    /// Seed of random cells.
    pub(super) seed: u32,
}

impl Texture {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Striped => "striped",
            Self::Spotted => "spotted",
            Self::Chequered => "chequered",
            Self::Ringed => "ringed",
            Self::Zigzag => "zigzag",
            Self::Halved => "halved",
            Self::Speckled => "speckled",
            Self::Netted => "netted",
        }
    }

    /// Share of the second colour at a point, 0 to 1.
    pub(super) fn share(self, p: Point, weave: &Weave) -> f32 {
        let [x, y] = [p[0] + weave.phase[0], p[1] + weave.phase[1]];
        let soften = weave.pixel * weave.density;
        match self {
            Self::Plain => 0.0,
            Self::Striped => edge(wave(y * 2.2 * weave.density), 8.8 * soften),
            Self::Spotted => {
                let [u, v] = [x * 2.4 * weave.density, y * 2.4 * weave.density];
                // Every second row of dots is shifted by half a cell.
                let u = u + 0.5 * (v.floor() - 2.0 * (v * 0.5).floor());
                let cell = [u - u.floor() - 0.5, v - v.floor() - 0.5];
                edge(0.3 - length(cell), 2.4 * soften)
            }
            Self::Chequered => {
                let product = wave(x * 1.5 * weave.density) * wave(y * 1.5 * weave.density);
                edge(product, 6.0 * soften)
            }
            Self::Ringed => edge(wave(length(p) * 2.4 * weave.density + weave.phase[0]), 9.6 * soften),
            Self::Zigzag => {
                let bend = 0.3 * wave(x * 1.7 * weave.density);
                edge(wave(y * 1.9 * weave.density + bend), 9.0 * soften)
            }
            Self::Halved => edge(p[1] * 0.5 + p[0] + 0.3 * weave.phase[0], weave.pixel),
            Self::Speckled => {
                let [u, v] = [x * 6.0 * weave.density, y * 6.0 * weave.density];
                // About one cell in three; casts to a signed number keep cells left of and above 0 apart.
                let cell = hash(weave.seed, u.floor() as i32 as u32, v.floor() as i32 as u32);
                if cell % 100 < 34 { 0.9 } else { 0.0 }
            }
            Self::Netted => {
                let lines = |t: f32| 0.5 + 0.5 * wave(t * 2.4 * weave.density);
                // Diagonal lines: the pattern is a net, not a grid of windows.
                edge(0.24 - lines(0.7 * (x + y)).min(lines(0.7 * (x - y))), 4.8 * soften)
            }
        }
    }
}

/// A detail that a leaf adds to what it inherits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Bare,
    Spiked,
    Rimmed,
    Pierced,
    Banded,
}

impl Part {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Bare => "",
            Self::Spiked => "spiked",
            Self::Rimmed => "rimmed",
            Self::Pierced => "pierced",
            Self::Banded => "banded",
        }
    }

    /// The distance to the silhouette, changed by the part.
    pub(super) fn reshape(self, distance: f32, p: Point) -> f32 {
        match self {
            Self::Spiked => distance - 0.1 * wave(1.6 * (p[0] + p[1])) * wave(1.6 * (p[0] - p[1])),
            Self::Pierced => distance.max(0.17 - length([p[0], p[1] - 0.15])),
            Self::Bare | Self::Rimmed | Self::Banded => distance,
        }
    }

    /// Share of the part's own colour at a point of the silhouette.
    pub(super) fn share(self, distance: f32, p: Point, pixel: f32) -> f32 {
        match self {
            Self::Rimmed => edge(distance + 0.12, pixel),
            Self::Banded => edge(0.13 - (p[1] - 0.12).abs(), pixel),
            Self::Bare | Self::Spiked | Self::Pierced => 0.0,
        }
    }
}

/// A triangle wave of period 1 between -1 and 1.
pub(super) fn wave(t: f32) -> f32 {
    4.0 * (t - t.floor() - 0.5).abs() - 1.0
}

/// 0 below, 1 above, and a ramp of the given width around 0.
pub(super) fn edge(value: f32, width: f32) -> f32 {
    (value / width + 0.5).clamp(0.0, 1.0)
}
