//! All classes at once: known ones with all their samples, new ones with a few, queries of both. What a catalogue looks like.

use gpn_data::benchmark::{Benchmark, DataSet, Part, Split};
use gpn_data::rng::{Purpose, Stream};
use gpn_model::prior::PriorModel;
use gpn_model::{class_means, squared_distance};
use gpn_train::{Embeddings, Estimate, Hierarchy, TrainedModel};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::evaluation::{Answering, EvaluationRequest, TestTasks};
use crate::watch::Watch;

/// Draws of the new classes' samples that accuracies are means over.
const DRAWS: u64 = 10;

/// Accuracy on a catalogue, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CatalogueAccuracy {
    /// On queries of new classes.
    pub new: Estimate,
    /// On queries of known classes.
    pub known: Estimate,
    /// On all queries.
    pub all: Estimate,
    /// Harmonic mean of new and known.
    pub harmonic: Estimate,
}

/// How a method does when all leaf classes are answers at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CatalogueEvaluation {
    /// Name of the method.
    pub name: String,
    /// Its name in tables.
    pub title: String,
    /// Samples of each new class.
    pub shot: usize,
    /// Number of new classes.
    pub new_classes: usize,
    /// Number of known classes.
    pub known_classes: usize,
    /// The nearest mean of embeddings.
    pub base: CatalogueAccuracy,
    /// The method.
    pub method: CatalogueAccuracy,
}

/// A leaf class: its number in the data set, whether it is new, and its samples to draw from and to ask for.
struct Leaf {
    class: u32,
    is_new: bool,
    /// All samples of a known class; those that a new class's samples are drawn from.
    samples: Vec<u32>,
    /// Queries of a known class; a new class asks for what was not drawn.
    queries: Vec<u32>,
}

/// Evaluates all leaf classes of training and split at once: known ones with all their training samples and their validation
/// samples as queries, new ones with `shot` samples drawn ten times and up to `queries` others as queries.
pub fn evaluate_all(
    model: &TrainedModel,
    benchmark: &Benchmark,
    request: &EvaluationRequest,
    watch: &Watch<'_>,
) -> Result<CatalogueEvaluation> {
    let data_set = benchmark.data_set(request.split);
    let leaves = leaves(benchmark, &data_set, request)?;
    let all: Vec<u32> =
        leaves.iter().flat_map(|leaf| leaf.samples.iter().chain(&leaf.queries)).copied().collect();
    let stop = watch.stop();
    let embeddings = Embeddings::of_samples(&model.network.embedder, benchmark.store(), all, stop)?;
    let tasks = TestTasks { tasks: Vec::new(), data_set, fingerprints: Vec::new(), left_out: Vec::new() };
    let answering = Answering::of(model, benchmark, &tasks, request, watch)?;
    let (kind, method) = answering.method(model);
    let Some(prior) = method.prior() else {
        let reason =
            "it has no answer for classes with all their samples beside classes with few; use the prior";
        return Err(Error::input(format!("method {}", kind.name), reason));
    };
    let draws: Vec<[Counts; 2]> = (0..DRAWS)
        .into_par_iter()
        .map(|draw| {
            stop.check()?;
            answer_all(&leaves, &embeddings, prior, &tasks.data_set, &answering.texts, request, draw)
        })
        .collect::<Result<_>>()?;
    let accuracy = |which: usize| CatalogueAccuracy {
        new: Estimate::of(&draws.iter().map(|draw| draw[which].of_new()).collect::<Vec<_>>()),
        known: Estimate::of(&draws.iter().map(|draw| draw[which].of_known()).collect::<Vec<_>>()),
        all: Estimate::of(&draws.iter().map(|draw| draw[which].all()).collect::<Vec<_>>()),
        harmonic: Estimate::of(&draws.iter().map(|draw| draw[which].harmonic()).collect::<Vec<_>>()),
    };
    Ok(CatalogueEvaluation {
        name: kind.name.to_owned(),
        title: kind.title.to_owned(),
        shot: request.shot,
        new_classes: leaves.iter().filter(|leaf| leaf.is_new).count(),
        known_classes: leaves.iter().filter(|leaf| !leaf.is_new).count(),
        base: accuracy(0),
        method: accuracy(1),
    })
}

