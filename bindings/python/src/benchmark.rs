//! `gpn.Benchmark`: a taxonomy and samples, divided into training, Close and Far classes.

use std::path::PathBuf;
use std::sync::Arc;

use gpn::data::benchmark::Statistics;
use gpn::{ArraySource, Benchmark, BuildConfig, BuildRequest, Check, StopHandle, build};
use numpy::{PyReadonlyArrayDyn, PyUntypedArrayMethods as _};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use crate::convert::{Columns, serialised};
use crate::errors::bad_input;
use crate::from_python::named;
use crate::samples::rows;
use crate::taxonomy::PyTaxonomy;
use crate::watch::{Listener, unlocked, watched};

/// A benchmark: a directory, opened, or one made in memory.
#[pyclass(name = "Benchmark", module = "gpn", frozen)]
pub(crate) struct PyBenchmark {
    pub(crate) benchmark: Benchmark,
}

fn check(name: &str) -> PyResult<Check> {
    match name {
        "sampled" => Ok(Check::Sampled),
        "all" => Ok(Check::All),
        "nothing" => Ok(Check::Nothing),
        _ => Err(bad_input(format!("check: `{name}` is none of sampled, all, nothing"))),
    }
}

#[pymethods]
impl PyBenchmark {
    /// Opens a benchmark directory. `check` says how closely its files are compared with their hashes: "sampled", "all", "nothing".
    #[classmethod]
    #[pyo3(signature = (folder, *, check = "sampled"))]
    fn open(_class: &Bound<'_, PyType>, py: Python<'_>, folder: PathBuf, check: &str) -> PyResult<Self> {
        let check = self::check(check)?;
        let benchmark = unlocked(py, || Ok(Benchmark::open_with(&folder, check)?))?;
        Ok(Self { benchmark })
    }

