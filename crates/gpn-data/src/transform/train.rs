//! The training transform: a random part of the image, resized, and mirrored half of the time.

use super::{ImageView, Region, Resampler, TransformError, Window, check_output, check_sides};
use crate::rng::Stream;

/// Attempts at drawing a crop that fits before the centre is taken.
const TRIES: u32 = 10;

/// Which crops are drawn, and how often they are mirrored.
#[derive(Debug, Clone, PartialEq)]
pub struct CropConfig {
    /// Range of the crop's area as a share of the image's. Default 0.08 to 1.
    pub scale: (f64, f64),
    /// Range of width / height, drawn uniformly in its logarithm. Default 3/4 to 4/3.
    pub ratio: (f64, f64),
    /// Probability of mirroring left and right. Default 1/2.
    pub flip: f64,
}

impl Default for CropConfig {
    fn default() -> Self {
        Self { scale: (0.08, 1.0), ratio: (3.0 / 4.0, 4.0 / 3.0), flip: 0.5 }
    }
}

impl CropConfig {
    fn check(&self) -> Result<(), TransformError> {
        for (name, (low, high)) in [("scale", self.scale), ("ratio", self.ratio)] {
            if !(low > 0.0 && low <= high && high.is_finite()) {
                return Err(TransformError::CropRange { name, low: low.to_string(), high: high.to_string() });
            }
        }
        Ok(())
    }
}

/// A drawn crop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crop {
    /// The part of the image.
    pub region: Region,
    /// Whether it is mirrored.
    pub flip: bool,
}

/// Draws a crop of an image of `width` x `height` pixels: torchvision's random resized crop, then a coin for
/// the mirror.
///
/// The number of values drawn depends on the image's size, so each image gets a stream of its own when
/// results must not depend on the order.
pub fn random_crop(config: &CropConfig, width: u32, height: u32, stream: &mut Stream) -> Crop {
    let region = random_region(config, width, height, stream);
    Crop { region, flip: stream.unit() < config.flip }
}

fn random_region(config: &CropConfig, width: u32, height: u32, stream: &mut Stream) -> Region {
    let area = f64::from(width) * f64::from(height);
    let log_ratio = (libm::log(config.ratio.0), libm::log(config.ratio.1));
    for _ in 0..TRIES {
        let target = area * stream.between(config.scale.0, config.scale.1);
        let aspect = libm::exp(stream.between(log_ratio.0, log_ratio.1));
        let w = (target * aspect).sqrt().round_ties_even() as u32;
        let h = (target / aspect).sqrt().round_ties_even() as u32;
        if (1..=width).contains(&w) && (1..=height).contains(&h) {
            let top = stream.below((height - h + 1) as usize) as u32;
            let left = stream.below((width - w + 1) as usize) as u32;
            return Region { left, top, width: w, height: h };
        }
    }
    let aspect = f64::from(width) / f64::from(height);
    let (w, h) = if aspect < config.ratio.0 {
        (width, (f64::from(width) / config.ratio.0).round_ties_even() as u32)
    } else if aspect > config.ratio.1 {
        ((f64::from(height) * config.ratio.1).round_ties_even() as u32, height)
    } else {
        (width, height)
    };
    let (w, h) = (w.clamp(1, width), h.clamp(1, height));
    Region { left: (width - w) / 2, top: (height - h) / 2, width: w, height: h }
}

/// Draws a crop, resizes it to a square of `side`, and mirrors it if the draw says so.
#[derive(Debug)]
pub struct TrainTransform {
    side: u32,
    config: CropConfig,
    resampler: Resampler,
}

impl TrainTransform {
    /// A transform whose outputs have `side` rows and columns.
    pub fn new(side: u32, config: CropConfig) -> Result<Self, TransformError> {
        check_sides("a training crop", side, side)?;
        config.check()?;
        Ok(Self { side, config, resampler: Resampler::new() })
    }

    /// Draws a crop from `stream` and writes it to `out`: `side * side * 3` bytes.
    pub fn apply(
        &mut self,
        image: ImageView<'_>,
        stream: &mut Stream,
        out: &mut [u8],
    ) -> Result<Crop, TransformError> {
        let crop = random_crop(&self.config, image.width(), image.height(), stream);
        self.apply_crop(image, crop, out)?;
        Ok(crop)
    }

