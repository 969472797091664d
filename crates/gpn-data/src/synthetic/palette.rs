//! Colours: a main and a second one per palette, spread per sample.

/// A colour as red, green and blue in 0..1.
pub(super) type Rgb = [f32; 3];

/// The named colours of leaves: warm, cool and earthy ones, four neighbours each. The leaves of a kind have
/// colours of one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Palette {
    Scarlet,
    Copper,
    Golden,
    Rose,
    Azure,
    Teal,
    Violet,
    Emerald,
    Umber,
    Sand,
    Olive,
    Slate,
}

impl Palette {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Scarlet => "scarlet",
            Self::Copper => "copper",
            Self::Golden => "golden",
            Self::Rose => "rose",
            Self::Azure => "azure",
            Self::Teal => "teal",
            Self::Violet => "violet",
            Self::Emerald => "emerald",
            Self::Umber => "umber",
            Self::Sand => "sand",
            Self::Olive => "olive",
            Self::Slate => "slate",
        }
    }

    /// The main and the second colour as hue (in turns), saturation and value. The second is common to a group.
    pub(super) fn colours(self) -> [[f32; 3]; 2] {
        let main = match self {
            Self::Scarlet => [0.99, 0.88, 0.85],
            Self::Copper => [0.05, 0.80, 0.88],
            Self::Golden => [0.12, 0.85, 0.95],
            Self::Rose => [0.94, 0.58, 0.95],
            Self::Azure => [0.58, 0.78, 0.90],
            Self::Teal => [0.50, 0.75, 0.72],
            Self::Violet => [0.70, 0.65, 0.80],
            Self::Emerald => [0.41, 0.75, 0.68],
            Self::Umber => [0.05, 0.55, 0.58],
            Self::Sand => [0.11, 0.38, 0.88],
            Self::Olive => [0.18, 0.50, 0.62],
            Self::Slate => [0.60, 0.14, 0.66],
        };
        let second = match self {
            Self::Scarlet | Self::Copper | Self::Golden | Self::Rose => [0.13, 0.25, 0.97],
            Self::Azure | Self::Teal | Self::Violet | Self::Emerald => [0.55, 0.10, 0.97],
            Self::Umber | Self::Sand | Self::Olive | Self::Slate => [0.07, 0.50, 0.20],
        };
        [main, second]
    }
}

/// Hue (in turns, any number), saturation and value to red, green and blue.
pub(super) fn rgb([hue, saturation, value]: [f32; 3]) -> Rgb {
    let saturation = saturation.clamp(0.0, 1.0);
    [0.0, 2.0 / 3.0, 1.0 / 3.0].map(|offset| {
        let turn = hue + offset - (hue + offset).floor();
        let full = ((turn * 6.0 - 3.0).abs() - 1.0).clamp(0.0, 1.0);
        (value * (1.0 - saturation + saturation * full)).clamp(0.0, 1.0)
    })
}

/// The colour `share` of the way from `from` to `to`.
pub(super) fn mix(from: Rgb, to: Rgb, share: f32) -> Rgb {
    [0, 1, 2].map(|channel| from[channel] + (to[channel] - from[channel]) * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hues_are_where_they_belong() {
        let close = |got: Rgb, expected: Rgb| got.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5);
        assert!(close(rgb([0.0, 1.0, 1.0]), [1.0, 0.0, 0.0]));
        assert!(close(rgb([1.0 / 3.0, 1.0, 1.0]), [0.0, 1.0, 0.0]));
        assert!(close(rgb([-1.0 / 3.0, 1.0, 0.5]), [0.0, 0.0, 0.5]));
        assert!(close(rgb([0.3, 0.0, 0.7]), [0.7, 0.7, 0.7]));
    }
}
