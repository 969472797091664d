//! Samples from outside a benchmark: image files, uploaded images, rows of embeddings.

use std::fs;
use std::path::{Path, PathBuf};

use gpn_data::format::archive::Archive;
use gpn_data::format::image::is_image_name;
use gpn_data::loader::{Inputs, View};
use gpn_data::rng::{Purpose, Stream};
use gpn_data::source::{is_embeddings_name, read_embeddings};
use gpn_data::transform::{EvalTransform, ImageView};
use gpn_data::{DataError, decode};
use gpn_model::InputShape;

use crate::error::TrainError;

/// Larger files are no pictures.
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
    Embedding(Vec<f32>),
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

    /// An embedding, for a model that was trained on embeddings.
    pub fn embedding(name: impl Into<String>, values: Vec<f32>) -> Self {
        Self { name: name.into(), content: Content::Embedding(values) }
    }

    /// The samples at a path, for a model that takes `input`: an image file, a table of embeddings (`.npy`, `.npz`,
    /// `.parquet`), or a folder with all such files in it and below, in natural order.
    pub fn at(path: &Path, input: InputShape) -> Result<Vec<Self>, TrainError> {
        let malformed = |reason: String| TrainError::Malformed { path: path.to_owned(), reason };
        if path.is_dir() {
            let files = Archive::open(path)?;
            let wanted = match input {
                InputShape::Image { .. } => is_image_name,
                InputShape::Embedding { .. } => is_embeddings_name,
            };
            let names: Vec<&String> = files.names().iter().filter(|name| wanted(name)).collect();
            if names.is_empty() {
                return Err(malformed(format!("there are no {} in it", plural(input))));
            }
            let samples: Vec<Vec<Self>> =
                names.into_iter().map(|name| Self::at(&path.join(name), input)).collect::<Result<_, _>>()?;
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
    pub(crate) fn new(input: InputShape, stored_size: Option<u32>) -> Result<Self, TrainError> {
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
    pub(crate) fn input(&mut self, sample: &Sample) -> Result<Vec<f32>, TrainError> {
        let wrong = |reason: String| TrainError::Malformed { path: PathBuf::from(&sample.name), reason };
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
            (Content::Embedding(_), Some(_)) => {
                Err(wrong("it is an embedding; this model takes images".into()))
            }
            (_, None) => Err(wrong(format!(
                "it is an image; this model takes embeddings of {} numbers",
                self.input.len()
            ))),
            (Content::File(path), Some(_)) => {
                let bytes = read_image_file(path)?;
                self.decoded(&bytes, &sample.name)
            }
            (Content::Encoded(bytes), Some(_)) => self.decoded(bytes, &sample.name),
        }
    }

    fn decoded(&mut self, bytes: &[u8], name: &str) -> Result<Vec<f32>, TrainError> {
        let unfit = |error: gpn_data::transform::TransformError| DataError::BrokenImage {
            file: name.to_owned(),
            reason: error.to_string(),
        };
        let image = decode(bytes, name)?;
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

fn read_image_file(path: &Path) -> Result<Vec<u8>, TrainError> {
    let io = |source| TrainError::Io { action: "read", path: path.to_owned(), source };
    let metadata = fs::metadata(path).map_err(io)?;
    if !metadata.is_file() || metadata.len() > MAX_IMAGE_BYTES {
        let reason = if metadata.is_file() { "it is too large for an image" } else { "it is not a file" };
        return Err(TrainError::Malformed { path: path.to_owned(), reason: reason.into() });
    }
    fs::read(path).map_err(io)
}
