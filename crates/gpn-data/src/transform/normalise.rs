//! Bytes to the planes a network reads.

use std::sync::LazyLock;

use super::{TransformError, check_output};

/// Mean of ImageNet's red, green and blue, of values in 0..1.
pub const IMAGENET_MEAN: [f32; 3] = [0.485, 0.456, 0.406];
/// Standard deviation of ImageNet's red, green and blue, of values in 0..1.
pub const IMAGENET_STD: [f32; 3] = [0.229, 0.224, 0.225];

/// Per channel, the normalised value of each byte.
static TABLE: LazyLock<[[f32; 256]; 3]> = LazyLock::new(|| {
    std::array::from_fn(|channel| {
        std::array::from_fn(|byte| (byte as f32 / 255.0 - IMAGENET_MEAN[channel]) / IMAGENET_STD[channel])
    })
});

/// Writes `(x / 255 - mean) / std` of RGB pixels (height, width, channel) as planes (channel, height, width).
///
/// `planes` has as many values as `pixels`, whose number is a multiple of three.
pub fn normalise(pixels: &[u8], planes: &mut [f32]) -> Result<(), TransformError> {
    let count = pixels.len() / 3;
    check_output(count * 3, planes.len())?;
    let (red, rest) = planes.split_at_mut(count);
    let (green, blue) = rest.split_at_mut(count);
    let [red_of, green_of, blue_of] = &*TABLE;
    for (((pixel, red), green), blue) in pixels.as_chunks::<3>().0.iter().zip(red).zip(green).zip(blue) {
        *red = red_of[usize::from(pixel[0])];
        *green = green_of[usize::from(pixel[1])];
        *blue = blue_of[usize::from(pixel[2])];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_are_apart_and_normalised() -> Result<(), TransformError> {
        let mut planes = [0f32; 6];
        normalise(&[0, 128, 255, 10, 20, 30], &mut planes)?;
        let value = |byte: f32, c: usize| (byte / 255.0 - IMAGENET_MEAN[c]) / IMAGENET_STD[c];
        let expected =
            [value(0.0, 0), value(10.0, 0), value(128.0, 1), value(20.0, 1), value(255.0, 2), value(30.0, 2)];
        for (got, expected) in planes.iter().zip(expected) {
            assert!((got - expected).abs() < 1e-7);
        }
        Ok(())
    }

    #[test]
    fn a_short_output_is_refused() {
        let error = normalise(&[0; 6], &mut [0.0; 5]);
        assert_eq!(error, Err(TransformError::OutputLength { expected: 6, got: 5 }));
    }
}
