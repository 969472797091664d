//! Photos to embeddings.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use gpn_data::format::archive::read_small_file;
use gpn_data::{DataError, Progress, RgbImage, Source, decode};
use rayon::prelude::*;

use crate::cache::{ContentHash, EmbeddingCache};
use crate::config::{EncoderConfig, Layout, Runtime};
use crate::encode::{Encoded, cached, check_finite, through_cache, to_unit_length};
use crate::error::{EncodeError, Result};
use crate::id::{EncoderId, Preparation};
use crate::onnx::{FLOAT, Input, OnnxModel};
use crate::preprocessing::{Preparer, Preprocessing};
use crate::runtime::{self, InputShapes, Output, Session, Tensor};

/// Larger files are refused before they are read.
const MAX_IMAGE_BYTES: u64 = 1 << 30;

/// A photo as it is stored.
pub enum ImageContent<'a> {
    /// The bytes of an image file.
    File(Cow<'a, [u8]>),
    /// Decoded pixels.
    Pixels(RgbImage),
}

/// Photos to encode, read when they are needed, from any thread.
pub trait Images: Sync {
    /// How many there are.
    fn count(&self) -> usize;

    /// What messages call one of them.
    fn name(&self, index: usize) -> String;

    /// Reads one of them.
    fn read(&self, index: usize) -> Result<ImageContent<'_>>;
}

impl Images for [PathBuf] {
    fn count(&self) -> usize {
        self.len()
    }

    fn name(&self, index: usize) -> String {
        self[index].display().to_string()
    }

    fn read(&self, index: usize) -> Result<ImageContent<'_>> {
        Ok(ImageContent::File(Cow::Owned(read_small_file(&self[index], MAX_IMAGE_BYTES)?)))
    }
}

/// All photos of a source.
impl Images for dyn Source + '_ {
    fn count(&self) -> usize {
        self.samples().len()
    }

    fn name(&self, index: usize) -> String {
        self.samples()[index].file.clone()
    }

    fn read(&self, index: usize) -> Result<ImageContent<'_>> {
        Ok(match self.encoded_image(index) {
            Some(bytes) => ImageContent::File(bytes?),
            None => ImageContent::Pixels(self.image(index)?),
        })
    }
}

/// A frozen encoder of photos: an ONNX model and how photos are prepared for it.
///
/// ```no_run
/// use std::path::{Path, PathBuf};
/// use gpn_encode::{EmbeddingCache, EncoderConfig, ImageEncoder};
///
/// let encoder = ImageEncoder::open(Path::new("lite0.onnx"), &EncoderConfig::default())?;
/// let cache = EmbeddingCache::new(Path::new("cache"));
/// let photos: Vec<PathBuf> = vec!["a.jpg".into(), "b.jpg".into()];
/// let encoded = encoder.encode(photos.as_slice(), Some(&cache), &())?;
/// for (photo, embedding) in photos.iter().zip(encoded.embeddings) {
///     println!("{}: {} values", photo.display(), embedding?.len());
/// }
/// # Ok::<(), gpn_encode::EncodeError>(())
/// ```
pub struct ImageEncoder {
    session: Box<dyn Session>,
    preprocessing: Preprocessing,
    id: EncoderId,
    runtime: Runtime,
    path: PathBuf,
}

impl ImageEncoder {
    /// Reads a model, checks its settings and runs it once on a grey image.
    pub fn open(path: &Path, config: &EncoderConfig) -> Result<Self> {
        let model = OnnxModel::open(path)?;
        let config = config
            .clone()
            .or(EncoderConfig::beside(path)?)
            .or(EncoderConfig::of_metadata(path, &model.metadata)?);
        config.refuse_text_settings(path)?;
        let declared = image_input(&model)?;
        let preprocessing = Preprocessing::new(&config, declared, path)?;
        let output = model.output(config.output.as_deref())?;
        let runtime = config.runtime.unwrap_or_default();
        let shapes = InputShapes::Fixed(preprocessing.shape().to_vec());
        let library = config.onnxruntime_library.as_deref();
        let session = runtime::open(&model, &output, &shapes, runtime, library)?;
        let id = EncoderId {
            file: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            blake3: model.hash.to_hex().to_string(),
            dim: 0,
            output,
            normalise: config.normalise.unwrap_or(false),
            preprocessing: Preparation::Images(preprocessing.clone()),
        };
        let mut encoder = Self { session, preprocessing, id, runtime, path: path.to_owned() };
        let side = encoder.preprocessing.size;
        // invariant: the number of pixels is that of the sides.
        let grey = RgbImage::new(side, side, vec![127; (side * side * 3) as usize]).unwrap();
        let embedding = encoder.encode_one(&grey).map_err(|reason| EncodeError::unfit(path, reason))?;
        encoder.id.dim = embedding.len();
        Ok(encoder)
    }

