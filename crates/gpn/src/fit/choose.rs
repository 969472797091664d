//! Which way to answer is the best: measured on samples that it was not fitted to.

use gpn_model::prior::{MetricConfig, best_scale};
use gpn_model::squared_distance;
use gpn_taxonomy::{Node, Taxonomy};
use rayon::prelude::*;

use super::candidate::{PLAIN, Recipe, Space, scorer};
use super::rows::{Chosen, Fold};
use crate::error::{Error, Result};
use crate::watch::Watch;

/// Shares of the identity in the covariance that whitens.
const SHRINKAGES: [f64; 4] = [0.1, 0.3, 0.5, 0.7];
/// How strongly borders are held to the prototypes.
const RIDGES: [f64; 3] = [1.0, 0.1, 0.01];
/// Parts of the samples that measure, one after the other, where there are few samples; with many, one part is enough.
const FOLDS: usize = 3;
/// More samples than these are many.
const FEW: usize = 4_000;

/// A way to answer, and what came of it.
pub(super) struct Tried {
    pub(super) recipe: Recipe,
    /// Queries answered rightly.
    pub(super) right: usize,
    /// Log loss of all queries, at the best scale.
    loss: f64,
    /// Scores of all queries, `[queries, classes]`.
    pub(super) scores: Vec<f32>,
    /// What squared distances were multiplied with in each fold.
    temperatures: Vec<f32>,
}

impl Tried {
    /// What squared distances are to be multiplied with: the mean over the folds, of the logarithm.
    pub(super) fn temperature(&self) -> f32 {
        let logs: f64 = self.temperatures.iter().map(|&t| libm::log(f64::from(t))).sum();
        libm::exp(logs / self.temperatures.len().max(1) as f64) as f32
    }

    /// More right answers win; of equally many, the surer ones.
    fn is_better_than(&self, other: &Self) -> bool {
        (self.right, other.loss) > (other.right, self.loss)
    }
}

/// What was measured: the best way to answer, and simple ones beside it.
pub(super) struct Measured {
    pub(super) best: Tried,
    /// The class of each query.
    pub(super) right: Vec<Node>,
    /// The row of each query.
    pub(super) rows: Vec<u32>,
    /// Queries that the nearest mean of raw embeddings answers rightly.
    pub(super) nearest_mean: usize,
    /// Queries of the class with the most samples.
    pub(super) majority: usize,
}

/// Tries all ways to answer on samples held out. `None` where no class has two samples.
pub(super) fn choose(
    chosen: &Chosen,
    graph: &Taxonomy,
    only: Option<&Recipe>,
    seed: u64,
    watch: &Watch<'_>,
) -> Result<Option<Measured>> {
    if !chosen.can_measure() {
        return Ok(None);
    }
    let count = if chosen.len() > FEW { 1 } else { FOLDS };
    let folds: Vec<Fold> =
        (0..count).map(|part| chosen.fold(part)).filter(|fold| !fold.right.is_empty()).collect();
    let right: Vec<Node> = folds.iter().flat_map(|fold| &fold.right).copied().collect();
    let mut best: Option<Tried> = None;
    let mut try_all = |metrics: &[MetricConfig], ridges: &[f64]| -> Result<Vec<(MetricConfig, usize)>> {
        let mut of_metric = Vec::new();
        for &metric in metrics {
            let mut tried: Vec<Tried> = Vec::new();
            for fold in &folds {
                if watch.is_stopped() {
                    return Err(Error::interrupted());
                }
                let scales = only.map_or_else(|| scales(metric, ridges), |only| vec![only.scale]);
                try_metric(metric, &scales, ridges, fold, chosen.dim, graph, seed, watch, &mut tried)?;
            }
            let mut most = 0;
            for mut tried in tried {
                if tried.scores.len() < right.len() * chosen.classes.len() {
                    // Not possible in every fold.
                    continue;
                }
                tried.judge(&right, chosen.classes.len());
                most = most.max(tried.right);
                if best.as_ref().is_none_or(|best| tried.is_better_than(best)) {
                    best = Some(tried);
                }
            }
            of_metric.push((metric, most));
        }
        Ok(of_metric)
    };
    if let Some(only) = only {
        try_all(&[only.metric], only.ridge.as_slice())?;
    } else {
        let mut bordering = Vec::new();
        for whitened in [MetricConfig::unit_whitened, MetricConfig::whitened_cosine] {
            // Borders take long to fit: they are tried in the space that suits prototypes best.
            let judged = try_all(&SHRINKAGES.map(whitened), &[])?;
            let most = judged.iter().map(|judged| judged.1).max();
            bordering.extend(judged.iter().find(|judged| Some(judged.1) == most).map(|judged| judged.0));
        }
        try_all(&[MetricConfig::UNIT, MetricConfig::RAW], &[])?;
        try_all(&bordering, &RIDGES)?;
    }
    let Some(best) = best else {
        return Err(Error::input("the recipe", "it cannot be used with these samples; leave it out"));
    };
    let nearest_mean = folds.iter().map(|fold| nearest_mean(fold, chosen.dim)).sum();
    let most =
        (0..chosen.classes.len()).max_by_key(|&class| (chosen.classes[class].len(), usize::MAX - class));
    let majority = right.iter().filter(|&&class| Some(class as usize) == most).count();
    let rows = folds.iter().flat_map(|fold| &fold.rows).copied().collect();
    Ok(Some(Measured { best, right, rows, nearest_mean, majority }))
}

