//! Samples from outside a benchmark: image files, uploaded images, rows of embeddings.

use std::fs;
use std::path::{Path, PathBuf};

use gpn_data::format::archive::Archive;
use gpn_data::format::image::{ForeignFormat, RgbImage, is_image_name};
use gpn_data::loader::{Inputs, View};
use gpn_data::rng::{Purpose, Stream};
use gpn_data::source::{is_embeddings_name, read_embeddings};
use gpn_data::transform::{EvalTransform, ImageView};
use gpn_data::{DataError, decode};
use gpn_model::InputShape;

use crate::error::{Error, Result};

/// Larger files are refused before they are read.
const MAX_IMAGE_BYTES: u64 = 1 << 30;

/// One sample to learn from or to classify.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// What messages and results call it: a file, or a row of one.
    pub name: String,
    content: Content,
}

#[derive(Clone, Debug, PartialEq)]
enum Content {
    File(PathBuf),
    Encoded(Vec<u8>),
    Pixels(RgbImage),
    Text(String),
    Embedding(Vec<f32>),
    Embedded(Vec<f32>),
}

/// What a sample is, for an encoder.
pub(crate) enum Raw<'a> {
    File(&'a Path),
    Encoded(&'a [u8]),
    Pixels(&'a RgbImage),
    Text(&'a str),
    Embedding(&'a [f32]),
}

impl Sample {
    /// An image file (JPEG, PNG, WebP, BMP, GIF), read when it is needed.
    pub fn image_file(path: &Path) -> Self {
        Self { name: path.display().to_string(), content: Content::File(path.to_owned()) }
    }

    /// The bytes of an image file.
    pub fn image(name: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self { name: name.into(), content: Content::Encoded(bytes) }
    }

    /// A decoded image.
    pub fn pixels(name: impl Into<String>, image: RgbImage) -> Self {
        Self { name: name.into(), content: Content::Pixels(image) }
    }

    /// A text, for a model that was fitted to texts.
    pub fn text(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), content: Content::Text(text.into()) }
    }

    pub(crate) fn raw(&self) -> Raw<'_> {
        match &self.content {
            Content::File(path) => Raw::File(path),
            Content::Encoded(bytes) => Raw::Encoded(bytes),
            Content::Pixels(image) => Raw::Pixels(image),
            Content::Text(text) => Raw::Text(text),
            Content::Embedding(values) | Content::Embedded(values) => Raw::Embedding(values),
        }
    }

    /// An embedding, for a model that was trained on embeddings.
    pub fn embedding(name: impl Into<String>, values: Vec<f32>) -> Self {
        Self { name: name.into(), content: Content::Embedding(values) }
    }

    /// What [`Classifier::embed`](crate::Classifier::embed) made of a sample: it is taken as it is, for any model.
    pub fn embedded(name: impl Into<String>, values: Vec<f32>) -> Self {
        Self { name: name.into(), content: Content::Embedded(values) }
    }

    /// The embedding of a sample that has been embedded before.
    pub(crate) fn given_embedding(&self) -> Option<&[f32]> {
        match &self.content {
            Content::Embedded(values) => Some(values),
            _ => None,
        }
    }

    /// The samples at a path, for a model that takes `input`: an image file, a table of embeddings (`.npy`, `.npz`,
    /// `.parquet`), or a folder with all such files in it and below, in natural order.
    pub fn at(path: &Path, input: InputShape) -> Result<Vec<Self>> {
        let malformed = |reason: String| Error::input(path.display(), reason);
        if path.is_dir() {
            let files = Archive::open(path)?;
            let wanted = match input {
                InputShape::Image { .. } => is_photo_name,
                InputShape::Embedding { .. } => is_embeddings_name,
            };
            let names: Vec<&String> = files.names().iter().filter(|name| wanted(name)).collect();
            if names.is_empty() {
                return Err(malformed(format!("there are no {} in it", plural(input))));
            }
            let samples: Vec<Vec<Self>> =
                names.into_iter().map(|name| Self::at(&path.join(name), input)).collect::<Result<_>>()?;
            return Ok(samples.concat());
        }
        let name = path.to_string_lossy();
        match input {
            InputShape::Image { .. } if is_embeddings_name(&name) => {
                Err(malformed("it is a table of embeddings; this model takes images".into()))
            }
            InputShape::Image { .. } => Ok(vec![Self::image_file(path)]),
            InputShape::Embedding { len } if is_image_name(&name) => Err(malformed(format!(
                "it is an image; this model takes embeddings of {len} numbers (.npy, .npz or .parquet)"
            ))),
            InputShape::Embedding { .. } => {
                let rows = read_embeddings(path)?;
                Ok(rows
                    .values
                    .chunks_exact(rows.dim.max(1))
                    .enumerate()
                    .map(|(row, values)| Self::embedding(format!("{name}: row {row}"), values.to_vec()))
                    .collect())
            }
        }
    }

    /// The texts of a file, one a line; empty lines are left out.
    pub fn texts_at(path: &Path) -> Result<Vec<Self>> {
        let io = |source| Error::Io { action: "read", path: path.to_owned(), source };
        let text = fs::read_to_string(path).map_err(io)?;
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let samples: Vec<Self> = lines
            .map(|(at, line)| Self::text(format!("{}: line {}", path.display(), at + 1), line.trim()))
            .collect();
        if samples.is_empty() {
            return Err(Error::input(path.display(), "there are no texts in it; write one a line"));
        }
        Ok(samples)
    }
}

fn plural(input: InputShape) -> &'static str {
    match input {
        InputShape::Image { .. } => "images",
        InputShape::Embedding { .. } => "tables of embeddings (.npy, .npz or .parquet)",
    }
}

