//! Which way to answer is the best: measured on samples that it was not fitted to.

use gpn_model::ModelError;
use gpn_model::prior::{
    ClassRule, Metric, MetricConfig, MetricFamily, Rule, Scorer, UnknownScore, best_scale, log_loss,
    unknown_score,
};
use gpn_taxonomy::Node;
use rayon::prelude::*;

use super::candidate::{PLAIN, Recipe, Related, Space, evidence, scorer};
use super::rows::{Chosen, Fold, PARTS};
use crate::error::{Error, Result};
use crate::watch::Watch;

/// Shares of the identity in the covariance that whitens.
const SHRINKAGES: [f64; 3] = [0.1, 0.3, 0.5];
/// The share with which borders are tried: it matters little to them, and they take long to fit.
const BORDER_SHRINKAGE: f64 = 0.5;
/// How strongly borders are held to the prototypes.
const RIDGES: [f64; 3] = [0.1, 0.03, 0.01];
/// What did best in screenings on photos of groceries: borders in this space, and where there are none prototypes. With few samples to measure with,
/// chance would often put another way first; it must be clearly better.
const USUAL: [Recipe; 2] = {
    let metric = MetricConfig::whitened_cosine(BORDER_SHRINKAGE).compressed();
    [Recipe { metric, scale: 1.0, ridge: Some(RIDGES[1]) }, Recipe { metric, scale: 1.0, ridge: None }]
};
/// Parts of the samples that measure, one after the other, where there are few samples; with many, one part is enough.
const FOLDS: usize = 3;
/// More samples than these are many.
const FEW: usize = 4_000;
/// With fewer samples all parts measure.
const VERY_FEW: usize = 1_000;

/// A way to answer, and what came of it.
#[derive(Clone)]
pub(super) struct Tried {
    pub(super) recipe: Recipe,
    /// Queries answered rightly.
    pub(super) right: usize,
    /// Which queries these are.
    is_right: Vec<bool>,
    /// Log loss of all queries, at the best scale.
    loss: f64,
    /// Scores of all queries, `[queries, classes]`.
    pub(super) scores: Vec<f32>,
    /// What squared distances were multiplied with in each fold.
    temperatures: Vec<f32>,
    /// The queries' squared lengths in the space of the metric, times that.
    pub(super) lengths: Vec<f64>,
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

    /// Whether it has more right answers than another by more than the standard error of that difference: the root of the number of
    /// queries of which just one of the two has the answer.
    fn is_clearly_better_than(&self, other: &Self) -> bool {
        let differing = self.is_right.iter().zip(&other.is_right).filter(|(a, b)| a != b).count();
        self.right > other.right && (self.right - other.right).pow(2) > differing
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
    related: Related<'_>,
    only: Option<&Recipe>,
    seed: u64,
    watch: &Watch<'_>,
) -> Result<Option<Measured>> {
    if !chosen.can_measure() {
        return Ok(None);
    }
    let count = match chosen.len() {
        0..VERY_FEW => PARTS,
        VERY_FEW..=FEW => FOLDS,
        _ => 1,
    };
    let folds: Vec<Fold> =
        (0..count).map(|part| chosen.fold(part)).filter(|fold| !fold.right.is_empty()).collect();
    let right: Vec<Node> = folds.iter().flat_map(|fold| &fold.right).copied().collect();
    let mut search = Search {
        folds: &folds,
        right: &right,
        dim: chosen.dim,
        related,
        seed,
        watch,
        best: None,
        usual: None,
    };
    if let Some(only) = only {
        search.try_alike(&[only.metric], &[only.scale], only.ridge.as_slice(), &mut Vec::new())?;
    } else {
        search.try_all()?;
    }
    let (best, usual) = (search.best, search.usual);
    let best = match (best, usual) {
        (Some(best), Some(usual)) if !best.is_clearly_better_than(&usual) => Some(usual),
        (best, _) => best,
    };
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

/// The search for the best way to answer.
struct Search<'a> {
    folds: &'a [Fold],
    /// The class of each query of all folds.
    right: &'a [Node],
    dim: usize,
    related: Related<'a>,
    seed: u64,
    watch: &'a Watch<'a>,
    /// The best so far.
    best: Option<Tried>,
    /// The first of the usual ways that is possible.
    usual: Option<Tried>,
}

impl Search<'_> {
    /// Tries prototypes in every space, and borders in some.
    fn try_all(&mut self) -> Result<()> {
        type Change = fn(MetricConfig) -> MetricConfig;
        let changes: [Change; 2] = [|metric| metric, MetricConfig::compressed];
        for change in changes {
            let mut families: Vec<Option<MetricFamily>> = Vec::new();
            for shrinkage in SHRINKAGES {
                let alike =
                    [MetricConfig::unit_whitened(shrinkage), MetricConfig::whitened_cosine(shrinkage)];
                self.try_alike(&alike.map(change), &[1.0, 3.0], &[], &mut families)?;
            }
            let bordering = change(MetricConfig::whitened_cosine(BORDER_SHRINKAGE));
            self.try_alike(&[bordering], &[1.0], &RIDGES, &mut families)?;
        }
        for metric in [MetricConfig::UNIT, MetricConfig::RAW] {
            self.try_alike(&[metric], &[1.0, PLAIN], &[], &mut Vec::new())?;
        }
        Ok(())
    }

