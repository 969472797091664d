//! Testing a model on labelled samples.

use std::sync::Arc;

use gpn_data::source::{SampleKind, Source};
use gpn_taxonomy::{Node, Taxonomy, check_fit};

use crate::classifier::{Classifier, PredictRequest};
use crate::error::{Error, Result};
use crate::measure::{Answered, AnsweredSample, TestResult, measure};
use crate::sample::Sample;
use crate::watch::Watch;

/// Likeliest classes that are kept of each answer.
const TOP: usize = 20;
/// Samples answered at a time.
const CHUNK: usize = 1024;

/// A model's answers to labelled samples.
pub struct Tested {
    /// How good they are.
    pub result: TestResult,
    /// The answers themselves.
    pub samples: Vec<AnsweredSample>,
    /// The class graph that their classes belong to.
    pub graph: Arc<Taxonomy>,
    /// Samples that could not be read, with the reason.
    pub failed: Vec<String>,
}

/// Answers the samples of a source and compares with their classes, which the model must have. Samples of classes that it knows but
/// has no samples of are wrong answers by necessity, and counted.
pub fn test(
    classifier: &Classifier,
    source: &dyn Source,
    request: &PredictRequest,
    watch: &Watch<'_>,
) -> Result<Tested> {
    for note in source.notes() {
        watch.warn(&note.to_string());
    }
    let graph = classifier.graph();
    let ids: Vec<&str> = source.leaves().iter().map(|leaf| leaf.id.as_str()).collect();
    let fit = check_fit(&graph, &ids);
    for finding in fit.warnings() {
        watch.warn(&finding.to_string());
    }
    let truths: Vec<Node> = fit.into_nodes()?;
    let request = PredictRequest { top: TOP.max(request.top), ..request.clone() };
    let predictor = classifier.predictor(&request)?;
    let node_of = |id: &str| graph.find(id);
    let (mut samples, mut failed) = (Vec::new(), Vec::new());
    let rows: Vec<usize> = (0..source.samples().len()).collect();
    for chunk in rows.chunks(CHUNK) {
        let (mut given, mut given_rows) = (Vec::new(), Vec::new());
        for &row in chunk {
            match sample_of(source, row) {
                Ok(sample) => {
                    given.push(sample);
                    given_rows.push(row);
                }
                Err(error) => failed.push(error.to_string()),
            }
        }
        for (row, prediction) in given_rows.into_iter().zip(predictor.predict(&given, watch)?) {
            let prediction = match prediction {
                Ok(prediction) => prediction,
                Err(error) => {
                    failed.push(error.to_string());
                    continue;
                }
            };
            let truth = truths[source.samples()[row].leaf as usize];
            let ranked: Vec<(Node, f64)> = prediction
                .classes
                .iter()
                .filter_map(|likely| Some((node_of(&likely.id)?, likely.probability)))
                .collect();
            samples.push(AnsweredSample {
                name: prediction.file,
                truth,
                ranked,
                is_new: classifier.is_taught(graph.id(truth)),
                unknown_score: prediction.unknown.map(|unknown| unknown.score),
                ..AnsweredSample::default()
            });
        }
    }
    if samples.is_empty() {
        let reason = failed.first().cloned().unwrap_or_else(|| "there are no samples in it".into());
        return Err(Error::input(source.describe(), reason));
    }
    let answered = Answered { graph: &graph, samples };
    let result = measure(&answered)?;
    let samples = answered.samples;
    Ok(Tested { result, samples, graph, failed })
}

/// A sample of a source, as a classifier takes it.
fn sample_of(source: &dyn Source, row: usize) -> Result<Sample> {
    let name = source.samples()[row].file.clone();
    match source.kind() {
        SampleKind::Embeddings { dim } => {
            let mut values = vec![0.0; dim];
            source.embedding(row, &mut values)?;
            Ok(Sample::embedding(name, values))
        }
        SampleKind::Images => {
            if let Some(bytes) = source.encoded_image(row) {
                return Ok(Sample::image(name, bytes?.into_owned()));
            }
            Ok(Sample::pixels(name, source.image(row)?))
        }
    }
}
