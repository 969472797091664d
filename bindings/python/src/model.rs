//! `gpn.Model`: a trained model in use.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gpn::{
    Among, ClassEntry, ClassKind, Classifier, Device, IfTaught, InputShape, NewClass, Parents,
    PredictRequest, Sample, StopHandle,
};
use numpy::{PyArray1, PyArray2, PyArrayMethods as _, PyUntypedArrayMethods as _};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyType};

use crate::convert::{Columns, objects, serialised, to_py, word};
use crate::errors::{Fault, bad_input};
use crate::from_python::named;
use crate::prediction::{PyPrediction, PyPredictions};
use crate::samples::{rows, samples};
use crate::taxonomy::PyTaxonomy;
use crate::watch::{Listener, unlocked, watched};

/// Samples above which a call looks for interrupts while it works.
const LONG: usize = 2_000;

/// A trained model: it is taught classes and tells samples apart. Threads may share one.
///
/// Samples are an array or tensor of embeddings (one row or many), images of 8 bits `(N, H, W, 3)`, paths of files or folders, bytes
/// of image files, pictures of Pillow, or a list of such.
#[pyclass(name = "Model", module = "gpn", frozen)]
pub(crate) struct PyModel {
    pub(crate) classifier: Arc<Classifier>,
    /// How often classes have changed.
    revision: AtomicU64,
}

impl PyModel {
    pub(crate) fn of(classifier: Classifier) -> Self {
        Self { classifier: Arc::new(classifier), revision: AtomicU64::new(0) }
    }
}

pub(crate) fn device(name: &str) -> PyResult<Device> {
    let kind = name.parse().map_err(Fault::from)?;
    Ok(Device::open(kind).map_err(Fault::from)?)
}

/// The classes to choose from.
fn chosen(
    among: Option<Vec<Bound<'_, PyAny>>>,
    below: Option<&Bound<'_, PyAny>>,
    taught: bool,
) -> PyResult<Among> {
    match (among, below, taught) {
        (None, None, false) => Ok(Among::All),
        (None, None, true) => Ok(Among::Taught),
        (None, Some(class), false) => Ok(Among::Below(named(class)?)),
        (Some(listed), None, false) => Ok(Among::Listed(listed.iter().map(named).collect::<PyResult<_>>()?)),
        _ => Err(bad_input("give one of `among`, `below` and `taught`, not several")),
    }
}

/// The parents of a class to be taught: None, "unknown", one class or several.
fn parents(given: Option<&Bound<'_, PyAny>>) -> PyResult<Parents> {
    let Some(given) = given.filter(|given| !given.is_none()) else { return Ok(Parents::FromGraph) };
    if given.is_instance_of::<PyString>() {
        return Ok(match named(given)?.as_str() {
            "unknown" => Parents::Unknown,
            one => Parents::Named(vec![one.to_owned()]),
        });
    }
    Ok(Parents::Named(given.try_iter()?.map(|parent| named(&parent?)).collect::<PyResult<_>>()?))
}

#[pymethods]
impl PyModel {
    /// Opens a model file, or that of a run directory.
    #[classmethod]
    #[pyo3(signature = (path, *, device = "cpu"))]
    fn open(_class: &Bound<'_, PyType>, py: Python<'_>, path: PathBuf, device: &str) -> PyResult<Self> {
        let device = self::device(device)?;
        unlocked(py, || Classifier::open(&path, &device)).map(Self::of)
    }

    /// Opens a model from the bytes of its file.
    #[classmethod]
    #[pyo3(signature = (data, *, name = "the model", device = "cpu"))]
    fn from_bytes(
        _class: &Bound<'_, PyType>,
        py: Python<'_>,
        data: &[u8],
        name: &str,
        device: &str,
    ) -> PyResult<Self> {
        let device = self::device(device)?;
        unlocked(py, || Classifier::from_bytes(data, name, &device)).map(Self::of)
    }