    /// Tries metrics that differ in their last step alone: by prototypes, or by borders where there are ridges. `families` keeps what
    /// whitened metrics have in common, for each fold.
    fn try_alike(
        &mut self,
        metrics: &[MetricConfig],
        scales: &[f64],
        ridges: &[f64],
        families: &mut Vec<Option<MetricFamily>>,
    ) -> Result<()> {
        let mut tried: Vec<Vec<Tried>> = metrics.iter().map(|_| Vec::new()).collect();
        for (at, fold) in self.folds.iter().enumerate() {
            let Some(before) = self.before_last(metrics[0], at, families)? else { continue };
            for (&metric, tried) in metrics.iter().zip(&mut tried) {
                if self.watch.is_stopped() {
                    return Err(Error::interrupted());
                }
                let fitted =
                    if metric.unit_at_last { before.clone().with_unit_at_last() } else { before.clone() };
                let space = Space::of_metric(fitted, &fold.train, self.related, self.seed)?;
                self.try_space(&space, fold, scales, ridges, tried)?;
            }
        }
        let classes = self.folds[0].train.len();
        for mut tried in tried.into_iter().flatten() {
            if tried.scores.len() < self.right.len() * classes {
                // Not possible in every fold.
                continue;
            }
            tried.judge(self.right, classes);
            let rank = |recipe: &Recipe| USUAL.iter().position(|usual| usual == recipe);
            if let Some(place) = rank(&tried.recipe)
                && self.usual.as_ref().and_then(|usual| rank(&usual.recipe)).is_none_or(|first| place < first)
            {
                self.usual = Some(tried.clone());
            }
            if self.best.as_ref().is_none_or(|best| tried.is_better_than(best)) {
                self.best = Some(tried);
            }
        }
        Ok(())
    }

    /// A metric fitted to a fold, without its last step; `None` where samples do not scatter, and so cannot whiten.
    fn before_last(
        &self,
        metric: MetricConfig,
        fold: usize,
        families: &mut Vec<Option<MetricFamily>>,
    ) -> Result<Option<Metric>> {
        let classes = || evidence(self.dim, &self.folds[fold].train).into_iter();
        let Some(shrinkage) = metric.whiten else {
            return Ok(Some(Metric::fit(metric, self.dim, classes())?));
        };
        if families.len() == fold {
            families.push(match MetricFamily::fit(metric, self.dim, classes()) {
                Err(ModelError::NoScatter) => None,
                family => Some(family?),
            });
        }
        match families[fold].as_ref().map(|family| family.whitened(shrinkage)) {
            None | Some(Err(ModelError::NoScatter)) => Ok(None),
            Some(metric) => Ok(Some(metric?)),
        }
    }

