//! `gpn.experiment`: the paper's tables, ablation and figures.

use std::path::PathBuf;

use gpn::StopHandle;
use gpn::experiment::{FiguresRequest, LabRequest, Made, TablesRequest, ablation, figures, tables};
use pyo3::prelude::*;

use crate::convert::word;
use crate::errors::bad_input;
use crate::watch::{Listener, watched};

/// Carries out an experiment; returns its text and the path of its page. The Python module `gpn.experiment` has the words.
#[pyfunction]
#[pyo3(signature = (
    what, out, *, data = None, scale = "quick", episodes = None, tasks = None, seed = 0, settings = Vec::new(), shapes = Vec::new(),
    methods = Vec::new(), run = None, subtree = None, callback = None, progress = false
))]
#[expect(clippy::too_many_arguments, reason = "each is a word that a caller may say")]
pub(crate) fn experiment(
    py: Python<'_>,
    what: &str,
    out: PathBuf,
    data: Option<PathBuf>,
    scale: &str,
    episodes: Option<u64>,
    tasks: Option<u64>,
    seed: u64,
    settings: Vec<String>,
    shapes: Vec<String>,
    methods: Vec<String>,
    run: Option<PathBuf>,
    subtree: Option<String>,
    callback: Option<Py<PyAny>>,
    progress: bool,
) -> PyResult<(String, PathBuf)> {
    let lab = LabRequest { out, data, scale: word("scale", scale)?, episodes, tasks, seed, set: settings };
    let shapes = shapes
        .iter()
        .map(|shape| shape.parse().map_err(|reason: String| bad_input(format!("shape `{shape}`: {reason}"))))
        .collect::<PyResult<_>>()?;
    let listener = Listener::new(py, callback, progress)?;
    let Made { text, page } = watched(py, &listener, &StopHandle::default(), |watch| match what {
        "tables" => tables(&TablesRequest { lab, shapes, methods }, watch),
        "ablation" => ablation(&lab, watch),
        _ => figures(&FiguresRequest { lab, run, subtree }, watch),
    })?;
    Ok((text, page))
}