    /// Writes a given crop to `out`.
    pub fn apply_crop(
        &mut self,
        image: ImageView<'_>,
        crop: Crop,
        out: &mut [u8],
    ) -> Result<(), TransformError> {
        check_output(self.side as usize * self.side as usize * 3, out.len())?;
        self.resampler.resize(image, crop.region, Window::whole(self.side, self.side), out)?;
        if crop.flip {
            for row in out.chunks_exact_mut(self.side as usize * 3) {
                mirror(row);
            }
        }
        Ok(())
    }
}

fn mirror(row: &mut [u8]) {
    let (pixels, _) = row.as_chunks_mut::<3>();
    pixels.reverse();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Purpose;

    #[test]
    fn crops_stay_inside_and_follow_scale_and_ratio() {
        let config = CropConfig::default();
        let mut stream = Stream::new(1, Purpose::Augmentation, 0);
        let (mut flips, mut area) = (0, 0.0);
        let draws = 4000;
        for _ in 0..draws {
            let Crop { region, flip } = random_crop(&config, 64, 48, &mut stream);
            region.check_inside("a crop", 64, 48).unwrap();
            let ratio = f64::from(region.width) / f64::from(region.height);
            assert!((0.65..1.55).contains(&ratio), "{region:?}");
            flips += u32::from(flip);
            area += f64::from(region.width * region.height) / f64::from(64 * 48);
        }
        assert!((1850..2150).contains(&flips), "{flips}");
        // torchvision draws a mean share of 0.44 here: large crops often do not fit and are drawn again.
        assert!((0.42..0.46).contains(&(area / f64::from(draws))), "{area}");
    }

    #[test]
    fn an_image_no_crop_fits_gets_the_centre() {
        let config = CropConfig { scale: (1.0, 1.0), ..CropConfig::default() };
        let mut stream = Stream::new(2, Purpose::Augmentation, 0);
        let crop = |w, h, stream: &mut Stream| random_crop(&config, w, h, stream).region;
        assert_eq!(crop(90, 30, &mut stream), Region { left: 25, top: 0, width: 40, height: 30 });
        assert_eq!(crop(30, 90, &mut stream), Region { left: 0, top: 25, width: 30, height: 40 });
        assert_eq!(crop(1, 200, &mut stream), Region { left: 0, top: 99, width: 1, height: 1 });
    }

    #[test]
    fn one_pixel_is_an_image() -> Result<(), TransformError> {
        let mut stream = Stream::new(3, Purpose::Augmentation, 0);
        let mut out = vec![0u8; 8 * 8 * 3];
        let image = ImageView::new(1, 1, &[1, 2, 3])?;
        TrainTransform::new(8, CropConfig::default())?.apply(image, &mut stream, &mut out)?;
        assert!(out.chunks_exact(3).all(|p| p == [1, 2, 3]));
        Ok(())
    }

    #[test]
    fn the_same_stream_gives_the_same_bytes_and_a_flip_mirrors() -> Result<(), TransformError> {
        let pixels: Vec<u8> = (0..64 * 64 * 3).map(|i| (i * 31 % 251) as u8).collect();
        let image = ImageView::new(64, 64, &pixels)?;
        let mut transform = TrainTransform::new(32, CropConfig::default())?;
        let mut drawn = [vec![0u8; 32 * 32 * 3], vec![0u8; 32 * 32 * 3]];
        for out in &mut drawn {
            let mut stream = Stream::new(9, Purpose::Augmentation, 0);
            transform.apply(image, &mut stream, out)?;
        }
        assert_eq!(drawn[0], drawn[1]);

        let region = Region { left: 3, top: 5, width: 41, height: 37 };
        let [plain, flipped] = &mut drawn;
        transform.apply_crop(image, Crop { region, flip: false }, plain)?;
        transform.apply_crop(image, Crop { region, flip: true }, flipped)?;
        for (plain, flipped) in plain.chunks_exact(96).zip(flipped.chunks_exact(96)) {
            assert!(plain.chunks_exact(3).eq(flipped.chunks_exact(3).rev()));
        }
        Ok(())
    }

    #[test]
    fn settings_that_describe_no_crop_are_refused() {
        for config in [
            CropConfig { scale: (0.0, 1.0), ..CropConfig::default() },
            CropConfig { ratio: (2.0, 1.0), ..CropConfig::default() },
            CropConfig { ratio: (0.5, f64::NAN), ..CropConfig::default() },
        ] {
            assert!(matches!(TrainTransform::new(32, config), Err(TransformError::CropRange { .. })));
        }
    }
}
