//! From a decoded photo to the input of an image encoder.

use std::path::Path;

use gpn_data::RgbImage;
use gpn_data::transform::{
    EvalTransform, Filter, IMAGENET_MEAN, IMAGENET_STD, ImageView, Region, Resampler, TransformError, Window,
};
use serde::{Deserialize, Serialize};

use crate::config::{EncoderConfig, Interpolation, Layout, Resize, ValueRange};
use crate::error::{EncodeError, Result};

/// Side of the input where nothing says it.
const USUAL_SIZE: u32 = 224;
/// Largest input.
const MAX_SIZE: u32 = 4096;
/// Share of the shorter side that a centre crop keeps, where nothing says it: 224 of 256.
const USUAL_SHARE: f64 = 0.875;

/// How photos are prepared, complete and checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Preprocessing {
    /// Height and width of the input.
    pub size: u32,
    /// Order of its axes.
    pub layout: Layout,
    /// Range of pixel values before they are normalised.
    pub range: ValueRange,
    /// Subtracted from red, green and blue.
    pub mean: [f32; 3],
    /// Divides red, green and blue.
    pub std: [f32; 3],
    /// How a photo becomes a square.
    pub resize: Resize,
    /// Length of the shorter side before the centre is cut out; `size` where photos are squashed.
    pub shorter_side: u32,
    /// How pixels are resampled.
    pub interpolation: Interpolation,
}

impl Preprocessing {
    /// Checks settings and completes them by the input that a model declares: its four lengths, where it fixes them.
    pub(crate) fn new(config: &EncoderConfig, declared: [Option<usize>; 4], model: &Path) -> Result<Self> {
        let wrong = |field: &'static str, reason: String| {
            Err(EncodeError::Setting { place: model.display().to_string(), field, reason })
        };
        let declared_layout = match declared {
            [_, Some(3), ..] => Some(Layout::Nchw),
            [.., Some(3)] => Some(Layout::Nhwc),
            _ => None,
        };
        let layout = config.layout.or(declared_layout).unwrap_or(Layout::Nchw);
        let [_, a, b, c] = declared;
        let (channels, sides) = match layout {
            Layout::Nchw => (a, [b, c]),
            Layout::Nhwc => (c, [a, b]),
        };
        if channels.is_some_and(|channels| channels != 3) {
            let shape = declared.map(|length| length.map_or("?".to_owned(), |length| length.to_string()));
            return wrong(
                "layout",
                format!("leaves no axis of three colours in the model's input [{}]", shape.join(", ")),
            );
        }
        let declared_size = match sides {
            [Some(height), Some(width)] if height != width => {
                return Err(EncodeError::unfit(
                    model,
                    format!("its input is {height}x{width}; only square inputs are supported"),
                ));
            }
            [height, width] => height.or(width).map(|side| side as u32),
        };
        let size = config.size.or(declared_size).unwrap_or(USUAL_SIZE);
        if !(1..=MAX_SIZE).contains(&size) {
            return wrong("size", format!("is {size}; it must be between 1 and {MAX_SIZE}"));
        }
        if let Some(declared) = declared_size.filter(|&declared| declared != size) {
            return wrong("size", format!("is {size}, but the model takes {declared}x{declared}"));
        }
        let range = config.range.unwrap_or(ValueRange::Unit);
        let scale = match range {
            ValueRange::Unit => 1.0,
            ValueRange::Byte => 255.0,
        };
        let mean = config.mean.unwrap_or(IMAGENET_MEAN.map(|value| value * scale));
        let std = config.std.unwrap_or(IMAGENET_STD.map(|value| value * scale));
        if let Some(value) = mean.iter().find(|value| !value.is_finite()) {
            return wrong("mean", format!("has {value}; numbers must be finite"));
        }
        if let Some(value) = std.iter().find(|value| !value.is_finite() || **value <= 0.0) {
            return wrong("std", format!("has {value}; numbers must be above 0"));
        }
        let resize = config.resize.unwrap_or(Resize::Crop);
        let shorter_side = match (resize, config.shorter_side) {
            (Resize::Squash, Some(_)) => {
                return wrong("shorter_side", "has no meaning where photos are squashed".into());
            }
            (Resize::Squash, None) => size,
            (Resize::Crop, Some(side)) if side < size || side > 4 * MAX_SIZE => {
                return wrong(
                    "shorter_side",
                    format!("is {side}; it must be at least the size {size} and at most {}", 4 * MAX_SIZE),
                );
            }
            (Resize::Crop, Some(side)) => side,
            (Resize::Crop, None) => (f64::from(size) / USUAL_SHARE).round() as u32,
        };
        let interpolation = config.interpolation.unwrap_or(Interpolation::Bilinear);
        Ok(Self { size, layout, range, mean, std, resize, shorter_side, interpolation })
    }

    /// The shape of the input of one photo.
    pub(crate) fn shape(&self) -> [usize; 4] {
        let size = self.size as usize;
        match self.layout {
            Layout::Nchw => [1, 3, size, size],
            Layout::Nhwc => [1, size, size, 3],
        }
    }
}

/// Prepares photos; keeps its scratch memory. One for each thread.
pub(crate) struct Preparer {
    preprocessing: Preprocessing,
    square: Square,
    pixels: Vec<u8>,
    /// Per channel, the normalised value of each byte.
    table: [[f32; 256]; 3],
}