fn leaves(benchmark: &Benchmark, data_set: &DataSet, request: &EvaluationRequest) -> Result<Vec<Leaf>> {
    let mut leaves = Vec::new();
    for (class, &row) in (0..).zip(&data_set.rows) {
        let entry = &benchmark.classes()[row];
        let is_new = entry.split != Split::Train;
        let samples = benchmark.samples(row, if is_new { Part::Test } else { Part::Train }).to_vec();
        let queries = if is_new { Vec::new() } else { benchmark.samples(row, Part::Val).to_vec() };
        let least = if is_new { request.shot + 1 } else { 1 };
        if entry.leaf && samples.len() >= least {
            leaves.push(Leaf { class, is_new, samples, queries });
        }
    }
    if leaves.iter().all(|leaf| leaf.is_new) || !leaves.iter().any(|leaf| leaf.is_new) {
        return Err(Error::input(
            "the benchmark",
            "it has no leaf classes of both kinds, known and new, with enough samples",
        ));
    }
    Ok(leaves)
}

/// Queries and right answers.
#[derive(Clone, Copy, Default)]
struct Counts {
    new: [u32; 2],
    known: [u32; 2],
}

impl Counts {
    fn add(&mut self, is_new: bool, is_right: bool) {
        let counts = if is_new { &mut self.new } else { &mut self.known };
        counts[0] += 1;
        counts[1] += u32::from(is_right);
    }

    fn of_new(&self) -> f64 {
        percent(self.new)
    }

    fn of_known(&self) -> f64 {
        percent(self.known)
    }

    fn all(&self) -> f64 {
        percent([self.new[0] + self.known[0], self.new[1] + self.known[1]])
    }

    fn harmonic(&self) -> f64 {
        let (new, known) = (self.of_new(), self.of_known());
        if new + known > 0.0 { 2.0 * new * known / (new + known) } else { 0.0 }
    }
}

fn percent([queries, right]: [u32; 2]) -> f64 {
    100.0 * f64::from(right) / f64::from(queries.max(1))
}

/// One draw: how the nearest mean and the prior do.
fn answer_all(
    leaves: &[Leaf],
    embeddings: &Embeddings,
    prior: &PriorModel,
    data_set: &DataSet,
    texts: &[Option<Vec<f32>>],
    request: &EvaluationRequest,
    draw: u64,
) -> Result<[Counts; 2]> {
    let known = prior.known(&data_set.whole_graph);
    let (mut means, mut posteriors, mut queries) = (Vec::new(), Vec::new(), Vec::new());
    for (number, leaf) in leaves.iter().enumerate() {
        let (support, asked) = if leaf.is_new {
            let stream = request.seed.wrapping_add(draw << 32);
            let order =
                Stream::new(stream, Purpose::Task, number as u64).choose(&leaf.samples, leaf.samples.len());
            let (support, rest) = order.split_at(request.shot);
            (support.to_vec(), rest[..rest.len().min(request.queries)].to_vec())
        } else {
            (leaf.samples.clone(), leaf.queries.clone())
        };
        let rows: Vec<f32> = support.iter().flat_map(|&sample| embeddings.of(sample)).copied().collect();
        let dim = rows.len() / support.len();
        means.push(class_means(&rows, support.len(), dim));
        let place = (request.hierarchy == Hierarchy::Known || !leaf.is_new).then_some((&known, leaf.class));
        let text = texts.get(leaf.class as usize).and_then(Option::as_deref).filter(|_| leaf.is_new);
        posteriors.push(prior.posterior(&prior.prior_of(place, text)?, &rows)?);
        queries.push(asked);
    }
    let mut counts = [Counts::default(); 2];
    for (answer, asked) in queries.iter().enumerate() {
        for &sample in asked {
            let query = embeddings.of(sample);
            let in_space = prior.metric().apply(query)?;
            let by_mean = least(means.iter().map(|mean| squared_distance(query, mean)));
            let by_prior = least(posteriors.iter().map(|posterior| prior.distance(&in_space, posterior)));
            counts[0].add(leaves[answer].is_new, by_mean == answer);
            counts[1].add(leaves[answer].is_new, by_prior == answer);
        }
    }
    Ok(counts)
}

/// The index of the least value; of equal ones the first.
fn least(values: impl Iterator<Item = f32>) -> usize {
    let mut best = (0, f32::INFINITY);
    for (index, value) in values.enumerate() {
        if value < best.1 {
            best = (index, value);
        }
    }
    best.0
}
