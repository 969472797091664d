//! Fitting a catalogue to embeddings in memory.

use std::sync::Arc;

use gpn::model::prior::MetricConfig;
use gpn::taxonomy::check_fit;
use gpn::{ArraySource, ClassTexts, FitRequest, Recipe, StopHandle, fit as fit_catalogue};
use numpy::PyUntypedArrayMethods as _;
use pyo3::prelude::*;

use crate::convert::serialised;
use crate::errors::bad_input;
use crate::model::PyModel;
use crate::samples::rows;
use crate::taxonomy::PyTaxonomy;
use crate::watch::{Listener, watched};

/// The nearest mean of embeddings as they are: a prior of so large a variance is silent.
const NEAREST: Recipe = Recipe { metric: MetricConfig::RAW, scale: 1e9, ridge: None };

/// Fits a catalogue: embeddings `(N, dim)`, `classes` as texts, and for each embedding the position of its class among them. Returns the
/// model, what was measured, and the id of each class. `texts` are ids of classes and an embedding of each one's name or description.
#[pyfunction]
#[pyo3(signature = (samples, classes, labels, taxonomy = None, *, method = "prior", seed = 0, texts = None, callback = None, progress = false))]
#[expect(clippy::too_many_arguments, reason = "each is a word that a caller may say")]
pub(crate) fn fit<'py>(
    py: Python<'py>,
    samples: &Bound<'py, PyAny>,
    classes: Vec<String>,
    labels: numpy::PyReadonlyArray1<'py, i64>,
    taxonomy: Option<&Bound<'py, PyTaxonomy>>,
    method: &str,
    seed: u64,
    texts: Option<(Vec<String>, Bound<'py, PyAny>)>,
    callback: Option<Py<PyAny>>,
    progress: bool,
) -> PyResult<(PyModel, Bound<'py, PyAny>, Vec<String>)> {
    let recipe = match method {
        "prior" => None,
        "nearest" => Some(NEAREST),
        _ => return Err(bad_input(format!("method: `{method}` is neither prior nor nearest"))),
    };
    let graph = taxonomy.map(|taxonomy| Arc::clone(&taxonomy.get().graph));
    let ids = match &graph {
        Some(graph) => {
            // Labels that the graph does not have are wrong values, not missing files.
            let nodes =
                check_fit(graph, &classes).into_nodes().map_err(|error| bad_input(error.to_string()))?;
            nodes.into_iter().map(|node| graph.id(node).to_owned()).collect::<Vec<_>>()
        }
        // Blanks around an id are not part of it.
        None => classes.iter().map(|class| class.trim().to_owned()).collect(),
    };
    let mut sorted: Vec<&String> = ids.iter().collect();
    sorted.sort();
    if let Some([same, ..]) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(bad_input(format!("two labels mean the class `{same}`; give it one label")));
    }
    let table = rows(samples)?;
    let dim = table.shape()[1];
    let values = table.as_slice().map_err(|error| bad_input(error.to_string()))?;
    let name = |&label: &i64| usize::try_from(label).ok().and_then(|at| ids.get(at)).map(String::as_str);
    let names = labels.as_array().iter().map(name).collect::<Option<Vec<&str>>>();
    let names = names.ok_or_else(|| bad_input("a label is not the position of a class"))?;
    let listener = Listener::new(py, callback, progress)?;
    let texts = texts.map(|(ids, table)| class_texts(ids, &table)).transpose()?;
    let request = FitRequest { seed, recipe, texts };
    let fitted = watched(py, &listener, &StopHandle::default(), |watch| {
        let source = ArraySource::embeddings(values, dim, &names)?;
        fit_catalogue(&source, graph.as_deref(), &request, watch)
    })?;
    Ok((PyModel::of(fitted.classifier), serialised(py, &fitted.report)?, ids))
}

/// A row of `table` for each id.
fn class_texts(ids: Vec<String>, table: &Bound<'_, PyAny>) -> PyResult<ClassTexts> {
    let table = rows(table)?;
    let dim = table.shape()[1];
    let values = table.as_slice().map_err(|error| bad_input(error.to_string()))?;
    if table.shape()[0] != ids.len() {
        let counts = format!("{} texts of classes but {} embeddings of them", ids.len(), table.shape()[0]);
        return Err(bad_input(format!("text_encoder: there are {counts}")));
    }
    let rows = ids.into_iter().zip(values.chunks_exact(dim.max(1)).map(<[f32]>::to_vec));
    Ok(ClassTexts::new(dim, rows).map_err(crate::errors::Fault::from)?)
}
