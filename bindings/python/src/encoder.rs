//! `gpn.Encoder`: a frozen encoder of photos or texts, run without Python.

use std::borrow::Cow;
use std::path::PathBuf;

use gpn::StopHandle;
use gpn::encode::{
    EmbeddingCache, EncodeError, EncoderConfig, ImageContent, ImageEncoder, Images, TextEncoder,
};
use numpy::{PyArray1, PyArray2, PyArrayMethods as _};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::convert::{from_py, serialised};
use crate::errors::bad_input;
use crate::samples::{Picture, pictures};
use crate::watch::{Listener, unlocked, watched};

/// A frozen encoder: an ONNX file for photos, or the folder of a sentence encoder for texts. It goes where an encoder is asked for:
/// `GraphFewShotClassifier(taxonomy, encoder=gpn.Encoder("lite0.onnx"))`.
///
/// `cache` is a folder in which embeddings are kept. `settings` say what the model's files do not: `size`, `mean`, `std`, `range`, `resize`,
/// `pooling`, ...
#[pyclass(name = "Encoder", module = "gpn", frozen)]
pub(crate) struct PyEncoder {
    kind: Kind,
    path: PathBuf,
    config: EncoderConfig,
    cache: Option<EmbeddingCache>,
}

enum Kind {
    Photos(Box<ImageEncoder>),
    Texts(Box<TextEncoder>),
}

impl Images for Picture {
    fn count(&self) -> usize {
        1
    }

    fn name(&self, _index: usize) -> String {
        self.name.clone()
    }

    fn read(&self, _index: usize) -> Result<ImageContent<'_>, EncodeError> {
        match &self.bytes {
            Some(bytes) => Ok(ImageContent::File(Cow::Borrowed(bytes))),
            None => std::slice::from_ref(&self.path).read(0),
        }
    }
}

/// Several pictures.
struct Pictures(Vec<Picture>);

impl Images for Pictures {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn name(&self, index: usize) -> String {
        self.0[index].name(0)
    }

    fn read(&self, index: usize) -> Result<ImageContent<'_>, EncodeError> {
        self.0[index].read(0)
    }
}

#[pymethods]
impl PyEncoder {
    #[new]
    #[pyo3(signature = (path, *, cache = None, settings = None))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        cache: Option<PathBuf>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let config: EncoderConfig = match settings {
            Some(settings) => serde_json::from_value(from_py(settings)?)
                .map_err(|error| bad_input(format!("settings: {}", error.to_string().replace('`', ""))))?,
            None => EncoderConfig::default(),
        };
        let kind = unlocked(py, || {
            Ok(if TextEncoder::is_at(&path) {
                Kind::Texts(Box::new(TextEncoder::open(&path, &config)?))
            } else {
                Kind::Photos(Box::new(ImageEncoder::open(&path, &config)?))
            })
        })?;
        Ok(Self { kind, path, config, cache: cache.map(|folder| EmbeddingCache::new(&folder)) })
    }

    /// The embeddings of photos (paths, bytes of image files, arrays of 8 bits, pictures of Pillow) or of texts, `(samples, dim)`.
    #[pyo3(signature = (samples, *, callback = None, progress = false))]
    fn encode<'py>(
        &self,
        py: Python<'py>,
        samples: &Bound<'py, PyAny>,
        callback: Option<Py<PyAny>>,
        progress: bool,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let listener = Listener::new(py, callback, progress)?;
        let is_one = samples.is_instance_of::<PyString>();
        let cache = self.cache.as_ref();
        let stop = StopHandle::default();
        let rows: Vec<Vec<f32>> = match &self.kind {
            Kind::Texts(encoder) => {
                let texts: Vec<String> = if is_one { vec![samples.extract()?] } else { samples.extract()? };
                watched(py, &listener, &stop, |watch| {
                    let goes_on = |_: usize, _: usize| going_on(watch);
                    Ok(encoder.encode(&texts, cache, &goes_on)?.all()?)
                })?
            }
            Kind::Photos(encoder) => {
                let photos = Pictures(pictures(samples)?);
                watched(py, &listener, &stop, |watch| {
                    let goes_on = |_: usize, _: usize| going_on(watch);
                    Ok(encoder.encode(&photos, cache, &goes_on)?.all()?)
                })?
            }
        };
        let shape = [rows.len(), self.dim()];
        PyArray1::from_vec(py, rows.concat()).reshape(shape)
    }

    /// Numbers of an embedding.
    #[getter]
    fn dim(&self) -> usize {
        match &self.kind {
            Kind::Texts(encoder) => encoder.id().dim,
            Kind::Photos(encoder) => encoder.id().dim,
        }
    }

    /// Whether it encodes photos; otherwise it encodes texts.
    #[getter]
    fn takes_images(&self) -> bool {
        matches!(self.kind, Kind::Photos(_))
    }

    fn __repr__(&self) -> String {
        format!("Encoder({}, {} numbers)", self.path.display(), self.dim())
    }

    #[expect(clippy::type_complexity, reason = "what pickle asks for: a class and its arguments")]
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyAny>, Option<PathBuf>, Bound<'py, PyAny>))> {
        let (py, encoder) = (slf.py(), slf.get());
        let path = encoder.path.clone().into_pyobject(py)?.into_any();
        let cache = encoder.cache.as_ref().map(|cache| cache.folder().to_owned());
        let class = slf.get_type();
        Ok((class.getattr("_open")?, (path, cache, serialised(py, &encoder.config)?)))
    }

    #[staticmethod]
    fn _open(
        py: Python<'_>,
        path: PathBuf,
        cache: Option<PathBuf>,
        settings: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        Self::new(py, path, cache, Some(settings))
    }
}

fn going_on(watch: &gpn::Watch<'_>) -> std::ops::ControlFlow<()> {
    if watch.is_stopped() { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) }
}
