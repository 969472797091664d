//! Axes: from numbers to places, ticks at round numbers, frame and names.

use crate::colour::Colour;
use crate::scene::{Anchor, Path, Scene, Stroke, Text};

/// Size of the numbers at the ticks.
pub(crate) const TICK_SIZE: f32 = 12.0;
/// Size of the names of the axes and of legends.
pub(crate) const LABEL_SIZE: f32 = 13.0;

/// The numbers an axis spans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    pub(crate) low: f32,
    pub(crate) high: f32,
}

impl Range {
    /// The smallest range of all finite numbers; from 0 to 1 when there are none, one unit around a number that
    /// stands alone.
    pub(crate) fn of(values: impl IntoIterator<Item = f32>) -> Self {
        let (mut low, mut high) = (f32::INFINITY, f32::NEG_INFINITY);
        for v in values.into_iter().filter(|v| v.is_finite()) {
            low = low.min(v);
            high = high.max(v);
        }
        if low > high {
            return Self { low: 0.0, high: 1.0 };
        }
        if high - low <= f32::EPSILON * high.abs().max(low.abs()) {
            return Self { low: low - 0.5, high: high + 0.5 };
        }
        Self { low, high }
    }

    /// A range with a share of its width added at both ends.
    pub(crate) fn padded(self, share: f32) -> Self {
        let pad = (self.high - self.low) * share;
        Self { low: self.low - pad, high: self.high + pad }
    }

    /// Round numbers within the range, as close together as `most` of them allow, and how many digits they need
    /// after the point.
    pub(crate) fn ticks(self, most: usize) -> (Vec<f32>, usize) {
        let (low, high) = (f64::from(self.low), f64::from(self.high));
        let numbers = |step: f64| (low / step - 1e-6).ceil() as i64..=(high / step + 1e-6).floor() as i64;
        let magnitude = 10f64.powf(((high - low) / most.max(1) as f64).log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0, 20.0]
            .map(|m| m * magnitude)
            .into_iter()
            .find(|&step| numbers(step).count() <= most)
            .unwrap_or(high - low);
        let digits = (-(step * 1.000_001).log10().floor()).max(0.0) as usize;
        (numbers(step).map(|i| (i as f64 * step) as f32).collect(), digits)
    }
}

/// Where numbers go: a rectangle and the ranges it spans, y upwards.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) left: f32,
    pub(crate) top: f32,
    pub(crate) width: f32,
    pub(crate) height: f32,
    pub(crate) x: Range,
    pub(crate) y: Range,
}

impl Frame {
    /// The place of a pair of numbers.
    pub(crate) fn place(&self, x: f32, y: f32) -> [f32; 2] {
        let across = (x - self.x.low) / (self.x.high - self.x.low);
        let up = (y - self.y.low) / (self.y.high - self.y.low);
        [self.left + across * self.width, self.top + (1.0 - up) * self.height]
    }

    fn bottom(&self) -> f32 {
        self.top + self.height
    }

    /// Draws grid, numbers and names of the axes. `x_ticks` are chosen by the caller where only some numbers
    /// have a meaning.
    pub(crate) fn draw(&self, scene: &mut Scene, x_label: &str, y_label: &str, x_ticks: Option<&[f32]>) {
        let (y_ticks, y_digits) = self.y.ticks(7);
        let thousands = in_thousands(&y_ticks);
        for &tick in &y_ticks {
            let [_, y] = self.place(self.x.low, tick);
            let line = Path::line(&[[self.left, y], [self.left + self.width, y]]);
            scene.stroke(line, Stroke::new(Colour::Grid, 1.0));
            let text = Text::new(tick_text(tick, y_digits, thousands), [self.left - 8.0, y + 4.2], TICK_SIZE);
            scene.text(text.anchor(Anchor::End).paint(Colour::Muted));
        }
        let (own, digits) = self.x.ticks(8);
        let (x_ticks, x_digits) = match x_ticks {
            Some(ticks) => (ticks, usize::from(ticks.iter().any(|t| t.fract() != 0.0))),
            None => (own.as_slice(), digits),
        };
        let thousands = in_thousands(x_ticks);
        for &tick in x_ticks {
            let [x, _] = self.place(tick, self.y.low);
            let line = Path::line(&[[x, self.bottom()], [x, self.bottom() + 4.0]]);
            scene.stroke(line, Stroke::new(Colour::Faint, 1.0));
            let text = Text::new(tick_text(tick, x_digits, thousands), [x, self.bottom() + 18.0], TICK_SIZE);
            scene.text(text.anchor(Anchor::Middle).paint(Colour::Muted));
        }
        let ground = Path::line(&[[self.left, self.bottom()], [self.left + self.width, self.bottom()]]);
        scene.stroke(ground, Stroke::new(Colour::Faint, 1.2));
        let middle = [self.left + self.width / 2.0, self.bottom() + 40.0];
        scene.text(Text::new(x_label, middle, LABEL_SIZE).anchor(Anchor::Middle));
        let side = [self.left - 46.0, self.top + self.height / 2.0];
        scene.text(Text::new(y_label, side, LABEL_SIZE).anchor(Anchor::Middle).upright());
    }
}

/// Whether the numbers of an axis are better read in thousands.
fn in_thousands(ticks: &[f32]) -> bool {
    ticks.iter().any(|t| t.abs() >= 10_000.0) && ticks.iter().all(|t| t % 1000.0 == 0.0)
}

fn tick_text(value: f32, digits: usize, thousands: bool) -> String {
    let value = if value == 0.0 { 0.0 } else { value };
    let text =
        if thousands && value != 0.0 { format!("{}k", value / 1000.0) } else { format!("{value:.digits$}") };
    text.replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers_inside_the_range() {
        assert_eq!(Range { low: 0.0, high: 1.0 }.ticks(7), (vec![0.0, 0.2, 0.4, 0.6, 0.8, 1.0], 1));
        let (ticks, digits) = Range { low: 31.2, high: 58.9 }.ticks(7);
        assert_eq!((ticks.as_slice(), digits), ([35.0, 40.0, 45.0, 50.0, 55.0].as_slice(), 0));
        assert_eq!(Range { low: -0.013, high: 0.02 }.ticks(4), (vec![-0.01, 0.0, 0.01, 0.02], 2));
    }

    #[test]
    fn odd_data_have_a_range() {
        assert_eq!(Range::of([]), Range { low: 0.0, high: 1.0 });
        assert_eq!(Range::of([f32::NAN, 3.0]), Range { low: 2.5, high: 3.5 });
        assert_eq!(Range::of([1.0, f32::INFINITY, -1.0]), Range { low: -1.0, high: 1.0 });
    }

    #[test]
    fn tick_texts_are_short() {
        assert!(in_thousands(&[0.0, 5000.0, 10_000.0]) && !in_thousands(&[0.0, 500.0, 1000.0]));
        assert_eq!(tick_text(5000.0, 0, true), "5k");
        assert_eq!(tick_text(5000.0, 0, false), "5000");
        assert_eq!(tick_text(-0.5, 1, false), "−0.5");
        assert_eq!(tick_text(-0.0, 0, true), "0");
    }
}
