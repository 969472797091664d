//! Colours by what they are for.
//!
//! A figure names roles, not values: on paper and in files they are the colours below, on a dark page its
//! style sheet gives the same roles other values.

use std::fmt::Write as _;

/// A colour by its role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Text and what must be seen first.
    Ink,
    /// Secondary text.
    Muted,
    /// Axes and what stays in the background.
    Faint,
    /// Grid lines.
    Grid,
    /// The ground everything stands on.
    Paper,
    /// The colour of a series; numbers beyond the palette start over.
    Series(usize),
}

/// Colours of the series: those of Okabe and Ito, which colour-blind readers can tell apart, ordered so that
/// the first ones also differ in lightness and stand out on white.
const SERIES: [[u8; 3]; 7] = [
    [0x00, 0x72, 0xb2], // blue
    [0xd5, 0x5e, 0x00], // vermillion
    [0x00, 0x9e, 0x73], // bluish green
    [0xcc, 0x79, 0xa7], // reddish purple
    [0xe6, 0x9f, 0x00], // orange
    [0x56, 0xb4, 0xe9], // sky blue
    [0x7a, 0x5c, 0x3e], // brown, in place of yellow, which white paper swallows
];

/// The same on a dark ground.
const SERIES_ON_DARK: [[u8; 3]; 7] = [
    [0x4a, 0xa8, 0xe0],
    [0xf0, 0x7d, 0x2e],
    [0x2b, 0xc4, 0x98],
    [0xdb, 0x95, 0xbb],
    [0xf0, 0xb4, 0x29],
    [0x8a, 0xcf, 0xf5],
    [0xb8, 0x93, 0x6d],
];

impl Colour {
    /// How many series have a colour of their own.
    pub const SERIES: usize = SERIES.len();

    /// Red, green and blue on white paper.
    pub fn rgb(self) -> [u8; 3] {
        match self {
            Colour::Ink => [0x1f, 0x24, 0x2b],
            Colour::Muted => [0x5a, 0x63, 0x6e],
            Colour::Faint => [0x9a, 0xa3, 0xad],
            Colour::Grid => [0xe3, 0xe6, 0xea],
            Colour::Paper => [0xff, 0xff, 0xff],
            Colour::Series(i) => SERIES[i % SERIES.len()],
        }
    }

    /// Red, green and blue on a dark page.
    fn rgb_on_dark(self) -> [u8; 3] {
        match self {
            Colour::Ink => [0xe8, 0xea, 0xed],
            Colour::Muted => [0xa9, 0xb1, 0xba],
            Colour::Faint => [0x77, 0x80, 0x8a],
            Colour::Grid => [0x30, 0x36, 0x3d],
            Colour::Paper => [0x1b, 0x1f, 0x24],
            Colour::Series(i) => SERIES_ON_DARK[i % SERIES.len()],
        }
    }

    /// Short name of the role, for classes in SVG.
    pub(crate) fn role(self) -> String {
        match self {
            Colour::Ink => "ink".to_owned(),
            Colour::Muted => "muted".to_owned(),
            Colour::Faint => "faint".to_owned(),
            Colour::Grid => "grid".to_owned(),
            Colour::Paper => "paper".to_owned(),
            Colour::Series(i) => format!("s{}", i % SERIES.len()),
        }
    }
}

/// A colour as `#rrggbb`.
pub(crate) fn hex([r, g, b]: [u8; 3]) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// Style rules that give figures inside an HTML page the colours of a dark page.
pub(crate) fn dark_rules() -> String {
    let plain = [Colour::Ink, Colour::Muted, Colour::Faint, Colour::Grid, Colour::Paper];
    let all = plain.into_iter().chain((0..Colour::SERIES).map(Colour::Series));
    let mut rules = String::new();
    for colour in all {
        let (role, value) = (colour.role(), hex(colour.rgb_on_dark()));
        let _ = writeln!(rules, ".f-{role}{{fill:{value}}}.l-{role}{{stroke:{value}}}");
    }
    rules
}
