//! The test transform: resize the shorter side, then crop the centre.

use super::{Filter, ImageView, Region, Resampler, TransformError, Window, check_sides};

/// The length to which the test transform resizes the shorter side: `round(side * 150 / 112)`, halves to even.
///
/// ```
/// use gpn_data::transform::eval_resize_side;
/// assert_eq!([32, 64, 84].map(eval_resize_side), [43, 86, 112]);
/// ```
pub fn eval_resize_side(side: u32) -> u32 {
    (f64::from(side) * 150.0 / 112.0).round_ties_even() as u32
}

/// Resizes the shorter side to [`eval_resize_side`], keeping the aspect, and crops a centre square of `side`.
#[derive(Debug)]
pub struct EvalTransform {
    side: u32,
    resized: u32,
    resampler: Resampler,
}

impl EvalTransform {
    /// A transform whose outputs have `side` rows and columns.
    pub fn new(side: u32) -> Result<Self, TransformError> {
        check_sides("a test crop", side, side)?;
        Ok(Self { side, resized: eval_resize_side(side), resampler: Resampler::new() })
    }

    /// A transform that keeps as much of an image as fits into a square: its shorter side becomes `side`.
    pub fn whole(side: u32) -> Result<Self, TransformError> {
        Ok(Self { resized: side, ..Self::new(side)? })
    }

    /// A transform whose shorter side becomes `shorter` before the centre square of `side` is cut out. A `shorter` below `side`
    /// is taken as `side`.
    pub fn of_shorter_side(side: u32, shorter: u32, filter: Filter) -> Result<Self, TransformError> {
        check_sides("a resized image", shorter, shorter)?;
        let resampler = Resampler::with_filter(filter);
        Ok(Self { resized: shorter.max(side), resampler, ..Self::new(side)? })
    }

    /// Writes the transformed image to `out`: `side * side * 3` bytes.
    pub fn apply(&mut self, image: ImageView<'_>, out: &mut [u8]) -> Result<(), TransformError> {
        let (width, height) = resized(image.width(), image.height(), self.resized);
        let part = Region {
            left: centred(width, self.side),
            top: centred(height, self.side),
            width: self.side,
            height: self.side,
        };
        let whole = Region::whole(image.width(), image.height());
        self.resampler.resize(image, whole, Window { width, height, part }, out)
    }
}

/// Size after resizing the shorter side to `short`; the longer one is cut to a whole number, as torchvision does.
fn resized(width: u32, height: u32, short: u32) -> (u32, u32) {
    let longer = |long: u32, of: u32| (f64::from(short) * f64::from(long) / f64::from(of)) as u32;
    if width <= height { (short, longer(height, width)) } else { (longer(width, height), short) }
}

/// First pixel of a centred crop; halves go to even, as torchvision does.
fn centred(length: u32, crop: u32) -> u32 {
    (f64::from(length - crop) / 2.0).round_ties_even() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_torchvision() {
        assert_eq!(eval_resize_side(112), 150);
        assert_eq!(resized(64, 64, 43), (43, 43));
        assert_eq!(resized(100, 75, 43), (57, 43));
        assert_eq!(resized(75, 100, 43), (43, 57));
        assert_eq!(centred(43, 32), 6, "5.5 rounds to the even 6");
        assert_eq!(centred(45, 32), 6, "6.5 rounds to the even 6");
        assert_eq!(centred(57, 32), 12);
    }

    #[test]
    fn every_small_image_and_side_has_a_centre() -> Result<(), TransformError> {
        for (width, height) in [(1, 1), (7, 9), (1, 30), (30, 1), (13, 64)] {
            let pixels = vec![77u8; (width * height * 3) as usize];
            for side in [1, 2, 3, 32] {
                let mut out = vec![0u8; (side * side * 3) as usize];
                EvalTransform::new(side)?.apply(ImageView::new(width, height, &pixels)?, &mut out)?;
                assert!(out.iter().all(|&v| v == 77), "{width}x{height} to {side}");
            }
        }
        Ok(())
    }

    #[test]
    fn an_elongated_image_too_long_to_resize_is_refused() -> Result<(), TransformError> {
        let pixels = vec![0u8; 60_000 * 3];
        let mut out = vec![0u8; 32 * 32 * 3];
        let error = EvalTransform::new(32)?.apply(ImageView::new(60_000, 1, &pixels)?, &mut out);
        assert!(matches!(error, Err(TransformError::Side { .. })), "{error:?}");
        Ok(())
    }
}