    /// What tells this encoder from others.
    pub fn id(&self) -> &EncoderId {
        &self.id
    }

    /// Length of the embeddings.
    pub fn dim(&self) -> usize {
        self.id.dim
    }

    /// How photos are prepared.
    pub fn preprocessing(&self) -> &Preprocessing {
        &self.preprocessing
    }

    /// The model's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Encodes photos, spread over rayon's threads. A photo that cannot be read is an error in its place; the outer error is
    /// [`EncodeError::Interrupted`] alone. The embedding of a photo does not depend on the others.
    pub fn encode(
        &self,
        images: &(impl Images + ?Sized),
        cache: Option<&EmbeddingCache>,
        progress: &dyn Progress,
    ) -> Result<Encoded> {
        let cache = cached(cache, self.id.cache_key(self.runtime), self.id.dim);
        let hash = |index| named(images, index, images.read(index)).map(|content| hash_of(&content));
        let name = |index| images.name(index);
        through_cache(images.count(), cache, progress, name, hash, |missing, finished| {
            missing.par_iter().try_for_each_init(
                || Preparer::new(&self.preprocessing),
                |preparer, &index| {
                    finished.check()?;
                    let result = match preparer {
                        Ok(preparer) => self.encode_content(images, index, preparer),
                        Err(error) => {
                            Err(EncodeError::Sample { name: images.name(index), reason: error.to_string() })
                        }
                    };
                    finished.take(index, result)
                },
            )
        })
    }

    /// Encodes one decoded photo, without a cache. The error says what is wrong with it.
    pub fn encode_one(&self, image: &RgbImage) -> Result<Vec<f32>, String> {
        let mut preparer = Preparer::new(&self.preprocessing).map_err(|error| error.to_string())?;
        self.run(image, &mut preparer)
    }

    fn encode_content(
        &self,
        images: &(impl Images + ?Sized),
        index: usize,
        preparer: &mut Preparer,
    ) -> Result<(ContentHash, Vec<f32>)> {
        let name = images.name(index);
        // Read anew, and so is the hash: a file may have changed since it was looked up.
        let content = named(images, index, images.read(index))?;
        let hash = hash_of(&content);
        let image = match content {
            ImageContent::File(bytes) => decode(&bytes, &name)?,
            ImageContent::Pixels(image) => image,
        };
        let embedding = self
            .run(&image, preparer)
            .map_err(|reason| EncodeError::Sample { name: name.clone(), reason })?;
        if embedding.len() != self.id.dim {
            let reason = format!("its embedding has {} values, not {}", embedding.len(), self.id.dim);
            return Err(EncodeError::Sample { name, reason });
        }
        Ok((hash, embedding))
    }

    fn run(&self, image: &RgbImage, preparer: &mut Preparer) -> Result<Vec<f32>, String> {
        let input = preparer.input(image).map_err(|error| error.to_string())?;
        let output = self.session.run(vec![Tensor::F32(self.preprocessing.shape().to_vec(), input)])?;
        let mut embedding = pooled(output, self.preprocessing.layout, &self.id.output)?;
        if self.id.normalise {
            to_unit_length(&mut embedding);
        }
        check_finite(embedding)
    }
}

