//! The native part of the Python package `gpn`: the application library, class by class and call by call.
//!
//! It decides nothing. Long work runs without the interpreter's lock beside the calling thread, which looks for signals
//! (`watch`); errors become exceptions by their kind (`errors`); tables become dicts of NumPy arrays (`convert`).

mod benchmark;
mod convert;
mod encoder;
mod errors;
mod evaluation;
mod experiment;
mod fit;
mod from_python;
mod html;
mod metrics;
mod model;
mod panics;
mod prediction;
mod run;
mod samples;
mod taxonomy;
mod watch;

use pyo3::prelude::*;

/// The native part of `gpn`.
#[pymodule]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::benchmark::PyBenchmark;
    #[pymodule_export]
    use super::encoder::PyEncoder;
    #[pymodule_export]
    use super::evaluation::{PyEvaluation, evaluate, settings};
    #[pymodule_export]
    use super::experiment::experiment;
    #[pymodule_export]
    use super::fit::fit;
    #[pymodule_export]
    use super::metrics::{auroc, false_positive_rate, measures, wilson};
    #[pymodule_export]
    use super::model::PyModel;
    #[pymodule_export]
    use super::prediction::{PyPrediction, PyPredictions};
    #[pymodule_export]
    use super::run::PyRun;
    #[pymodule_export]
    use super::taxonomy::PyTaxonomy;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::panics::keep_quiet();
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
