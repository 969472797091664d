//! `gpn.Run`: training in a directory.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use gpn::{
    Benchmark, Check, Classifier, Config, Device, ResumeRequest, Run, StartRequest, StopHandle, Trained,
};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyType};

use crate::benchmark::PyBenchmark;
use crate::convert::serialised;
use crate::errors::{Fault, bad_input, raised};
use crate::evaluation::{PyEvaluation, request};
use crate::from_python::named;
use crate::model::{PyModel, device};
use crate::watch::{Listener, unlocked, watched};

/// A run: training in a directory, from which it goes on bit for bit where it stopped.
#[pyclass(name = "Run", module = "gpn", frozen)]
pub(crate) struct PyRun {
    folder: PathBuf,
    /// For a benchmark in memory, which cannot be opened again by its path.
    benchmark: Option<Benchmark>,
    device: Device,
    state: Mutex<State>,
}

/// The run and the handle that its trainer listens to. Once that has stopped it, the run is opened anew.
struct State {
    run: Option<Run>,
    stop: StopHandle,
}

impl PyRun {
    fn lock(&self) -> PyResult<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Ok(state),
            Err(std::sync::TryLockError::Poisoned(state)) => Ok(PoisonError::into_inner(state)),
            Err(std::sync::TryLockError::WouldBlock) => {
                let message = format!("{}: another thread is training this run", self.folder.display());
                Err(raised("ConflictError", &message))
            }
        }
    }

    /// Opens the run, for so many episodes in all if given.
    fn reopen(&self, state: &mut State, episodes: Option<u64>) -> gpn::Result<()> {
        // The directory is locked by whoever holds the run.
        state.run = None;
        state.stop = StopHandle::default();
        let request = ResumeRequest { data: None, episodes, check: Check::Sampled, device: &self.device };
        let watch = gpn::Watch::default().with_stop(state.stop.clone());
        state.run = Some(match &self.benchmark {
            Some(benchmark) => Run::resume_on(&self.folder, benchmark.clone(), &request, &watch)?,
            None => Run::resume(&self.folder, &request, &watch)?,
        });
        Ok(())
    }
}