    /// The bytes of the model's file, with all it has been taught.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = unlocked(py, || self.classifier.to_bytes())?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Writes the model with all it has been taught, whole or not at all.
    #[pyo3(signature = (path, *, replace = false))]
    fn save(&self, py: Python<'_>, path: PathBuf, replace: bool) -> PyResult<()> {
        unlocked(py, || {
            gpn::output::may_write(&path, replace)?;
            self.classifier.save(&path)
        })
    }

    /// Teaches a class, without training. `parents` are classes it stands below; by default its place is that of the class graph, or,
    /// where the graph does not have it, by the nearest classes, which "unknown" asks for. `if_taught` is "refuse", "add" or
    /// "replace"; the samples of a catalogue that was fitted count as taught. `taxonomy` says where a class stands that the model's own
    /// graph does not have. Returns a table of one row: id, name, place, samples, repeated.
    #[pyo3(signature = (class_, samples, *, parents = None, if_taught = "refuse", taxonomy = None))]
    fn teach<'py>(
        &self,
        py: Python<'py>,
        class_: &Bound<'py, PyAny>,
        samples: &Bound<'py, PyAny>,
        parents: Option<&Bound<'py, PyAny>>,
        if_taught: &str,
        taxonomy: Option<&Bound<'py, PyTaxonomy>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let new = NewClass {
            class: named(class_)?,
            parents: self::parents(parents)?,
            samples: self::samples(samples, self.classifier.input())?,
        };
        self.teach_these(py, &[new], if_taught, taxonomy)
    }

    /// Teaches many classes at once, all or none: a dict of samples by class. `parents` is a dict of parents by class. Returns a
    /// table: id, name, place, samples, repeated.
    #[pyo3(signature = (classes, *, parents = None, if_taught = "refuse", taxonomy = None))]
    fn teach_all<'py>(
        &self,
        py: Python<'py>,
        classes: &Bound<'py, PyDict>,
        parents: Option<&Bound<'py, PyDict>>,
        if_taught: &str,
        taxonomy: Option<&Bound<'py, PyTaxonomy>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let mut new = Vec::with_capacity(classes.len());
        for (class, given) in classes.iter() {
            let above = parents.map(|parents| parents.get_item(&class)).transpose()?.flatten();
            new.push(NewClass {
                class: named(&class)?,
                parents: self::parents(above.as_ref())?,
                samples: self::samples(&given, self.classifier.input())?,
            });
        }
        self.teach_these(py, &new, if_taught, taxonomy)
    }

    /// Forgets the samples of a class: a taught one, or any class of a fitted catalogue.
    fn forget(&self, py: Python<'_>, class_: &Bound<'_, PyAny>) -> PyResult<()> {
        let class = named(class_)?;
        unlocked(py, || self.classifier.forget(&class))?;
        self.revision.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Moves a class below others; what is below it moves along.
    #[pyo3(name = "move")]
    fn move_class(
        &self,
        py: Python<'_>,
        class_: &Bound<'_, PyAny>,
        parents: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let class = named(class_)?;
        let Parents::Named(parents) = self::parents(Some(parents))? else {
            return Err(bad_input("parents: name at least one class"));
        };
        unlocked(py, || self.classifier.move_class(&class, &parents))?;
        self.revision.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Gives a class another name for people; its id stays.
    fn rename(&self, py: Python<'_>, class_: &Bound<'_, PyAny>, name: &str) -> PyResult<()> {
        let class = named(class_)?;
        unlocked(py, || self.classifier.rename(&class, name))?;
        self.revision.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// The likeliest classes of samples. With a `confidence`, the deepest class that is as sure is told besides. The answer is one of all classes, of those `among` some, `below` one, or `taught`.
    #[pyo3(signature = (samples, *, among = None, below = None, taught = false, top = 5, confidence = None, explain = false, lambda_ = None))]
    #[expect(clippy::too_many_arguments, reason = "each is a word that a caller may say")]
    fn predict(
        &self,
        py: Python<'_>,
        samples: &Bound<'_, PyAny>,
        among: Option<Vec<Bound<'_, PyAny>>>,
        below: Option<&Bound<'_, PyAny>>,
        taught: bool,
        top: usize,
        confidence: Option<f64>,
        explain: bool,
        lambda_: Option<f32>,
    ) -> PyResult<PyPredictions> {
        let among = chosen(among, below, taught)?;
        let request =
            PredictRequest { among, top, confidence, explain, lambda: lambda_, ..PredictRequest::default() };
        let samples = self::samples(samples, self.classifier.input())?;
        let work = |watch: &gpn::Watch<'_>| {
            self.classifier.predict(&samples, &request, watch)?.into_iter().collect::<gpn::Result<Vec<_>>>()
        };
        let items = if samples.len() > LONG {
            watched(py, &Listener::default(), &StopHandle::default(), work)?
        } else {
            unlocked(py, || work(&gpn::Watch::default()))?
        };
        Ok(PyPredictions { items })
    }

    /// What a sample is, and what shaped the prototype of that class.
    #[pyo3(signature = (sample, *, among = None, below = None, taught = false, top = 5, lambda_ = None))]
    #[expect(clippy::too_many_arguments, reason = "each is a word that a caller may say")]
    fn explain(
        &self,
        py: Python<'_>,
        sample: &Bound<'_, PyAny>,
        among: Option<Vec<Bound<'_, PyAny>>>,
        below: Option<&Bound<'_, PyAny>>,
        taught: bool,
        top: usize,
        lambda_: Option<f32>,
    ) -> PyResult<PyPrediction> {
        let mut found = self.predict(py, sample, among, below, taught, top, None, true, lambda_)?.items;
        if found.len() != 1 {
            return Err(bad_input(format!("explain takes one sample, not {}", found.len())));
        }
        Ok(PyPrediction { inner: found.remove(0) })
    }

    /// Ids of all classes that can be an answer, in the order of the columns of `probabilities`.
    #[getter]
    fn answers(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        unlocked(py, || {
            let predictor = self.classifier.predictor(&PredictRequest::default())?;
            Ok(predictor.candidates().classes().iter().map(|class| class.id.clone()).collect())
        })
    }

    /// The probability of every answer, `(samples, answers)` float32.
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        samples: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let (count, values) = self.of_embeddings(py, samples, |classifier, rows| {
            classifier.predictor(&PredictRequest::default())?.candidates().probabilities(rows)
        })?;
        let width = values.len() / count.max(1);
        PyArray1::from_vec(py, values).reshape([count, width])
    }

    /// The position of the likeliest answer of each sample.
    fn best<'py>(&self, py: Python<'py>, samples: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let (_, best) = self.of_embeddings(py, samples, |classifier, rows| {
            classifier.predictor(&PredictRequest::default())?.candidates().best(rows)
        })?;
        Ok(PyArray1::from_vec(py, best))
    }

    /// Samples in the space in which prototypes lie and distances are taken, `(samples, dim)`.
    fn transform<'py>(
        &self,
        py: Python<'py>,
        samples: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let (count, values) = self.of_embeddings(py, samples, Classifier::in_space)?;
        let width = values.len() / count.max(1);
        PyArray1::from_vec(py, values).reshape([count, width])
    }

    /// The embeddings of samples, `(samples, dim)`.
    fn embed<'py>(
        &self,
        py: Python<'py>,
        samples: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let samples = self::samples(samples, self.classifier.input())?;
        let rows = watched(py, &Listener::default(), &StopHandle::default(), |watch| {
            self.classifier.embed(&samples, watch)?.into_iter().collect::<gpn::Result<Vec<Vec<f32>>>>()
        })?;
        let width = rows.first().map_or(0, Vec::len);
        PyArray1::from_vec(py, rows.concat()).reshape([samples.len(), width])
    }

    /// The prototypes of the classes to choose from: their ids, and an array `(classes, dim)` for a search by FAISS or usearch.
    #[pyo3(signature = (*, among = None, below = None, taught = false, lambda_ = None))]
    #[expect(clippy::type_complexity, reason = "ids and an array")]
    fn prototypes<'py>(
        &self,
        py: Python<'py>,
        among: Option<Vec<Bound<'py, PyAny>>>,
        below: Option<&Bound<'py, PyAny>>,
        taught: bool,
        lambda_: Option<f32>,
    ) -> PyResult<(Bound<'py, PyArray1<Py<PyAny>>>, Bound<'py, PyArray2<f32>>)> {
        let among = chosen(among, below, taught)?;
        let candidates = unlocked(py, || {
            self.classifier.candidates(&among, lambda_.unwrap_or_else(|| self.classifier.default_lambda()))
        })?;
        let ids: Vec<String> = candidates.classes().iter().map(|class| class.id.clone()).collect();
        let prototypes = candidates.prototypes();
        let shape = [ids.len(), prototypes.len() / ids.len().max(1)];
        let prototypes = PyArray1::from_vec(py, prototypes).reshape(shape)?;
        Ok((objects(py, ids)?, prototypes))
    }

    /// A table of all classes, or of those whose id or name contains `query`: id, name, kind, samples, parents, nearest.
    #[pyo3(signature = (query = None))]
    fn classes<'py>(&self, py: Python<'py>, query: Option<&str>) -> PyResult<Bound<'py, PyDict>> {
        let entries = unlocked(py, || match query {
            Some(query) => self.classifier.search(query),
            None => Ok(self.classifier.classes()),
        })?;
        class_table(py, entries)
    }

    /// The class graph with all classes that were taught.
    #[getter]
    fn taxonomy(&self) -> PyResult<PyTaxonomy> {
        let entries = self.classifier.classes();
        let mut graph = gpn::taxonomy::TaxonomyBuilder::new();
        for entry in &entries {
            let node = graph.add_class(&entry.id);
            graph.set_name(node, &entry.name);
        }
        for entry in &entries {
            let child = graph.add_class(&entry.id);
            for parent in &entry.parents {
                let parent = graph.add_class(parent);
                graph.add_edge(parent, child, None);
            }
        }
        Ok(PyTaxonomy::of(graph.build().map_err(Fault::from)?))
    }

    /// Whether it was fitted to a catalogue; otherwise a network was trained.
    #[getter]
    fn is_fitted(&self) -> bool {
        self.classifier.is_fitted()
    }

    /// How often classes have changed since the model was opened.
    #[getter]
    fn revision(&self) -> u64 {
        self.revision.load(Ordering::Relaxed)
    }

    /// What a sample is: `{"kind": "embedding", "len": 384}` or `{"kind": "image", "size": 84}`.
    #[getter]
    fn input<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let input = PyDict::new(py);
        match self.classifier.input() {
            InputShape::Embedding { len } => {
                input.set_item("kind", "embedding")?;
                input.set_item("len", len)?;
            }
            InputShape::Image { height, .. } => {
                input.set_item("kind", "image")?;
                input.set_item("size", height)?;
            }
        }
        Ok(input)
    }

    /// What the model is: its settings, the method, how long it was trained.
    #[getter]
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let about = self.classifier.info();
        let info = PyDict::new(py);
        info.set_item("method", about.method().name)?;
        info.set_item("episode", about.episode)?;
        info.set_item("classes", about.classes.len())?;
        info.set_item("settings", serialised(py, &about.config)?)?;
        let report = about.fit.as_ref().map(|fit| to_py(py, &fit.report)).transpose()?;
        info.set_item("fit", report)?;
        Ok(info)
    }

    fn __repr__(&self) -> String {
        let entries = self.classifier.classes();
        let count = |kind| entries.iter().filter(|entry| entry.kind == kind).count();
        let (trained, taught) = (count(ClassKind::Training), count(ClassKind::Taught));
        format!("Model({}, {trained} trained classes, {taught} taught)", self.classifier.info().method().name)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((slf.get_type().getattr("from_bytes")?, (slf.get().to_bytes(slf.py())?,)))
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }
}

