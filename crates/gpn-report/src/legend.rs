//! Legends: which sign stands for what.

use crate::axes::LABEL_SIZE;
use crate::font::{Weight, text_width};
use crate::scene::{Drawn, Item, Scene, Text};

/// An entry of a legend: a sign drawn around a point, and its name.
pub(crate) struct Entry {
    /// Width of the sign.
    pub(crate) width: f32,
    /// Draws the sign centred at a point.
    pub(crate) sign: Box<dyn Fn([f32; 2]) -> Vec<Drawn>>,
    /// Name.
    pub(crate) name: String,
}

impl Entry {
    pub(crate) fn new(
        width: f32,
        name: impl Into<String>,
        sign: impl Fn([f32; 2]) -> Vec<Drawn> + 'static,
    ) -> Self {
        Self { width, sign: Box::new(sign), name: name.into() }
    }
}

/// Height of a line of a legend.
pub(crate) const LINE: f32 = 22.0;

/// Draws entries in lines from `left` to `right`, the middle of the first line at `top + LINE / 2`; gives the
/// height used.
pub(crate) fn draw(scene: &mut Scene, entries: &[Entry], left: f32, right: f32, top: f32) -> f32 {
    let (mut x, mut y) = (left, top + LINE / 2.0);
    for entry in entries {
        let width = entry.width + 7.0 + text_width(&entry.name, LABEL_SIZE, Weight::Regular);
        if x > left && x + width > right {
            x = left;
            y += LINE;
        }
        let marks = (entry.sign)([x + entry.width / 2.0, y]);
        scene.items.push(Item { marks, tip: None });
        scene.text(Text::new(entry.name.clone(), [x + entry.width + 7.0, y + 4.6], LABEL_SIZE));
        x += width + 20.0;
    }
    if entries.is_empty() { 0.0 } else { y + LINE / 2.0 - top }
}

/// Height [`draw`] will use, to leave room for it.
pub(crate) fn height(entries: &[Entry], left: f32, right: f32) -> f32 {
    draw(&mut Scene::default(), entries, left, right, 0.0)
}