/// Changes settings by a dict, nested or with names such as "train.episodes".
fn configured(mut config: Config, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Config> {
    for (key, value) in settings.map(PyDictMethods::iter).into_iter().flatten() {
        let key = named(&key)?;
        if let Ok(group) = value.cast::<PyDict>() {
            for (name, value) in group.iter() {
                config = with_setting(&config, &format!("{key}.{}", named(&name)?), &value)?;
            }
        } else {
            config = with_setting(&config, &key, &value)?;
        }
    }
    Ok(config)
}

fn with_setting(config: &Config, key: &str, value: &Bound<'_, PyAny>) -> PyResult<Config> {
    let value = match value.cast::<PyBool>() {
        Ok(truth) => truth.is_true().to_string(),
        Err(_) => named(value)?,
    };
    Ok(config.with_setting(&format!("{key}={value}")).map_err(Fault::from)?)
}

#[pymethods]
impl PyRun {
    /// Starts a run in a new directory. `settings` changes those of the preset: `{"train.episodes": 100, "task.way": 5}`.
    #[classmethod]
    #[pyo3(signature = (
        folder, benchmark, *, method = None, preset = "default", settings = None, episodes = None, init = None, replace = false,
        device = "cpu"
    ))]
    #[expect(clippy::too_many_arguments, reason = "each is a word that a caller may say")]
    fn start(
        _class: &Bound<'_, PyType>,
        py: Python<'_>,
        folder: PathBuf,
        benchmark: &Bound<'_, PyBenchmark>,
        method: Option<&str>,
        preset: &str,
        settings: Option<&Bound<'_, PyDict>>,
        episodes: Option<u64>,
        init: Option<PathBuf>,
        replace: bool,
        device: &str,
    ) -> PyResult<Self> {
        let mut config = Config::preset(preset).map_err(Fault::from)?;
        if let Some(method) = method {
            config = config.with_method(method).map_err(Fault::from)?;
        }
        config = configured(config, settings)?;
        config.train.episodes = episodes.unwrap_or(config.train.episodes);
        let (device, benchmark) = (self::device(device)?, benchmark.get().benchmark.clone());
        let data = benchmark.folder().map(PathBuf::from);
        let kept = if data.is_none() { Some(benchmark.clone()) } else { None };
        let stop = StopHandle::default();
        let run = watched(py, &Listener::default(), &stop, |watch| {
            let data = data.unwrap_or_default();
            let request = StartRequest {
                data: &data,
                init: init.as_deref(),
                replace,
                ..StartRequest::new(&config, &device)
            };
            Run::start(&folder, benchmark, &request, watch)
        })?;
        Ok(Self { folder, benchmark: kept, device, state: Mutex::new(State { run: Some(run), stop }) })
    }

    /// Opens a run to go on with, for `episodes` in all where it is to become longer. `benchmark` is needed where it was made in
    /// memory or has moved.
    #[classmethod]
    #[pyo3(signature = (folder, *, benchmark = None, episodes = None, device = "cpu"))]
    fn resume(
        _class: &Bound<'_, PyType>,
        py: Python<'_>,
        folder: PathBuf,
        benchmark: Option<&Bound<'_, PyBenchmark>>,
        episodes: Option<u64>,
        device: &str,
    ) -> PyResult<Self> {
        let run = Self {
            folder,
            benchmark: benchmark.map(|benchmark| benchmark.get().benchmark.clone()),
            device: self::device(device)?,
            state: Mutex::new(State { run: None, stop: StopHandle::default() }),
        };
        {
            let state = &mut *run.lock()?;
            unlocked(py, || run.reopen(state, episodes))?;
        }
        Ok(run)
    }

    /// Trains until the end, or until it is stopped; returns whether it is finished. `callback` is called after every episode with a
    /// dict (`done`, `total`, and a `report` where one is due) and stops the run by returning False. An interrupt (Ctrl-C) stops it
    /// within a second. In every case the run can be resumed.
    #[pyo3(signature = (callback = None, *, progress = false))]
    fn train(&self, py: Python<'_>, callback: Option<Py<PyAny>>, progress: bool) -> PyResult<bool> {
        let listener = Listener::new(py, callback, progress)?;
        let state = &mut *self.lock()?;
        if state.run.is_none() || state.stop.is_stopped() {
            unlocked(py, || self.reopen(state, None))?;
        }
        let State { run, stop } = state;
        // invariant: it was opened just now.
        let run = run.as_mut().unwrap();
        let stop = stop.clone();
        let trained = watched(py, &listener, &stop, |watch| run.train(watch))?;
        Ok(matches!(trained, Trained::Finished(_)))
    }

    /// Makes a run longer: so many episodes in all.
    fn extend(&self, py: Python<'_>, episodes: u64) -> PyResult<()> {
        let state = &mut *self.lock()?;
        unlocked(py, || self.reopen(state, Some(episodes)))
    }

    /// Evaluates the model of the run on tasks of its own benchmark, as `gpn eval` does. Keywords are those of `gpn.evaluate`.
    #[pyo3(signature = (**asked))]
    fn evaluate(&self, py: Python<'_>, asked: Option<&Bound<'_, PyDict>>) -> PyResult<PyEvaluation> {
        let request = request(asked)?;
        let state = &mut *self.lock()?;
        if state.run.is_none() {
            unlocked(py, || self.reopen(state, None))?;
        }
        // invariant: it was opened just now.
        let run = state.run.as_ref().unwrap();
        let inner =
            watched(py, &Listener::default(), &StopHandle::default(), |watch| run.evaluate(&request, watch))?;
        Ok(PyEvaluation { inner })
    }

    /// The model that the run has shipped.
    fn model(&self, py: Python<'_>) -> PyResult<PyModel> {
        let (folder, device) = (&self.folder, &self.device);
        unlocked(py, || Classifier::open(folder, device)).map(PyModel::of)
    }

    /// A table of what training has reported so far: one row for each line of `metrics.jsonl`.
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let lines = unlocked(py, || Ok(gpn::train::read_metrics(&self.folder)?))?;
        py.import("gpn._tables")?.call_method1("of_records", (serialised(py, &lines)?,))
    }

    /// Its directory.
    #[getter]
    fn folder(&self) -> &PathBuf {
        &self.folder
    }

    /// Episodes done.
    #[getter]
    fn done(&self) -> PyResult<u64> {
        let state = self.lock()?;
        state.run.as_ref().map(|run| run.episodes().0).ok_or_else(|| bad_input("the run is not open"))
    }

    /// Episodes in all.
    #[getter]
    fn episodes(&self) -> PyResult<u64> {
        let state = self.lock()?;
        state.run.as_ref().map(|run| run.episodes().1).ok_or_else(|| bad_input("the run is not open"))
    }

    fn __repr__(&self) -> String {
        format!("Run({})", self.folder.display())
    }
}