impl PyModel {
    /// Work on embeddings of the model's own backbone: those given where the model takes embeddings as they are.
    fn of_embeddings<T: Send>(
        &self,
        py: Python<'_>,
        samples: &Bound<'_, PyAny>,
        work: impl FnOnce(&Classifier, &[f32]) -> gpn::Result<Vec<T>> + Send,
    ) -> PyResult<(usize, Vec<T>)> {
        let classifier = &self.classifier;
        let InputShape::Embedding { len } = classifier.input() else {
            let samples = self::samples(samples, classifier.input())?;
            return Ok((samples.len(), self.of_samples(py, &samples, work)?));
        };
        let table = rows(samples)?;
        let (count, width) = (table.shape()[0], table.shape()[1]);
        if width != len {
            return Err(bad_input(format!("the embeddings have {width} numbers; this model takes {len}")));
        }
        let values = table.as_slice().map_err(|error| bad_input(error.to_string()))?;
        if !classifier.is_fitted() {
            let name =
                |(row, values): (usize, &[f32])| Sample::embedding(format!("row {row}"), values.to_vec());
            let samples: Vec<Sample> = values.chunks_exact(len.max(1)).enumerate().map(name).collect();
            return Ok((count, self.of_samples(py, &samples, work)?));
        }
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            let (row, column) = (at / len, at % len);
            return Err(bad_input(format!(
                "row {row}, column {column} is {}; embeddings must be finite",
                values[at]
            )));
        }
        Ok((count, unlocked(py, || work(classifier, values))?))
    }

    fn of_samples<T: Send>(
        &self,
        py: Python<'_>,
        samples: &[Sample],
        work: impl FnOnce(&Classifier, &[f32]) -> gpn::Result<Vec<T>> + Send,
    ) -> PyResult<Vec<T>> {
        watched(py, &Listener::default(), &StopHandle::default(), |watch| {
            let rows = self.classifier.embed(samples, watch)?.into_iter().collect::<gpn::Result<Vec<_>>>()?;
            work(&self.classifier, &rows.concat())
        })
    }

    fn teach_these<'py>(
        &self,
        py: Python<'py>,
        new: &[NewClass],
        if_taught: &str,
        taxonomy: Option<&Bound<'py, PyTaxonomy>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let taxonomy = taxonomy.map(|taxonomy| Arc::clone(&taxonomy.get().graph));
        let if_taught: IfTaught = word("if_taught", if_taught)?;
        let taught = watched(py, &Listener::default(), &StopHandle::default(), |watch| {
            self.classifier.teach_in(new, if_taught, taxonomy.as_deref(), watch)
        })?;
        self.revision.fetch_add(1, Ordering::Relaxed);
        let places = taught.iter().map(|class| serialised(py, &class.place)).collect::<PyResult<Vec<_>>>()?;
        Ok(Columns::new(py)
            .objects("id", taught.iter().map(|class| class.id.clone()).collect())?
            .objects("name", taught.iter().map(|class| class.name.clone()).collect())?
            .objects("place", places)?
            .numbers("samples", taught.iter().map(|class| class.samples as i64).collect())?
            .numbers("repeated", taught.iter().map(|class| class.repeated as i64).collect())?
            .done())
    }
}

fn class_table(py: Python<'_>, entries: Vec<ClassEntry>) -> PyResult<Bound<'_, PyDict>> {
    let kinds = entries.iter().map(|entry| serialised(py, &entry.kind)).collect::<PyResult<Vec<_>>>()?;
    Ok(Columns::new(py)
        .objects("id", entries.iter().map(|entry| entry.id.clone()).collect())?
        .objects("name", entries.iter().map(|entry| entry.name.clone()).collect())?
        .objects("kind", kinds)?
        .numbers("samples", entries.iter().map(|entry| entry.samples as i64).collect())?
        .objects("parents", entries.iter().map(|entry| entry.parents.clone()).collect())?
        .objects("nearest", entries.iter().map(|entry| entry.nearest.clone()).collect())?
        .done())
}