/// Turns samples into inputs of a network, exactly as a benchmark and its evaluation do: images are brought to the size of
/// the benchmark's store, then go through the test transform. One for each thread.
pub(crate) struct Preparation {
    input: InputShape,
    /// To the size of the store, with its pixels, and from there to the network's input.
    images: Option<(EvalTransform, Vec<u8>, Inputs)>,
    stored_size: u32,
}

impl Preparation {
    pub(crate) fn new(input: InputShape, stored_size: Option<u32>) -> Result<Self> {
        let stored_size = stored_size.unwrap_or(1);
        let images = match input {
            InputShape::Embedding { .. } => None,
            InputShape::Image { height, .. } => {
                let square = EvalTransform::whole(stored_size).map_err(DataError::from)?;
                let pixels = vec![0; (stored_size * stored_size * 3) as usize];
                Some((square, pixels, Inputs::new(height as u32, &View::Eval)?))
            }
        };
        Ok(Self { input, images, stored_size })
    }

    /// The input of one sample.
    pub(crate) fn input(&mut self, sample: &Sample) -> Result<Vec<f32>> {
        let wrong = |reason: String| Error::input(&sample.name, reason);
        match (&sample.content, &mut self.images) {
            (Content::Embedding(values), None) if values.len() != self.input.len() => Err(wrong(format!(
                "the embedding has {} numbers; this model takes {}",
                values.len(),
                self.input.len()
            ))),
            (Content::Embedding(values), None) => match values.iter().position(|value| !value.is_finite()) {
                Some(column) => {
                    Err(wrong(format!("column {column} is {}; embeddings must be finite", values[column])))
                }
                None => Ok(values.clone()),
            },
            (Content::Embedded(_), _) => Err(wrong("it is embedded already".into())),
            (Content::Embedding(_), Some(_)) => {
                Err(wrong("it is an embedding; this model takes images".into()))
            }
            (Content::Text(_), _) => Err(wrong("it is a text; give the model its text encoder".into())),
            (_, None) => Err(wrong(format!(
                "it is an image; this model takes embeddings of {} numbers",
                self.input.len()
            ))),
            (Content::File(path), Some(_)) => {
                let bytes = read_image_file(path)?;
                self.decoded(&bytes, &sample.name)
            }
            (Content::Encoded(bytes), Some(_)) => self.decoded(bytes, &sample.name),
            (Content::Pixels(image), Some(_)) => self.prepared(image, &sample.name),
        }
    }

    fn decoded(&mut self, bytes: &[u8], name: &str) -> Result<Vec<f32>> {
        self.prepared(&decode(bytes, name)?, name)
    }

    fn prepared(&mut self, image: &RgbImage, name: &str) -> Result<Vec<f32>> {
        let unfit = |error: gpn_data::transform::TransformError| DataError::BrokenImage {
            file: name.to_owned(),
            reason: error.to_string(),
        };
        // invariant: `input` asks for pixels only where the model takes images.
        let (square, pixels, inputs) = self.images.as_mut().unwrap();
        let view = ImageView::new(image.width(), image.height(), image.pixels()).map_err(unfit)?;
        square.apply(view, pixels).map_err(unfit)?;
        let stored = ImageView::new(self.stored_size, self.stored_size, pixels).map_err(unfit)?;
        let mut input = vec![0.0; self.input.len()];
        // The test transform draws nothing.
        inputs.image(stored, &mut Stream::new(0, Purpose::Memory, 0), &mut input)?;
        Ok(input)
    }
}

fn read_image_file(path: &Path) -> Result<Vec<u8>> {
    let io = |source| Error::Io { action: "read", path: path.to_owned(), source };
    let metadata = fs::metadata(path).map_err(io)?;
    if !metadata.is_file() || metadata.len() > MAX_IMAGE_BYTES {
        let reason = if metadata.is_file() { "it is too large for an image" } else { "it is not a file" };
        return Err(Error::input(path.display(), reason));
    }
    fs::read(path).map_err(io)
}

/// Whether a file bears the name of a photo, also of a kind that is not read: such a photo is named in a message, not passed over.
pub(crate) fn is_photo_name(name: &str) -> bool {
    use ForeignFormat::{Avif, Heic, Jpeg2000, JpegXl, Raw, Tiff};
    let is_photo = |format| matches!(format, Heic | Avif | Tiff | Raw | JpegXl | Jpeg2000);
    is_image_name(name) || ForeignFormat::by_name(name).is_some_and(is_photo)
}
