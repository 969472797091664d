//! The typeface of the figures: Noto Sans, carried in the binary, so that text has the same width and the same
//! look on every machine.

use std::sync::LazyLock;
use ttf_parser::{Face, GlyphId, OutlineBuilder};

/// Weight of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weight {
    /// Running text.
    #[default]
    Regular,
    /// Headings.
    Bold,
}

static REGULAR: LazyLock<Option<Face<'static>>> =
    LazyLock::new(|| Face::parse(notosans::REGULAR_TTF, 0).ok());
static BOLD: LazyLock<Option<Face<'static>>> = LazyLock::new(|| Face::parse(notosans::BOLD_TTF, 0).ok());

fn face(weight: Weight) -> Option<&'static Face<'static>> {
    match weight {
        Weight::Regular => REGULAR.as_ref(),
        Weight::Bold => BOLD.as_ref(),
    }
}

/// Width of a line of text at a size in pixels. Characters the typeface lacks count as one em.
pub(crate) fn text_width(text: &str, size: f32, weight: Weight) -> f32 {
    let Some(face) = face(weight) else { return size * 0.6 * text.chars().count() as f32 };
    let per_unit = size / f32::from(face.units_per_em());
    text.chars()
        .map(|c| match face.glyph_index(c).and_then(|glyph| face.glyph_hor_advance(glyph)) {
            Some(advance) => f32::from(advance) * per_unit,
            None => size,
        })
        .sum()
}

/// A text shortened with an ellipsis to fit a width.
pub(crate) fn fit(text: &str, size: f32, weight: Weight, width: f32) -> String {
    if text_width(text, size, weight) <= width {
        return text.to_owned();
    }
    let mut short: Vec<char> = text.chars().collect();
    while short.len() > 1 {
        short.pop();
        let candidate = format!("{}…", short.iter().collect::<String>().trim_end());
        if text_width(&candidate, size, weight) <= width {
            return candidate;
        }
    }
    "…".to_owned()
}

/// Draws the outlines of a line of text whose baseline starts at `(x, y)`. Characters the typeface lacks
/// become its empty box.
pub(crate) fn outline(
    text: &str,
    size: f32,
    weight: Weight,
    x: f32,
    y: f32,
    path: &mut tiny_skia::PathBuilder,
) {
    let Some(face) = face(weight) else { return };
    let scale = size / f32::from(face.units_per_em());
    let mut pen = Pen { path, x, y, scale };
    for c in text.chars() {
        let glyph = face.glyph_index(c);
        face.outline_glyph(glyph.unwrap_or(GlyphId(0)), &mut pen);
        pen.x += match glyph.and_then(|glyph| face.glyph_hor_advance(glyph)) {
            Some(advance) => f32::from(advance) * scale,
            None => size,
        };
    }
}

/// Takes outlines in font units, y upwards, to pixels, y downwards.
struct Pen<'a> {
    path: &'a mut tiny_skia::PathBuilder,
    x: f32,
    y: f32,
    scale: f32,
}

impl Pen<'_> {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (self.x + x * self.scale, self.y - y * self.scale)
    }
}

impl OutlineBuilder for Pen<'_> {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_letters_are_wider() {
        let width = |text| text_width(text, 12.0, Weight::Regular);
        assert!(width("mmm") > 2.0 * width("iii"));
        assert!((width("accuracy") - 2.0 * text_width("accuracy", 6.0, Weight::Regular)).abs() < 1e-3);
        assert!(text_width("Accuracy", 12.0, Weight::Bold) > width("Accuracy"));
    }

    #[test]
    fn signs_of_the_figures_are_in_the_typeface() {
        for weight in [Weight::Regular, Weight::Bold] {
            let face = face(weight).unwrap();
            assert!("Accuracy (%) ± − … · × – λ é".chars().all(|c| face.glyph_index(c).is_some()));
        }
        assert!((text_width("犬", 12.0, Weight::Regular) - 12.0).abs() < 1e-6);
    }

    #[test]
    fn long_names_are_cut_to_their_place() {
        assert_eq!(fit("otter", 12.0, Weight::Regular, 100.0), "otter");
        let cut = fit("Siberian husky, sled dog", 12.0, Weight::Regular, 80.0);
        assert!(cut.starts_with("Siberian") && cut.ends_with('…'), "{cut}");
        assert!(text_width(&cut, 12.0, Weight::Regular) <= 80.0);
    }
}
