//! The frozen encoder beside a model: what turns photos and texts into the embeddings that the model was fitted to.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use gpn_encode::{
    EmbeddingCache, EncodeError, EncoderConfig, EncoderId, ImageContent, ImageEncoder, Images, TextEncoder,
};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::sample::{Raw, Sample};
use crate::watch::{Event, Watch};

/// A frozen encoder of photos or of texts, with the place where embeddings are kept.
pub struct SampleEncoder {
    kind: Kind,
    cache: Option<EmbeddingCache>,
}

enum Kind {
    Images(Box<ImageEncoder>),
    Texts(Box<TextEncoder>),
}

/// What a model file says about its encoder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct EncoderRecord {
    pub(crate) id: EncoderId,
    /// Where it was when the model was fitted.
    pub(crate) path: PathBuf,
    /// How samples were prepared for it.
    pub(crate) config: EncoderConfig,
}

impl SampleEncoder {
    /// Opens an encoder: an ONNX file for photos, the folder of a sentence encoder for texts.
    pub fn open(path: &Path, config: &EncoderConfig, cache: Option<EmbeddingCache>) -> Result<Self> {
        let kind = if TextEncoder::is_at(path) {
            Kind::Texts(Box::new(TextEncoder::open(path, config)?))
        } else {
            Kind::Images(Box::new(ImageEncoder::open(path, config)?))
        };
        Ok(Self { kind, cache })
    }

    /// What tells it from other encoders.
    pub fn id(&self) -> &EncoderId {
        match &self.kind {
            Kind::Images(encoder) => encoder.id(),
            Kind::Texts(encoder) => encoder.id(),
        }
    }

    /// Whether it encodes photos; otherwise it encodes texts.
    pub fn takes_images(&self) -> bool {
        matches!(self.kind, Kind::Images(_))
    }

    pub(crate) fn record(&self, config: &EncoderConfig) -> EncoderRecord {
        let path = match &self.kind {
            Kind::Images(encoder) => encoder.path(),
            Kind::Texts(encoder) => encoder.path(),
        };
        let config = EncoderConfig { onnxruntime_library: None, runtime: None, ..config.clone() };
        EncoderRecord { id: self.id().clone(), path: path.to_owned(), config }
    }

    /// Encodes photos, read when they are needed.
    pub(crate) fn encode_images(
        &self,
        images: &(impl Images + ?Sized),
        watch: &Watch<'_>,
    ) -> Result<Vec<Result<Vec<f32>>>> {
        let Kind::Images(encoder) = &self.kind else {
            return Err(Error::input(&self.id().file, "it encodes texts; these are photos"));
        };
        let progress = |done, total| watch.tell(&Event::Encoded { done, total });
        let encoded = encoder.encode(images, self.cache.as_ref(), &progress)?;
        encoded.notes.iter().for_each(|note| watch.note(note));
        Ok(encoded.embeddings.into_iter().map(|embedding| Ok(embedding?)).collect())
    }

    /// Encodes texts.
    pub(crate) fn encode_texts(&self, texts: &[String], watch: &Watch<'_>) -> Result<Vec<Result<Vec<f32>>>> {
        let Kind::Texts(encoder) = &self.kind else {
            return Err(Error::input(&self.id().file, "it encodes photos; these are texts"));
        };
        let progress = |done, total| watch.tell(&Event::Encoded { done, total });
        let encoded = encoder.encode(texts, self.cache.as_ref(), &progress)?;
        encoded.notes.iter().for_each(|note| watch.note(note));
        Ok(encoded.embeddings.into_iter().map(|embedding| Ok(embedding?)).collect())
    }

    /// Encodes samples of any kind; embeddings stay as they are. A sample that cannot be read is an error in its place.
    pub(crate) fn encode(&self, samples: &[&Sample], watch: &Watch<'_>) -> Result<Vec<Result<Vec<f32>>>> {
        let raw: Vec<usize> =
            (0..samples.len()).filter(|&at| !matches!(samples[at].raw(), Raw::Embedding(_))).collect();
        let encoded = if self.takes_images() {
            self.encode_images(&Chosen { samples, places: &raw }, watch)?
        } else {
            let text = |&at: &usize| match samples[at].raw() {
                Raw::Text(text) => Ok(text.to_owned()),
                _ => Err(Error::input(&samples[at].name, "it is no text; the model's encoder takes texts")),
            };
            let texts: Vec<Result<String>> = raw.iter().map(text).collect();
            let known: Vec<String> = texts.iter().flatten().cloned().collect();
            let mut encoded = self.encode_texts(&known, watch)?.into_iter();
            // invariant: there is one result for each text.
            texts.into_iter().map(|text| text.and_then(|_| encoded.next().unwrap())).collect()
        };
        let mut encoded = encoded.into_iter();
        let one = |sample: &&Sample| match sample.raw() {
            Raw::Embedding(values) => self.checked(&sample.name, values),
            // invariant: there is one result for each sample that is no embedding.
            _ => encoded.next().unwrap(),
        };
        Ok(samples.iter().map(one).collect())
    }

    /// An embedding that was given instead of a photo or text.
    fn checked(&self, name: &str, values: &[f32]) -> Result<Vec<f32>> {
        let (dim, found) = (self.id().dim, values.len());
        if found != dim {
            let reason = format!("the embedding has {found} numbers; the model's encoder gives {dim}");
            return Err(Error::input(name, reason));
        }
        match values.iter().position(|value| !value.is_finite()) {
            None => Ok(values.to_vec()),
            Some(at) => {
                let reason = format!("column {at} is {}; embeddings must be finite", values[at]);
                Err(Error::input(name, reason))
            }
        }
    }
}

/// Some of the samples, as photos.
struct Chosen<'a> {
    samples: &'a [&'a Sample],
    places: &'a [usize],
}

impl Images for Chosen<'_> {
    fn count(&self) -> usize {
        self.places.len()
    }

    fn name(&self, index: usize) -> String {
        self.samples[self.places[index]].name.clone()
    }

    fn read(&self, index: usize) -> Result<ImageContent<'_>, EncodeError> {
        let sample = self.samples[self.places[index]];
        let failed = |reason: String| EncodeError::Sample { name: sample.name.clone(), reason };
        match sample.raw() {
            Raw::File(path) => {
                let paths = [path.to_owned()];
                match paths[..].read(0)? {
                    ImageContent::File(bytes) => Ok(ImageContent::File(Cow::Owned(bytes.into_owned()))),
                    ImageContent::Pixels(image) => Ok(ImageContent::Pixels(image)),
                }
            }
            Raw::Encoded(bytes) => Ok(ImageContent::File(Cow::Borrowed(bytes))),
            Raw::Pixels(image) => Ok(ImageContent::Pixels(image.clone())),
            Raw::Text(_) => Err(failed("it is a text; the model's encoder takes photos".into())),
            Raw::Embedding(_) => Err(failed("it is an embedding already".into())),
        }
    }
}
