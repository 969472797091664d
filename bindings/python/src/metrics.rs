//! `gpn.metrics`: how good answers are.

use std::sync::Arc;

use gpn::measure::{Answered, AnsweredSample, TestResult, measure};
use gpn::taxonomy::Node;
use pyo3::prelude::*;

use crate::convert::serialised;
use crate::errors::{Fault, bad_input};
use crate::from_python::named;
use crate::taxonomy::PyTaxonomy;
use crate::watch::unlocked;

/// Measures answers to labelled samples: `ranked` holds for each sample the classes, the likeliest first, with their
/// probabilities. Returns everything that `gpn test` tells.
#[pyfunction]
#[pyo3(signature = (taxonomy, truths, ranked, *, truth_probabilities = None, unknown_scores = None, scores_of_unknown = None))]
pub(crate) fn measures<'py>(
    py: Python<'py>,
    taxonomy: &Bound<'py, PyTaxonomy>,
    truths: Vec<Bound<'py, PyAny>>,
    ranked: Vec<Vec<(Bound<'py, PyAny>, f64)>>,
    truth_probabilities: Option<Vec<f64>>,
    unknown_scores: Option<Vec<f64>>,
    scores_of_unknown: Option<Vec<f64>>,
) -> PyResult<Bound<'py, PyAny>> {
    if truths.len() != ranked.len() {
        return Err(bad_input(format!("there are {} labels but {} answers", truths.len(), ranked.len())));
    }
    let graph = Arc::clone(&taxonomy.get().graph);
    let find = |class: &Bound<'py, PyAny>| -> PyResult<Node> {
        let found = graph.find_all(&[named(class)?]).map_err(Fault::from)?;
        Ok(found[0])
    };
    let mut samples = Vec::with_capacity(truths.len());
    for (at, (truth, ranked)) in truths.iter().zip(&ranked).enumerate() {
        samples.push(AnsweredSample {
            truth: find(truth)?,
            ranked: ranked.iter().map(|(class, p)| Ok((find(class)?, *p))).collect::<PyResult<_>>()?,
            truth_probability: truth_probabilities.as_ref().and_then(|given| given.get(at).copied()),
            unknown_score: unknown_scores.as_ref().and_then(|given| given.get(at).copied()),
            ..AnsweredSample::default()
        });
    }
    let result = unlocked(py, || -> gpn::Result<TestResult> {
        let answered = Answered { graph: &graph, samples };
        let result = measure(&answered)?;
        match &scores_of_unknown {
            Some(scores) => result.with_unknown(&answered, scores),
            None => Ok(result),
        }
    })?;
    serialised(py, &result)
}

/// The 95% interval of a share by Wilson.
#[pyfunction]
pub(crate) fn wilson(right: usize, samples: usize) -> (f64, f64) {
    let [low, high] = gpn::measure::wilson(right, samples);
    (low, high)
}

/// How well scores tell unknown samples from known ones: the area under the curve; None where one side is empty.
#[pyfunction]
pub(crate) fn auroc(known_scores: Vec<f64>, unknown_scores: Vec<f64>) -> Option<f64> {
    gpn::measure::auroc(&known_scores, &unknown_scores)
}

/// The share of known samples taken for unknown where `recall` of the unknown ones are found.
#[pyfunction]
#[pyo3(signature = (known_scores, unknown_scores, recall = 0.95))]
pub(crate) fn false_positive_rate(
    known_scores: Vec<f64>,
    unknown_scores: Vec<f64>,
    recall: f64,
) -> Option<f64> {
    gpn::measure::false_positive_rate(&known_scores, &unknown_scores, recall)
}