    /// Tries ways to answer in one space on one fold. `tried` has the same ways in the same order each time.
    fn try_space(
        &self,
        space: &Space,
        fold: &Fold,
        scales: &[f64],
        ridges: &[f64],
        tried: &mut Vec<Tried>,
    ) -> Result<()> {
        let metric = space.model.metric().config();
        let queries = space.model.metric().apply(&fold.queries)?;
        let length = |row: &[f32]| row.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>();
        let lengths: Vec<f64> = queries.par_chunks_exact(self.dim).map(length).collect();
        let mut add = |recipe: Recipe, scores: Vec<f32>, temperature: f32| {
            if !tried.iter().any(|tried| tried.recipe == recipe) {
                tried.push(Tried::new(recipe));
            }
            // invariant: it is there by now.
            let tried = tried.iter_mut().find(|tried| tried.recipe == recipe).unwrap();
            tried.scores.extend(scores);
            tried.temperatures.push(temperature);
            tried.lengths.extend(lengths.iter().map(|length| f64::from(temperature) * length));
        };
        for &scale in scales {
            let posteriors = space.posteriors(self.related.graph, scale)?;
            let mut scores = scorer(&space.model, &posteriors, None, 1.0, 0.0).scores(&queries);
            let temperature = best_scale(&scores, posteriors.len(), &fold.right);
            if ridges.is_empty() {
                for score in &mut scores {
                    *score *= temperature;
                }
                add(Recipe { metric, scale, ridge: None }, scores, temperature);
                continue;
            }
            drop(scores);
            let Some(start) = space.borders(&posteriors, &fold.train, temperature)? else { continue };
            for &ridge in ridges {
                let borders = start.learn(ridge, &|| self.watch.is_stopped())?;
                let scores =
                    scorer(&space.model, &posteriors, Some(&borders), temperature, 0.0).scores(&queries);
                add(Recipe { metric, scale, ridge: Some(ridge) }, scores, temperature);
            }
        }
        Ok(())
    }
}

impl Tried {
    fn new(recipe: Recipe) -> Self {
        let (scores, temperatures, lengths) = (Vec::new(), Vec::new(), Vec::new());
        Self { recipe, right: 0, is_right: Vec::new(), loss: 0.0, scores, temperatures, lengths }
    }

    /// How strange each query is, by a fit that has not seen it. `scale` is what scores are multiplied with before the softmax.
    pub(super) fn strangeness(&self, kind: UnknownScore, classes: usize, scale: f32) -> Vec<f64> {
        let rows = self.scores.par_chunks_exact(classes).zip(&self.lengths);
        rows.map(|(scores, &length)| unknown_score(kind, length, scores, scale)).collect()
    }

    fn judge(&mut self, right: &[Node], classes: usize) {
        let scale = best_scale(&self.scores, classes, right);
        let of_row = |(row, &right): (&[f32], &Node)| {
            (highest(row) == right as usize, log_loss(row, right as usize, scale))
        };
        let judged: Vec<(bool, f64)> = self.scores.par_chunks_exact(classes).zip(right).map(of_row).collect();
        self.is_right = judged.iter().map(|judged| judged.0).collect();
        self.right = self.is_right.iter().filter(|&&is_right| is_right).count();
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
    let rule = |rows: &Vec<f32>| {
        let mean = gpn_model::class_means(rows, rows.len() / dim, dim);
        let length: f64 = mean.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
        let weights = mean.iter().map(|x| 2.0 * x).collect();
        ClassRule { prototype: Rule { weights, bias: -length as f32 }, border: None }
    };
    let rules: Vec<ClassRule> = fold.train.par_iter().map(rule).collect();
    let found = Scorer::new(dim, &rules).each(&fold.queries, |_, scores| highest(scores) as Node);
    found.iter().zip(&fold.right).filter(|(found, right)| found == right).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clearly_better_is_more_than_the_standard_error() {
        let tried = |right: &[usize]| Tried {
            right: right.len(),
            is_right: (0..20).map(|query| right.contains(&query)).collect(),
            ..Tried::new(USUAL[0])
        };
        let usual = tried(&[0, 1, 2, 3]);
        assert!(!usual.is_clearly_better_than(&usual));
        // Two more, with four answers that differ: the standard error is two.
        assert!(!tried(&[0, 1, 2, 4, 5, 6]).is_clearly_better_than(&usual));
        assert!(tried(&[0, 1, 2, 3, 4, 5]).is_clearly_better_than(&usual));
        assert!(!tried(&[0, 1]).is_clearly_better_than(&usual));
    }
}