/// The lengths of the one input of an image encoder.
fn image_input(model: &OnnxModel) -> Result<[Option<usize>; 4]> {
    let unfit = |reason: String| Err(EncodeError::unfit(&model.path, reason));
    let [input] = model.inputs.as_slice() else {
        let names: Vec<&str> = model.inputs.iter().map(|input| input.name.as_str()).collect();
        let hint = if names.contains(&"input_ids") { "; a text encoder is opened by its folder" } else { "" };
        return unfit(format!(
            "an image encoder has one input, this model has {} ({}){hint}",
            names.len(),
            names.join(", ")
        ));
    };
    if input.element != FLOAT {
        return unfit(format!(
            "its input `{}` does not take 32-bit floats; export it with those",
            input.name
        ));
    }
    match input.shape.as_deref() {
        None => Ok([None; 4]),
        Some(&[batch, a, b, c]) => {
            if batch.is_some_and(|batch| batch != 1) {
                return unfit(format!(
                    "its input `{}` is {}: export it for batches of 1 or of any size",
                    input.name,
                    Input::shape_text(input)
                ));
            }
            Ok([batch, a, b, c])
        }
        Some(_) => unfit(format!(
            "its input `{}` is {}; images have four axes: [1, 3, height, width] or [1, height, width, 3]",
            input.name,
            Input::shape_text(input)
        )),
    }
}

/// One embedding from what the model gives for one photo: feature maps are averaged over space.
fn pooled(output: Output, layout: Layout, name: &str) -> Result<Vec<f32>, String> {
    let Output { shape, values } = output;
    let mean = |sum: f64, count: usize| (sum / count as f64) as f32;
    match (shape.as_slice(), layout) {
        ([1, dim] | [dim], _) if *dim > 0 => Ok(values),
        (&[1, channels, height, width], Layout::Nchw) if channels * height * width > 0 => {
            let area = height * width;
            let sum = |plane: &[f32]| plane.iter().map(|&value| f64::from(value)).sum();
            Ok(values.chunks_exact(area).map(|plane| mean(sum(plane), area)).collect())
        }
        (&[1, height, width, channels], Layout::Nhwc) if channels * height * width > 0 => {
            let mut sums = vec![0.0; channels];
            for pixel in values.chunks_exact(channels) {
                for (sum, &value) in sums.iter_mut().zip(pixel) {
                    *sum += f64::from(value);
                }
            }
            Ok(sums.into_iter().map(|sum| mean(sum, height * width)).collect())
        }
        _ => Err(format!(
            "its output `{name}` has the shape {shape:?}; an embedding [1, D] or a feature map of four axes is needed"
        )),
    }
}

/// What a cache tells photos apart by.
fn hash_of(content: &ImageContent<'_>) -> ContentHash {
    match content {
        ImageContent::File(bytes) => blake3::hash(bytes).into(),
        ImageContent::Pixels(image) => {
            // Pixels are no file: their size comes first, under a key of their own.
            let mut hasher = blake3::Hasher::new_derive_key("gpn-encode 2026 decoded pixels");
            hasher.update(&image.width().to_le_bytes()).update(&image.height().to_le_bytes());
            hasher.update(image.pixels());
            hasher.finalize().into()
        }
    }
}

/// An error of reading, with the name of the photo.
fn named<T>(images: &(impl Images + ?Sized), index: usize, read: Result<T>) -> Result<T> {
    read.map_err(|error| match error {
        EncodeError::Data(DataError::TooLarge { size, limit, .. }) => EncodeError::Sample {
            name: images.name(index),
            reason: format!("{size} bytes are too many for an image; the limit is {limit}"),
        },
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feature_maps_are_averaged_over_space() {
        let output = |shape: &[usize]| Output { shape: shape.to_vec(), values: vec![1.0, 2.0, 3.0, 4.0] };
        assert_eq!(pooled(output(&[1, 4]), Layout::Nchw, "x").unwrap(), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(pooled(output(&[1, 2, 1, 2]), Layout::Nchw, "x").unwrap(), [1.5, 3.5]);
        assert_eq!(pooled(output(&[1, 1, 2, 2]), Layout::Nhwc, "x").unwrap(), [2.0, 3.0]);
        let message = pooled(output(&[1, 2, 2]), Layout::Nchw, "x").unwrap_err();
        assert!(message.contains("output `x` has the shape [1, 2, 2]"), "{message}");
        assert!(pooled(output(&[2, 2]), Layout::Nchw, "x").is_err());
    }
}