    /// Builds a benchmark directory from samples (`KIND:PATH`) and a taxonomy (`KIND:PATH`, unless the source brings its own), as
    /// `gpn data build` does.
    #[classmethod]
    #[pyo3(signature = (
        source, out, *, taxonomy = None, seed = None, size = None, images_per_leaf = None, train_share = None, val_share = None,
        min_distance = None, close = None, far = None, collapse_chains = false, classes_only = false, strict = false,
        replace = false, callback = None, progress = false
    ))]
    #[expect(clippy::too_many_arguments, reason = "each is a word that a caller may say")]
    #[expect(clippy::fn_params_excessive_bools, reason = "each is a choice of its own")]
    fn build(
        _class: &Bound<'_, PyType>,
        py: Python<'_>,
        source: String,
        out: PathBuf,
        taxonomy: Option<String>,
        seed: Option<u64>,
        size: Option<u32>,
        images_per_leaf: Option<usize>,
        train_share: Option<f64>,
        val_share: Option<f64>,
        min_distance: Option<u32>,
        close: Option<(u32, u32)>,
        far: Option<(u32, u32)>,
        collapse_chains: bool,
        classes_only: bool,
        strict: bool,
        replace: bool,
        callback: Option<Py<PyAny>>,
        progress: bool,
    ) -> PyResult<Self> {
        let request = BuildRequest {
            source,
            taxonomy,
            seed,
            size,
            images_per_leaf,
            train_share,
            val_share,
            min_distance,
            close: close.map(|(from, to)| from..=to),
            far: far.map(|(from, to)| from..=to),
            collapse_chains,
            classes_only,
            strict,
            replace,
            ..BuildRequest::default()
        };
        let listener = Listener::new(py, callback, progress)?;
        let benchmark = watched(py, &listener, &StopHandle::default(), |watch| build(&request, &out, watch))?;
        Ok(Self { benchmark })
    }

    /// Makes a benchmark in memory: embeddings `(N, dim)` or images `(N, H, W, 3)` of 8 bits, a label for each, and the taxonomy that
    /// the labels are in.
    #[classmethod]
    #[pyo3(signature = (
        X, y, taxonomy, *, seed = 0, size = None, images_per_leaf = None, train_share = None, val_share = None,
        min_distance = None, close = None, far = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "each is a word that a caller may say")]
    #[expect(non_snake_case, reason = "what scikit-learn calls samples")]
    fn from_arrays(
        _class: &Bound<'_, PyType>,
        py: Python<'_>,
        X: &Bound<'_, PyAny>,
        y: Vec<Bound<'_, PyAny>>,
        taxonomy: &Bound<'_, PyAny>,
        seed: u64,
        size: Option<u32>,
        images_per_leaf: Option<usize>,
        train_share: Option<f64>,
        val_share: Option<f64>,
        min_distance: Option<u32>,
        close: Option<(u32, u32)>,
        far: Option<(u32, u32)>,
    ) -> PyResult<Self> {
        let mut config = BuildConfig::default();
        config.split.seed = seed;
        config.assign.seed = seed;
        config.size = size.unwrap_or(config.size);
        config.assign.per_leaf = images_per_leaf.unwrap_or(config.assign.per_leaf);
        config.assign.val_share = val_share.unwrap_or(config.assign.val_share);
        config.split.train_share = train_share.unwrap_or(config.split.train_share);
        config.split.min_distance = min_distance.unwrap_or(config.split.min_distance);
        if let Some((from, to)) = close {
            config.split.close = from..=to;
        }
        if let Some((from, to)) = far {
            config.split.far = from..=to;
        }
        let labels = y.iter().map(named).collect::<PyResult<Vec<_>>>()?;
        let taxonomy = py.get_type::<PyTaxonomy>().call1((taxonomy,))?.cast_into::<PyTaxonomy>()?;
        let graph = Arc::clone(&taxonomy.get().graph);
        let make = |source: gpn::Result<ArraySource<'_>>| {
            let (benchmark, _) = Benchmark::from_source(&source?, &graph, &config, &())?;
            Ok(benchmark)
        };
        let benchmark = if let Ok(pixels) = X.extract::<PyReadonlyArrayDyn<'_, u8>>() {
            let shape: [usize; 4] = pixels.shape().try_into().map_err(|_| {
                bad_input(format!("images must be of shape (N, H, W, 3), not {:?}", pixels.shape()))
            })?;
            let pixels = pixels.as_array().as_standard_layout().into_owned();
            // invariant: an array in standard layout is a slice.
            let values = pixels.as_slice().unwrap();
            unlocked(py, || make(ArraySource::images(values, shape, &labels).map_err(Into::into)))?
        } else {
            let table = rows(X)?;
            let values = table.as_slice().map_err(|error| bad_input(error.to_string()))?;
            let dim = table.shape()[1];
            unlocked(py, || make(ArraySource::embeddings(values, dim, &labels).map_err(Into::into)))?
        };
        Ok(Self { benchmark })
    }

    /// Its directory; None for one in memory.
    #[getter]
    fn folder(&self) -> Option<PathBuf> {
        self.benchmark.folder().map(Into::into)
    }

    /// The class graph.
    #[getter]
    fn taxonomy(&self) -> PyTaxonomy {
        PyTaxonomy::shared(Arc::new(self.benchmark.taxonomy().clone()))
    }

    /// What it was made from, with the hashes of its files.
    #[getter]
    fn manifest<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        serialised(py, self.benchmark.manifest())
    }

    /// A table of all classes: id, name, split, leaf, samples, distance.
    fn classes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let classes = self.benchmark.classes();
        Ok(Columns::new(py)
            .objects("id", classes.iter().map(|class| class.id.clone()).collect())?
            .objects("name", classes.iter().map(|class| class.name.clone()).collect())?
            .objects("split", classes.iter().map(|class| class.split.name()).collect())?
            .numbers("leaf", classes.iter().map(|class| class.leaf).collect())?
            .numbers("samples", classes.iter().map(|class| class.samples as i64).collect())?
            .numbers("distance", classes.iter().map(|class| i64::from(class.distance)).collect())?
            .done())
    }

    /// The table that `gpn data info` prints: one row for each of train, close and far.
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let sides = Statistics::of(&self.benchmark).data_sets;
        let count = |of: fn(&gpn::data::benchmark::DataSetStatistics) -> usize| {
            sides.iter().map(|side| of(side) as i64).collect::<Vec<_>>()
        };
        Ok(Columns::new(py)
            .objects("split", sides.iter().map(|side| side.split.name()).collect())?
            .numbers("classes", count(|side| side.classes))?
            .numbers("leaves", count(|side| side.leaf_classes))?
            .numbers("samples", count(|side| side.samples))?
            .numbers("for_validation", count(|side| side.val_samples))?
            .numbers("fewest", count(|side| side.fewest_samples))?
            .numbers("edges", count(|side| side.edges))?
            .numbers("levels", sides.iter().map(|side| i64::from(side.levels)).collect())?
            .done())
    }

    fn __repr__(&self) -> String {
        let counts = &self.benchmark.manifest().counts;
        format!("Benchmark({} classes, {} samples)", counts.classes, counts.samples)
    }
}
