//! From stored pixels to a network's input, agreeing with torchvision on Pillow images.
//!
//! In: an [`ImageView`] (u8, rows of RGB pixels). Out: a square u8 image in the caller's buffer, by the
//! test transform ([`EvalTransform`]) or the training transform ([`TrainTransform`]), and from that the
//! normalised planes a network reads ([`normalise`]). The transforms keep their scratch memory, so a worker
//! thread owns one of each and allocates nothing per image.
//!
//! ```
//! use gpn_data::transform::{EvalTransform, ImageView, normalise};
//!
//! # fn main() -> Result<(), gpn_data::transform::TransformError> {
//! let stored = vec![128u8; 64 * 64 * 3];
//! let mut eval = EvalTransform::new(32)?;
//! let mut cropped = vec![0u8; 32 * 32 * 3];
//! eval.apply(ImageView::new(64, 64, &stored)?, &mut cropped)?;
//!
//! let mut planes = vec![0f32; 3 * 32 * 32];
//! normalise(&cropped, &mut planes)?;
//! assert!((planes[0] - (128.0 / 255.0 - 0.485) / 0.229).abs() < 1e-6);
//! # Ok(())
//! # }
//! ```

mod eval;
mod normalise;
mod resample;
mod train;

use gpn_files::ErrorKind;

pub use eval::{EvalTransform, eval_resize_side};
pub use normalise::{IMAGENET_MEAN, IMAGENET_STD, normalise};
pub use resample::{Filter, Resampler, Window};
pub use train::{Crop, CropConfig, TrainTransform, random_crop};

/// Why an image cannot be transformed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransformError {
    /// The pixel buffer does not hold `width * height` RGB pixels.
    #[error("an image of {width}x{height} RGB pixels needs {} bytes, got {got}", u64::from(*width) * u64::from(*height) * 3)]
    PixelCount {
        /// Columns claimed.
        width: u32,
        /// Rows claimed.
        height: u32,
        /// Bytes given.
        got: usize,
    },
    /// An image, crop or output with no pixels, or a side too long to be an image.
    #[error("{what} of {width}x{height} pixels: each side must be between 1 and {MAX_SIDE}")]
    Side {
        /// Which rectangle it is.
        what: &'static str,
        /// Its columns.
        width: u32,
        /// Its rows.
        height: u32,
    },
    /// A rectangle that reaches outside the image it selects from.
    #[error(
        "{what} of {width}x{height} pixels at ({left}, {top}) reaches outside an image of {image_width}x{image_height}"
    )]
    Outside {
        /// Which rectangle it is.
        what: &'static str,
        /// First column.
        left: u32,
        /// First row.
        top: u32,
        /// Its columns.
        width: u32,
        /// Its rows.
        height: u32,
        /// Columns of the image.
        image_width: u32,
        /// Rows of the image.
        image_height: u32,
    },
    /// The caller's buffer has the wrong length.
    #[error("the output buffer has {got} values, {expected} are needed")]
    OutputLength {
        /// Values needed.
        expected: usize,
        /// Values given.
        got: usize,
    },
    /// Crop settings that describe no crop.
    #[error(
        "crop {name} range {low}..{high}: both ends must be positive and finite, the first at most the second"
    )]
    CropRange {
        /// Name of the setting.
        name: &'static str,
        /// Its lower end.
        low: String,
        /// Its upper end.
        high: String,
    },
}

impl TransformError {
    /// What kind of failure it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::OutputLength { .. } => ErrorKind::Bug,
            _ => ErrorKind::BadInput,
        }
    }
}

/// Longest side an image may have; keeps every product of sides far from overflow.
pub const MAX_SIDE: u32 = 1 << 16;

/// A rectangle of whole pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// First column.
    pub left: u32,
    /// First row.
    pub top: u32,
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

impl Region {
    /// All of an image.
    pub const fn whole(width: u32, height: u32) -> Self {
        Self { left: 0, top: 0, width, height }
    }

    /// Checks that the rectangle has pixels and lies inside an image of the given size.
    fn check_inside(
        self,
        what: &'static str,
        image_width: u32,
        image_height: u32,
    ) -> Result<(), TransformError> {
        let Self { left, top, width, height } = self;
        check_sides(what, width, height)?;
        let fits =
            |start: u32, length: u32, limit: u32| u64::from(start) + u64::from(length) <= u64::from(limit);
        if fits(left, width, image_width) && fits(top, height, image_height) {
            Ok(())
        } else {
            Err(TransformError::Outside { what, left, top, width, height, image_width, image_height })
        }
    }
}

fn check_sides(what: &'static str, width: u32, height: u32) -> Result<(), TransformError> {
    if (1..=MAX_SIDE).contains(&width) && (1..=MAX_SIDE).contains(&height) {
        Ok(())
    } else {
        Err(TransformError::Side { what, width, height })
    }
}

/// A borrowed RGB image: rows top to bottom, three bytes per pixel.
#[derive(Debug, Clone, Copy)]
pub struct ImageView<'a> {
    width: u32,
    height: u32,
    pixels: &'a [u8],
}

impl<'a> ImageView<'a> {
    /// Views `pixels` as an image of `width` columns and `height` rows.
    pub fn new(width: u32, height: u32, pixels: &'a [u8]) -> Result<Self, TransformError> {
        check_sides("an image", width, height)?;
        if pixels.len() as u64 != u64::from(width) * u64::from(height) * 3 {
            return Err(TransformError::PixelCount { width, height, got: pixels.len() });
        }
        Ok(Self { width, height, pixels })
    }

    /// Columns.
    pub const fn width(&self) -> u32 {
        self.width
    }

    /// Rows.
    pub const fn height(&self) -> u32 {
        self.height
    }

    /// The bytes of `region`'s part of one of its rows.
    fn row(&self, region: Region, row: u32) -> &'a [u8] {
        let start = ((region.top + row) as usize * self.width as usize + region.left as usize) * 3;
        &self.pixels[start..start + region.width as usize * 3]
    }
}

fn check_output(expected: usize, got: usize) -> Result<(), TransformError> {
    if expected == got { Ok(()) } else { Err(TransformError::OutputLength { expected, got }) }
}