enum Square {
    Squash(Resampler),
    Crop(EvalTransform),
}

impl Preparer {
    pub(crate) fn new(preprocessing: &Preprocessing) -> Result<Self> {
        let Preprocessing { size, range, mean, std, .. } = *preprocessing;
        let filter = match preprocessing.interpolation {
            Interpolation::Bilinear => Filter::Bilinear,
            Interpolation::Bicubic => Filter::Bicubic,
        };
        let square = match preprocessing.resize {
            Resize::Squash => Square::Squash(Resampler::with_filter(filter)),
            Resize::Crop => Square::Crop(
                EvalTransform::of_shorter_side(size, preprocessing.shorter_side, filter)
                    .map_err(gpn_data::DataError::from)?,
            ),
        };
        let value = |byte: usize| match range {
            ValueRange::Unit => byte as f32 / 255.0,
            ValueRange::Byte => byte as f32,
        };
        let table = std::array::from_fn(|channel| {
            std::array::from_fn(|byte| (value(byte) - mean[channel]) / std[channel])
        });
        let pixels = vec![0; (size * size * 3) as usize];
        Ok(Self { preprocessing: preprocessing.clone(), square, pixels, table })
    }

    /// The input of one photo, of the shape [`Preprocessing::shape`].
    pub(crate) fn input(&mut self, image: &RgbImage) -> Result<Vec<f32>, TransformError> {
        let size = self.preprocessing.size;
        let view = ImageView::new(image.width(), image.height(), image.pixels())?;
        match &mut self.square {
            Square::Squash(resampler) => {
                let whole = Region::whole(image.width(), image.height());
                resampler.resize(view, whole, Window::whole(size, size), &mut self.pixels)?;
            }
            Square::Crop(crop) => crop.apply(view, &mut self.pixels)?,
        }
        let pixels = self.pixels.as_chunks::<3>().0;
        let value = |channel: usize, pixel: &[u8; 3]| self.table[channel][usize::from(pixel[channel])];
        Ok(match self.preprocessing.layout {
            Layout::Nchw => {
                let planes = (0..3).flat_map(|channel| pixels.iter().map(move |pixel| value(channel, pixel)));
                let mut input = Vec::with_capacity(pixels.len() * 3);
                input.extend(planes);
                input
            }
            Layout::Nhwc => {
                pixels.iter().flat_map(|pixel| [0, 1, 2].map(|channel| value(channel, pixel))).collect()
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(config: &EncoderConfig, declared: [Option<usize>; 4]) -> Result<Preprocessing> {
        Preprocessing::new(config, declared, Path::new("m.onnx"))
    }

    #[test]
    fn the_declared_input_fills_what_is_not_said() {
        let empty = EncoderConfig::default();
        let found = checked(&empty, [None, Some(3), Some(64), Some(64)]).unwrap();
        assert_eq!((found.size, found.layout, found.shorter_side), (64, Layout::Nchw, 73));
        let found = checked(&empty, [Some(1), Some(96), Some(96), Some(3)]).unwrap();
        assert_eq!((found.size, found.layout), (96, Layout::Nhwc));
        let found = checked(&empty, [None; 4]).unwrap();
        assert_eq!((found.size, found.layout, found.shorter_side), (224, Layout::Nchw, 256));
        assert_eq!((found.mean, found.std), (IMAGENET_MEAN, IMAGENET_STD));
        let bytes = EncoderConfig { range: Some(ValueRange::Byte), ..EncoderConfig::default() };
        let of_bytes = IMAGENET_MEAN.map(|value| (value * 255.0).to_bits());
        assert_eq!(checked(&bytes, [None; 4]).unwrap().mean.map(f32::to_bits), of_bytes);
    }

    #[test]
    fn settings_without_meaning_are_refused() {
        let input = [None, Some(3), Some(64), Some(64)];
        let base = EncoderConfig::default();
        for (config, declared, expected) in [
            (
                EncoderConfig { size: Some(32), ..base.clone() },
                input,
                "`size` is 32, but the model takes 64x64",
            ),
            (EncoderConfig { size: Some(0), ..base.clone() }, [None; 4], "`size` is 0; it must be"),
            (
                EncoderConfig { std: Some([1.0, 0.0, 1.0]), ..base.clone() },
                input,
                "`std` has 0; numbers must be above 0",
            ),
            (EncoderConfig { mean: Some([f32::NAN; 3]), ..base.clone() }, input, "`mean` has NaN"),
            (
                EncoderConfig { shorter_side: Some(8), ..base.clone() },
                input,
                "`shorter_side` is 8; it must be",
            ),
            (
                EncoderConfig { resize: Some(Resize::Squash), shorter_side: Some(80), ..base.clone() },
                input,
                "`shorter_side` has no meaning",
            ),
            (
                EncoderConfig { layout: Some(Layout::Nhwc), ..base.clone() },
                input,
                "`layout` leaves no axis of three colours in the model's input [?, 3, 64, 64]",
            ),
            (base, [None, Some(3), Some(64), Some(32)], "only square inputs"),
        ] {
            let message = checked(&config, declared).unwrap_err().to_string();
            assert!(message.starts_with("m.onnx: ") && message.contains(expected), "{message}");
        }
    }
}
