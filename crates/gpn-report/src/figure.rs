//! A finished figure.

use crate::scene::Scene;
use crate::write::write_file;
use crate::{ReportError, raster, svg};
use std::path::Path;

/// A finished figure: a drawing with its title and a sentence on what it shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Title, not drawn: for captions and for readers who cannot see the drawing.
    pub title: String,
    /// What the figure shows and how to read it, as a caption says it.
    pub caption: String,
    /// The drawing.
    pub scene: Scene,
}

impl Figure {
    /// The figure as SVG: a file of its own, or an element of an HTML page.
    pub fn to_svg(&self) -> String {
        svg::to_svg(&self.scene, &self.title, &self.caption)
    }

    /// The figure as PNG, at `scale` pixels per unit; 3 gives 288 dots per inch, good for print.
    pub fn to_png(&self, scale: f32) -> Result<Vec<u8>, ReportError> {
        raster::to_png(&self.scene, scale, &self.title)
    }

    /// Writes `NAME.svg` and `NAME.png` (scale 3) into a folder.
    pub fn write(&self, folder: impl AsRef<Path>, name: &str) -> Result<(), ReportError> {
        let folder = folder.as_ref();
        write_file(folder.join(format!("{name}.svg")), self.to_svg())?;
        write_file(folder.join(format!("{name}.png")), self.to_png(3.0)?)
    }
}
