//! `gpn.Prediction` and `gpn.Predictions`.

use gpn::Prediction;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert::{Columns, serialised};
use crate::html;

/// The likeliest classes of a sample, and what shaped the likeliest where that was asked for.
#[pyclass(name = "Prediction", module = "gpn", frozen)]
#[derive(Clone)]
pub(crate) struct PyPrediction {
    pub(crate) inner: Prediction,
}

#[pymethods]
impl PyPrediction {
    /// The sample, as it was called.
    #[getter]
    fn file(&self) -> &str {
        &self.inner.file
    }

    /// Id of the likeliest class.
    #[getter]
    fn id(&self) -> Option<&str> {
        self.inner.classes.first().map(|class| class.id.as_str())
    }

    /// Name of the likeliest class.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.inner.classes.first().map(|class| class.name.as_str())
    }

    /// Probability of the likeliest class.
    #[getter]
    fn probability(&self) -> Option<f64> {
        self.inner.classes.first().map(|class| class.probability)
    }

    /// The way from below the root to the likeliest class, by id.
    #[getter]
    fn path(&self) -> Vec<&str> {
        let path = self.inner.classes.first().map(|class| &class.path[..]).unwrap_or_default();
        path.iter().map(|class| class.id.as_str()).collect()
    }

    /// The deepest class that is as sure as asked for: id, name, probability and path; None where that was not asked for.
    #[getter]
    fn sure<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.inner.sure.as_ref().map(|sure| serialised(py, sure)).transpose()
    }

    /// How strange the sample is, and whether it belongs to none of the classes; None for models that were not fitted to a catalogue.
    #[getter]
    fn unknown<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.inner.unknown.as_ref().map(|unknown| serialised(py, unknown)).transpose()
    }

    /// The likeliest classes: a table of id, name, probability and distance.
    #[getter]
    fn classes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let classes = &self.inner.classes;
        Ok(Columns::new(py)
            .objects("id", classes.iter().map(|class| class.id.clone()).collect())?
            .objects("name", classes.iter().map(|class| class.name.clone()).collect())?
            .numbers("probability", classes.iter().map(|class| class.probability).collect())?
            .numbers("distance", classes.iter().map(|class| class.distance).collect())?
            .done())
    }

    /// What shaped the likeliest class, the largest share first: a table of id, name, relation, weight and share.
    #[getter]
    fn shaped_by<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(shares) = &self.inner.shaped_by else { return Ok(None) };
        let relations =
            shares.iter().map(|share| serialised(py, &share.relation)).collect::<PyResult<Vec<_>>>()?;
        Ok(Some(
            Columns::new(py)
                .objects("id", shares.iter().map(|share| share.class.id.clone()).collect())?
                .objects("name", shares.iter().map(|share| share.class.name.clone()).collect())?
                .objects("relation", relations)?
                .numbers("weight", shares.iter().map(|share| share.weight).collect())?
                .numbers("share", shares.iter().map(|share| share.share).collect())?
                .done(),
        ))
    }

    /// The same as the JSON of the command line.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        serialised(py, &self.inner)
    }

    fn __repr__(&self) -> String {
        match self.inner.classes.first() {
            Some(best) => {
                format!("Prediction({}: {} {:.1}%)", self.inner.file, best.name, 100.0 * best.probability)
            }
            None => format!("Prediction({})", self.inner.file),
        }
    }

    fn _repr_html_(&self) -> String {
        html::prediction(&self.inner)
    }
}

/// Predictions of several samples, in their order.
#[pyclass(name = "Predictions", module = "gpn", frozen)]
pub(crate) struct PyPredictions {
    pub(crate) items: Vec<Prediction>,
}

#[pymethods]
impl PyPredictions {
    /// Ids of the likeliest classes.
    #[getter]
    fn ids(&self) -> Vec<Option<String>> {
        self.items.iter().map(|item| item.classes.first().map(|class| class.id.clone())).collect()
    }

    /// A table of file, rank, id, name and probability.
    fn table<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let entries = || {
            self.items
                .iter()
                .flat_map(|item| (1_i64..).zip(&item.classes).map(move |(rank, class)| (item, rank, class)))
        };
        Ok(Columns::new(py)
            .objects("file", entries().map(|(item, ..)| item.file.clone()).collect())?
            .numbers("rank", entries().map(|(_, rank, _)| rank).collect())?
            .objects("id", entries().map(|(.., class)| class.id.clone()).collect())?
            .objects("name", entries().map(|(.., class)| class.name.clone()).collect())?
            .numbers("probability", entries().map(|(.., class)| class.probability).collect())?
            .done())
    }

    fn __len__(&self) -> usize {
        self.items.len()
    }

    fn __getitem__(&self, index: isize) -> PyResult<PyPrediction> {
        let at = if index < 0 { index + self.items.len() as isize } else { index };
        let item = usize::try_from(at).ok().and_then(|at| self.items.get(at));
        match item {
            Some(item) => Ok(PyPrediction { inner: item.clone() }),
            None => Err(PyIndexError::new_err(format!("there are {} predictions", self.items.len()))),
        }
    }

    fn __repr__(&self) -> String {
        format!("Predictions({})", self.items.len())
    }

    fn _repr_html_(&self) -> String {
        self.items.iter().take(20).map(html::prediction).collect()
    }
}
