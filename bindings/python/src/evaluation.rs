//! `gpn.Evaluation`, and evaluating a model on tasks.

use std::path::PathBuf;

use gpn::train::Estimate;
use gpn::{Evaluation, EvaluationRequest, StopHandle, TestTasks, TrainedModel, evaluate_model, newest_model};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString};
use serde::Deserialize as _;

use crate::benchmark::PyBenchmark;
use crate::convert::{Columns, from_py, integer, json, serialised, to_py};
use crate::errors::bad_input;
use crate::html;
use crate::model::{PyModel, device};
use crate::watch::{Listener, watched};

/// The accuracy of a model on few-shot tasks, in percent.
#[pyclass(name = "Evaluation", module = "gpn", frozen)]
pub(crate) struct PyEvaluation {
    pub(crate) inner: Evaluation,
}

#[pymethods]
impl PyEvaluation {
    /// Name of the method.
    #[getter]
    fn name(&self) -> &str {
        &self.inner.name
    }

    /// Its name in tables.
    #[getter]
    fn title(&self) -> &str {
        &self.inner.title
    }

    /// Number of tasks.
    #[getter]
    fn tasks(&self) -> usize {
        self.inner.tasks
    }

    /// Which tasks these are: equal for all models that were evaluated on the same tasks.
    #[getter]
    fn fingerprint(&self) -> &str {
        &self.inner.fingerprint
    }

    /// Accuracy of the nearest mean of embeddings: mean and half width of the interval.
    #[getter]
    fn base(&self) -> (f64, f64) {
        pair(self.inner.base)
    }

    /// Accuracy of the method.
    #[getter]
    fn method(&self) -> (f64, f64) {
        pair(self.inner.method)
    }

    /// Accuracy with prototypes before and after propagation mixed by lambda: what the model is used with.
    #[getter]
    fn mixed(&self) -> (f64, f64) {
        pair(self.inner.mixed)
    }

    /// The method less the nearest mean, task by task.
    #[getter]
    fn gain(&self) -> (f64, f64) {
        pair(self.inner.gain)
    }

    /// Weight of the prototype before propagation in `mixed`.
    #[getter]
    fn lambda_(&self) -> f32 {
        self.inner.lambda
    }

    /// Expected calibration error in percent; None for methods without prototypes.
    #[getter]
    fn calibration_error(&self) -> Option<f64> {
        self.inner.calibration_error
    }

    /// The table that `gpn eval` prints: what, mean, half_width.
    fn table<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let rows = html::rows(&self.inner);
        Ok(Columns::new(py)
            .objects("what", rows.iter().map(|(name, _)| name.clone()).collect())?
            .numbers("mean", rows.iter().map(|(_, estimate)| estimate.mean).collect())?
            .numbers("half_width", rows.iter().map(|(_, estimate)| estimate.half_width).collect())?
            .done())
    }

    /// The accuracies of every task: base, method, mixed.
    fn per_task<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tasks = &self.inner.per_task;
        Ok(Columns::new(py)
            .numbers("base", tasks.iter().map(|task| task.base).collect())?
            .numbers("method", tasks.iter().map(|task| task.method).collect())?
            .numbers("mixed", tasks.iter().map(|task| task.mixed).collect())?
            .done())
    }

    /// The same as the JSON of the command line.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        serialised(py, &self.inner)
    }

    fn __repr__(&self) -> String {
        let Estimate { mean, half_width } = self.inner.method;
        format!(
            "Evaluation({} {mean:.2} +- {half_width:.2} % on {} tasks)",
            self.inner.title, self.inner.tasks
        )
    }

    fn _repr_html_(&self) -> String {
        html::evaluation(&self.inner)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyAny>,))> {
        Ok((slf.get_type().getattr("_from_dict")?, (slf.get().to_dict(slf.py())?,)))
    }

    #[staticmethod]
    fn _from_dict(fields: &Bound<'_, PyAny>) -> PyResult<Self> {
        let inner = serde_json::from_value(from_py(fields)?).map_err(|error| bad_input(error.to_string()))?;
        Ok(Self { inner })
    }
}