/// The scales of the prior that are tried.
fn scales(metric: MetricConfig, ridges: &[f64]) -> Vec<f64> {
    match metric.whiten {
        Some(_) if ridges.is_empty() => vec![1.0, 3.0],
        Some(_) => vec![1.0],
        None => vec![1.0, PLAIN],
    }
}

/// Tries ways to answer in the space of one metric on one fold: by prototypes, or by borders where there are ridges. `tried` has the
/// same ways in the same order each time.
#[expect(clippy::too_many_arguments, reason = "one call, and each is another thing")]
fn try_metric(
    metric: MetricConfig,
    scales: &[f64],
    ridges: &[f64],
    fold: &Fold,
    dim: usize,
    graph: &Taxonomy,
    seed: u64,
    watch: &Watch<'_>,
    tried: &mut Vec<Tried>,
) -> Result<()> {
    let space = match Space::fit(metric, dim, &fold.train, graph, seed) {
        // Samples that do not scatter cannot whiten.
        Err(Error::Model(gpn_model::ModelError::NoScatter)) => return Ok(()),
        space => space?,
    };
    let queries = space.model.metric().apply(&fold.queries)?;
    let mut add = |recipe: Recipe, scores: Vec<f32>, temperature: f32| match tried
        .iter_mut()
        .find(|tried| tried.recipe == recipe)
    {
        Some(tried) => {
            tried.scores.extend(scores);
            tried.temperatures.push(temperature);
        }
        None => tried.push(Tried { recipe, right: 0, loss: 0.0, scores, temperatures: vec![temperature] }),
    };
    for &scale in scales {
        let posteriors = space.posteriors(graph, scale)?;
        let mut scores = scorer(&space.model, &posteriors, None, 1.0, 0.0).scores(&queries);
        let temperature = best_scale(&scores, posteriors.len(), &fold.right);
        for score in &mut scores {
            *score *= temperature;
        }
        if ridges.is_empty() {
            add(Recipe { metric, scale, ridge: None }, scores, temperature);
            continue;
        }
        let Some(start) = space.borders(&posteriors, &fold.train, temperature)? else { continue };
        for &ridge in ridges {
            let borders = start.learn(ridge, &|| watch.is_stopped())?;
            let scores = scorer(&space.model, &posteriors, Some(&borders), temperature, 0.0).scores(&queries);
            add(Recipe { metric, scale, ridge: Some(ridge) }, scores, temperature);
        }
    }
    Ok(())
}

impl Tried {
    fn judge(&mut self, right: &[Node], classes: usize) {
        let scale = f64::from(best_scale(&self.scores, classes, right));
        let of_row = |(row, &right): (&[f32], &Node)| {
            let highest = highest(row);
            let top = f64::from(row[highest]);
            let total: f64 = row.iter().map(|&s| libm::exp(scale * (f64::from(s) - top))).sum();
            (
                usize::from(highest == right as usize),
                libm::log(total) - scale * (f64::from(row[right as usize]) - top),
            )
        };
        let judged: Vec<(usize, f64)> =
            self.scores.par_chunks_exact(classes).zip(right).map(of_row).collect();
        self.right = judged.iter().map(|judged| judged.0).sum();
        self.loss = judged.iter().map(|judged| judged.1).sum();
    }
}

/// The place of the highest value; of equal ones the first.
pub(super) fn highest(row: &[f32]) -> usize {
    let mut best = 0;
    for (at, value) in row.iter().enumerate() {
        if *value > row[best] {
            best = at;
        }
    }
    best
}

/// Queries that the nearest mean of embeddings as they are answers rightly.
fn nearest_mean(fold: &Fold, dim: usize) -> usize {
    let mean = |rows: &Vec<f32>| gpn_model::class_means(rows, rows.len() / dim, dim);
    let means: Vec<Vec<f32>> = fold.train.iter().map(mean).collect();
    let is_right = |(query, &right): (&[f32], &Node)| {
        let distances: Vec<f32> = means.iter().map(|mean| -squared_distance(query, mean)).collect();
        highest(&distances) == right as usize
    };
    fold.queries.par_chunks_exact(dim).zip(&fold.right).filter(|&(q, r)| is_right((q, r))).count()
}
