//! Arrays in memory as a source.

use std::borrow::Cow;

use super::labels::index_labels;
use super::{Leaf, SampleInfo, SampleKind, Source};
use crate::DataError;
use crate::format::image::RgbImage;

/// Images or embeddings in memory, with the id of its class for each. Arrays are borrowed or owned.
///
/// ```
/// use gpn_data::source::{ArraySource, Source};
///
/// // Two images of 4 x 4 pixels.
/// let pixels = vec![0_u8; 2 * 4 * 4 * 3];
/// let source = ArraySource::images(&pixels[..], [2, 4, 4, 3], &["dog", "cat"])?;
/// assert_eq!(source.leaves().iter().map(|leaf| leaf.id.as_str()).collect::<Vec<_>>(), ["cat", "dog"]);
/// assert_eq!(source.image(1)?.width(), 4);
/// # Ok::<(), gpn_data::DataError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ArraySource<'a> {
    values: Values<'a>,
    leaves: Vec<Leaf>,
    samples: Vec<SampleInfo>,
}

#[derive(Clone, Debug)]
enum Values<'a> {
    Images { height: u32, width: u32, pixels: Cow<'a, [u8]> },
    Embeddings { dim: usize, values: Cow<'a, [f32]> },
}

impl<'a> ArraySource<'a> {
    /// RGB images of shape `[N, H, W, 3]`, in rows from the top, and `N` labels.
    pub fn images<S: AsRef<str>>(
        pixels: impl Into<Cow<'a, [u8]>>,
        shape: [usize; 4],
        labels: &[S],
    ) -> Result<Self, DataError> {
        let pixels = pixels.into();
        let [count, height, width, channels] = shape;
        let fault = |reason: String| DataError::unfit(IMAGES, reason);
        let expected = shape.iter().try_fold(1_usize, |size, &length| size.checked_mul(length));
        if channels != 3 || expected != Some(pixels.len()) {
            let reason = format!(
                "{} values are not of the shape {shape:?}; images must be of shape [N, H, W, 3]",
                pixels.len()
            );
            return Err(fault(reason));
        }
        let side = |side: usize| u32::try_from(side).ok().filter(|&side| side > 0);
        let (Some(height), Some(width)) = (side(height), side(width)) else {
            return Err(fault(format!("images of {width} x {height} pixels cannot be used")));
        };
        Self::labelled(Values::Images { height, width, pixels }, count, labels, IMAGES)
    }

    /// Embeddings of `dim` numbers each, one after the other, and a label for each.
    pub fn embeddings<S: AsRef<str>>(
        values: impl Into<Cow<'a, [f32]>>,
        dim: usize,
        labels: &[S],
    ) -> Result<Self, DataError> {
        let values = values.into();
        if dim == 0 || !values.len().is_multiple_of(dim) {
            let reason = format!("{} values are no whole number of embeddings of {dim}", values.len());
            return Err(DataError::unfit(EMBEDDINGS, reason));
        }
        let count = values.len() / dim;
        Self::labelled(Values::Embeddings { dim, values }, count, labels, EMBEDDINGS)
    }

    fn labelled<S: AsRef<str>>(
        values: Values<'a>,
        count: usize,
        labels: &[S],
        what: &str,
    ) -> Result<Self, DataError> {
        if labels.len() != count {
            let reason = format!("there are {count} samples but {} labels", labels.len());
            return Err(DataError::unfit(what, reason));
        }
        let (leaves, leaf_of) = index_labels(labels.iter().map(AsRef::as_ref));
        let row_name = |(row, leaf)| SampleInfo { leaf, file: format!("row {row}") };
        let samples = leaf_of.into_iter().enumerate().map(row_name).collect();
        Ok(Self { values, leaves, samples })
    }
}

const IMAGES: &str = "images in memory";
const EMBEDDINGS: &str = "embeddings in memory";

impl Source for ArraySource<'_> {
    fn describe(&self) -> String {
        match self.values {
            Values::Images { .. } => IMAGES.to_owned(),
            Values::Embeddings { .. } => EMBEDDINGS.to_owned(),
        }
    }

    fn kind(&self) -> SampleKind {
        match self.values {
            Values::Images { .. } => SampleKind::Images,
            Values::Embeddings { dim, .. } => SampleKind::Embeddings { dim },
        }
    }

    fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }

    fn samples(&self) -> &[SampleInfo] {
        &self.samples
    }

    fn image(&self, index: usize) -> Result<RgbImage, DataError> {
        let none = || self.no_sample(index, "images");
        let Values::Images { height, width, pixels } = &self.values else { return Err(none()) };
        let size = *height as usize * *width as usize * 3;
        let pixels = pixels.chunks_exact(size).nth(index).ok_or_else(none)?;
        RgbImage::new(*width, *height, pixels.to_vec()).ok_or_else(none)
    }

    fn embedding(&self, index: usize, out: &mut [f32]) -> Result<(), DataError> {
        let none = |len: usize| self.no_sample(index, &format!("embeddings of {len} numbers"));
        let Values::Embeddings { dim, values } = &self.values else { return Err(none(out.len())) };
        let row = values.chunks_exact(*dim).nth(index).filter(|row| row.len() == out.len());
        out.copy_from_slice(row.ok_or_else(|| none(out.len()))?);
        match out.iter().position(|value| !value.is_finite()) {
            None => Ok(()),
            Some(column) => Err(DataError::NotFinite {
                file: EMBEDDINGS.to_owned(),
                row: index,
                column,
                class: self.leaves[self.samples[index].leaf as usize].id.clone(),
                value: out[column],
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_that_do_not_fit_their_labels_or_shape_are_refused() {
        let fault = |result: Result<ArraySource<'_>, DataError>| result.unwrap_err().to_string();
        let labels = ["a", "b"];
        let images = |shape| ArraySource::images(vec![0; 24], shape, &labels);
        assert!(images([2, 2, 2, 3]).is_ok());
        for shape in [[2, 2, 3, 2], [2, 2, 2, 4], [usize::MAX, 2, 2, 3], [1, 2, 2, 3]] {
            assert!(fault(images(shape)).contains("shape [N, H, W, 3]"), "{shape:?}");
        }
        assert!(fault(ArraySource::images(vec![], [2, 0, 2, 3], &labels)).contains("2 x 0 pixels"));
        assert!(fault(images([1, 4, 2, 3])).contains("1 samples but 2 labels"));
        let embeddings = |dim| ArraySource::embeddings(vec![0.0; 4], dim, &labels);
        assert!(embeddings(2).is_ok());
        assert!(fault(embeddings(3)).contains("no whole number"));
        assert!(fault(embeddings(0)).contains("no whole number"));
        assert!(fault(embeddings(4)).contains("1 samples but 2 labels"));
    }

    #[test]
    fn samples_beyond_the_array_and_values_that_are_not_finite_are_errors() {
        let source = ArraySource::embeddings(vec![1.0, f32::NAN], 1, &["a", "b"]).unwrap();
        let mut out = [0.0];
        source.embedding(0, &mut out).unwrap();
        assert_eq!(out.map(f32::to_bits), [1.0_f32.to_bits()]);
        let message = source.embedding(1, &mut out).unwrap_err().to_string();
        assert!(message.contains("row 1 (class b), column 0 is NaN"), "{message}");
        assert!(source.embedding(2, &mut out).is_err());
        assert!(source.embedding(0, &mut [0.0; 2]).is_err());
        assert!(source.image(0).is_err());
        let images = ArraySource::images(vec![7; 6], [2, 1, 1, 3], &["a", "b"]).unwrap();
        assert_eq!(images.image(1).unwrap().pixels(), [7; 3]);
        assert!(images.image(2).is_err() && images.embedding(0, &mut out).is_err());
    }
}