fn pair(estimate: Estimate) -> (f64, f64) {
    (estimate.mean, estimate.half_width)
}

/// Keywords of a caller as a request: the names are those of its fields. Everything left out is the default.
pub(crate) fn request(asked: Option<&Bound<'_, PyDict>>) -> PyResult<EvaluationRequest> {
    let mut fields = json(&EvaluationRequest::default())?;
    // Not every path is text, as JSON is.
    let (mut tasks_file, mut names) = (None, None);
    for (key, value) in asked.map(PyDictMethods::iter).into_iter().flatten() {
        let key: String = key.extract()?;
        // `lambda` is a word of Python itself.
        let name = if key == "lambda_" { "lambda" } else { &key };
        let Some(field) = fields.get_mut(name).filter(|_| key != "lambda") else {
            return Err(PyTypeError::new_err(format!(
                "evaluate() got an unexpected keyword argument '{key}'"
            )));
        };
        let path = match name {
            "tasks_file" => Some(&mut tasks_file),
            "names" => Some(&mut names),
            _ => None,
        };
        if let Some(path) = path
            && (value.is_instance_of::<PyString>() || value.hasattr("__fspath__")?)
        {
            *path = Some(value.extract::<PathBuf>()?);
            continue;
        }
        let is_truth = value.is_instance_of::<PyBool>();
        // Also numbers of NumPy.
        *field = if !is_truth && value.hasattr("__index__")? {
            integer(&value.call_method0("__index__")?)?
        } else if !is_truth && value.hasattr("__float__")? {
            value.extract::<f64>()?.into()
        } else {
            from_py(&value)?
        };
        if let Err(error) = EvaluationRequest::deserialize(&fields) {
            return Err(bad_input(format!("{key}: {}", error.to_string().replace('`', ""))));
        }
    }
    let request = EvaluationRequest::deserialize(fields).map_err(|error| bad_input(error.to_string()))?;
    Ok(EvaluationRequest { tasks_file, names, ..request })
}

/// Evaluates a model (a `gpn.Model`, or the path of a model file or run) on tasks of a benchmark's held-out classes, as `gpn eval` does.
/// Keywords: `split`, `sampling`, `hierarchy`, `way`, `shot`, `queries`, `rest`, `tasks`, `seed`, `tasks_file`, `lambda_`, `method`, `names`.
#[pyfunction]
#[pyo3(signature = (model, benchmark, *, device = "cpu", **asked))]
pub(crate) fn evaluate(
    py: Python<'_>,
    model: &Bound<'_, PyAny>,
    benchmark: &Bound<'_, PyBenchmark>,
    device: &str,
    asked: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyEvaluation> {
    let (request, device, benchmark) = (request(asked)?, self::device(device)?, &benchmark.get().benchmark);
    let held = model.cast::<PyModel>().ok().map(|model| std::sync::Arc::clone(&model.get().classifier));
    let path: PathBuf = if held.is_some() { PathBuf::new() } else { model.extract()? };
    let inner = watched(py, &Listener::default(), &StopHandle::default(), |watch| {
        let trained = if let Some(classifier) = &held {
            TrainedModel::from_bytes(&classifier.to_bytes()?, "the model".as_ref(), &device)?
        } else {
            let data = benchmark.folder().map(PathBuf::from).unwrap_or_default();
            newest_model(&path, &data, &device, watch)?
        };
        let tasks = TestTasks::of(benchmark, &request)?;
        evaluate_model(&trained, benchmark, &tasks, &request, watch)
    })?;
    Ok(PyEvaluation { inner })
}

/// The settings of a preset as nested dicts: "default", "paper", "reference", "quick" or "demo".
#[pyfunction]
#[pyo3(signature = (preset = "default"))]
pub(crate) fn settings<'py>(py: Python<'py>, preset: &str) -> PyResult<Bound<'py, PyAny>> {
    let config = gpn::Config::preset(preset).map_err(crate::errors::Fault::from)?;
    to_py(py, &json(&config)?)
}
