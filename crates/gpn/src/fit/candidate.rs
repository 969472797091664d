//! A way to answer, fitted to samples: metric, prior, and borders between classes with many samples.

use gpn_model::prior::{
    Borders, ClassRule, ClassStatistics, FitConfig, GraphPrior, KnownClasses, Metric, MetricConfig,
    Posterior, PriorModel, Rule, Scorer, StatisticsBuilder, TextRows,
};
use gpn_model::{ModelError, class_means};
use gpn_taxonomy::{Node, Taxonomy};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::Result;

/// A class with as many samples has borders of its own; below, it goes by its posterior.
pub(super) const MANY: usize = 10;
/// The same where no class has many samples: all are alike then, and none is drowned by another.
const MANY_OF_FEW: usize = 4;
/// Products for one step of the search for borders, at most: this bounds the samples that they are fitted to.
const WORK: usize = 2_000_000_000;
/// Classes whose samples are mapped at a time.
const TOGETHER: usize = 512;
/// A prior of so large a variance leaves the mean of the samples as it is.
pub(super) const PLAIN: f64 = 1e9;

/// A way to answer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recipe {
    /// The space in which distances are taken.
    pub metric: MetricConfig,
    /// What the variance of the prior is multiplied with; so much that the prior is silent where it is a billion.
    pub scale: f64,
    /// How strongly borders between classes with many samples are held to the prototypes; none where there are no borders.
    pub ridge: Option<f64>,
}

/// With as many classes of many samples, those with few go by what these know.
const ENOUGH: usize = 10;

/// The classes with few samples, where enough others have many: these alone say how classes scatter and how relatives are alike. What one
/// sample says of its class is as noisy as the sample, and would drown what is known. None where few classes have many samples.
pub(super) fn few_beside_many(counts: &[u32]) -> Vec<Node> {
    let is_many = |count: u32| count as usize >= MANY;
    let (many, all) =
        (counts.iter().filter(|&&count| is_many(count)).count(), counts.iter().filter(|&&c| c > 0).count());
    if many < ENOUGH || 4 * many < all {
        return Vec::new();
    }
    (0..).zip(counts).filter(|&(_, &count)| count > 0 && !is_many(count)).map(|(class, _)| class).collect()
}

/// The samples that say how classes scatter: those of classes with few samples beside others with many are left out.
pub(super) fn evidence(dim: usize, classes: &[Vec<f32>]) -> Vec<&[f32]> {
    let few = few_beside_many(&counts(dim, classes));
    let is_evidence = |&class: &usize| few.binary_search(&(class as Node)).is_err();
    (0..classes.len()).filter(is_evidence).map(|class| classes[class].as_slice()).collect()
}

fn counts(dim: usize, classes: &[Vec<f32>]) -> Vec<u32> {
    classes.iter().map(|rows| (rows.len() / dim) as u32).collect()
}

/// What is known of classes before their samples are seen.
#[derive(Clone, Copy)]
pub(super) struct Related<'a> {
    pub(super) graph: &'a Taxonomy,
    /// Embeddings of the classes' texts, where there are any.
    pub(super) texts: Option<&'a TextRows>,
}

/// The part of a candidate that depends on the metric alone.
pub(super) struct Space {
    pub(super) model: PriorModel,
    /// Classes with few samples beside others with many: these are no evidence for others.
    pub(super) few: Vec<Node>,
    /// Whether its first dimensions are those along which classes differ.
    is_turned: bool,
}

impl Space {
    /// Fits metric, statistics and prior to samples `[n, dim]` of each class; class `i` is node `i` of the graph.
    pub(super) fn fit(
        metric: MetricConfig,
        dim: usize,
        classes: &[Vec<f32>],
        related: Related<'_>,
        seed: u64,
    ) -> Result<Self> {
        Self::of_metric(Metric::fit(metric, dim, evidence(dim, classes).into_iter())?, classes, related, seed)
    }

    /// The same with a metric that is there already.
    pub(super) fn of_metric(
        metric: Metric,
        classes: &[Vec<f32>],
        related: Related<'_>,
        seed: u64,
    ) -> Result<Self> {
        let dim = metric.dim();
        let counts = counts(dim, classes);
        let few = few_beside_many(&counts);
        let mut builder = StatisticsBuilder::new(dim, classes.len())?;
        let mut means = vec![0.0; classes.len() * dim];
        for (first, some) in (0..).step_by(TOGETHER).zip(classes.chunks(TOGETHER)) {
            let mapped: Vec<Vec<f32>> =
                some.par_iter().map(|rows| Ok(metric.apply(rows)?)).collect::<Result<_>>()?;
            for (class, rows) in (first..).zip(mapped) {
                if few.binary_search(&(class as Node)).is_err() {
                    builder.add(class as Node, &rows)?;
                }
                if counts[class] > 0 {
                    let mean = class_means(&rows, counts[class] as usize, dim);
                    means[class * dim..][..dim].copy_from_slice(&mean);
                }
            }
        }
        let statistics = match builder.finish() {
            Err(ModelError::NoScatter) => of_single_samples(&metric, dim, classes, related.graph)?,
            known => ClassStatistics::new(dim, means, counts, known?.within().to_vec())?,
        };
        Self::of_statistics(metric, statistics, related, seed)
    }

    /// The same for statistics that are there already.
    pub(super) fn of_statistics(
        metric: Metric,
        statistics: ClassStatistics,
        related: Related<'_>,
        seed: u64,
    ) -> Result<Self> {
        let config = FitConfig { seed, ..FitConfig::default() };
        let counts: Vec<u32> = (0..statistics.len() as Node).map(|class| statistics.count(class)).collect();
        let few = few_beside_many(&counts);
        let mut known_counts = counts;
        for &class in &few {
            known_counts[class as usize] = 0;
        }
        let (means, within) = (statistics.means().to_vec(), statistics.within().to_vec());
        let known = ClassStatistics::new(statistics.dim(), means, known_counts, within)?;
        let prior = match GraphPrior::fit(related.graph, &known, config) {
            Err(ModelError::TooFewClasses { .. }) => GraphPrior::of_few_classes(&known),
            prior => prior?,
        };
        let is_turned = metric.config().whiten.is_some();
        let mut model = PriorModel::of_statistics(metric, statistics, prior);
        if let Some(texts) = related.texts {
            match model.take_texts(texts.clone(), &known, config) {
                // Two classes say nothing about what names tell.
                Err(ModelError::TooFewClasses { .. }) => {}
                taken => taken?,
            }
        }
        Ok(Self { model, few, is_turned })
    }

    /// The posterior of every class with samples, at a scale of the prior.
    pub(super) fn posteriors(&self, graph: &Taxonomy, scale: f64) -> Result<Vec<Option<Posterior>>> {
        let statistics = self.model.statistics();
        let known = KnownClasses::without(graph, statistics, &self.few);
        let prior = self.model.prior().clone().with_scale(scale)?;
        let of_class = |class: Node| -> Result<Option<Posterior>> {
            let count = statistics.count(class) as usize;
            if count == 0 {
                return Ok(None);
            }
            // Scale comes with the samples.
            let before = self.model.prior_of_class(&known, class, true)?;
            let mean: Vec<f64> = statistics.mean(class).iter().map(|&x| f64::from(x)).collect();
            Ok(Some(prior.posterior_of_mean(&before, &mean, count)?))
        };
        (0..statistics.len() as Node).into_par_iter().map(of_class).collect()
    }

    /// Borders between the classes with many samples, that begin at the prototypes; `None` where there are too few such classes, or so
    /// many that fitting borders would take too long.
    pub(super) fn borders(
        &self,
        posteriors: &[Option<Posterior>],
        classes: &[Vec<f32>],
        temperature: f32,
    ) -> Result<Option<Start>> {
        let dim = self.model.metric().dim();
        let most = classes.iter().map(|rows| rows.len() / dim).max().unwrap_or(0);
        let least = if most < MANY { MANY_OF_FEW } else { MANY };
        let many: Vec<Node> = (0..classes.len() as Node)
            .filter(|&class| classes[class as usize].len() >= least * dim)
            .collect();
        let known = posteriors.iter().flatten().count() - self.few.len();
        if !self.is_turned || many.len() < 2 || known < 2 {
            return Ok(None);
        }
        // As many dimensions as the time allows, those first along which classes differ. If need be, fewer samples.
        let samples: usize = many.iter().map(|&class| classes[class as usize].len() / dim).sum();
        let rank = (WORK / many.len() / samples).clamp((known - 1).min(dim), dim);
        let most = WORK / (many.len() * rank) / many.len();
        if most < least {
            return Ok(None);
        }
        let prototypes: Vec<f32> = many
            .iter()
            .filter_map(|&class| posteriors[class as usize].as_ref())
            .flat_map(|posterior| &posterior.prototype)
            .copied()
            .collect();
        let (mut rows, mut labels) = (Vec::new(), Vec::new());
        for &class in &many {
            let own = &classes[class as usize];
            let own = &own[..own.len().min(most * dim)];
            for row in self.model.metric().apply(own)?.chunks_exact(dim) {
                rows.extend_from_slice(&row[..rank]);
            }
            labels.extend(std::iter::repeat_n(class, own.len() / dim));
        }
        let borders = Borders::of_prototypes(many, &prototypes, dim, rank, temperature)?;
        Ok(Some(Start { borders, rows, labels }))
    }
}

/// Borders before they are fitted, and the samples to fit them to.
pub(super) struct Start {
    borders: Borders,
    /// `[n, rank]`
    rows: Vec<f32>,
    labels: Vec<Node>,
}

impl Start {
    /// Fits the borders.
    pub(super) fn learn(&self, ridge: f64, is_stopped: &(dyn Fn() -> bool + Sync)) -> Result<Borders> {
        Ok(self.borders.learn(&self.rows, self.borders.rank(), &self.labels, ridge, is_stopped)?)
    }
}

/// The rules of all classes, ready for samples.
pub(super) fn scorer(
    model: &PriorModel,
    posteriors: &[Option<Posterior>],
    borders: Option<&Borders>,
    temperature: f32,
    spread: f32,
) -> Scorer {
    Scorer::new(model.metric().dim(), &rules(model, posteriors, borders, temperature, spread))
}

/// The rule of each class.
pub(super) fn rules(
    model: &PriorModel,
    posteriors: &[Option<Posterior>],
    borders: Option<&Borders>,
    temperature: f32,
    spread: f32,
) -> Vec<ClassRule> {
    let dim = model.metric().dim();
    let of_border = |class: usize| borders.and_then(|borders| borders.of(class as Node));
    let rule = |(class, posterior): (usize, &Option<Posterior>)| match posterior {
        Some(posterior) => ClassRule {
            prototype: Rule::of_posterior(posterior, temperature, spread),
            border: of_border(class).map(Rule::of_border),
        },
        // A class without samples is never the answer.
        None => ClassRule { prototype: Rule { weights: vec![0.0; dim], bias: f32::MIN }, border: None },
    };
    posteriors.iter().enumerate().map(rule).collect()
}

/// Statistics where no class has two samples. A prototype is half its sample and half the mean of its siblings, of length 1 again. Half of how
/// siblings scatter around their common mean counts as the scatter within classes.
fn of_single_samples(
    metric: &Metric,
    dim: usize,
    classes: &[Vec<f32>],
    graph: &Taxonomy,
) -> Result<ClassStatistics> {
    let means: Vec<f32> = classes
        .iter()
        .map(|rows| if rows.is_empty() { Ok(vec![0.0; dim]) } else { Ok(metric.apply(&rows[..dim])?) })
        .collect::<Result<Vec<_>>>()?
        .concat();
    let counts: Vec<u32> = classes.iter().map(|rows| (rows.len() / dim) as u32).collect();
    let known = |n: &Node| counts.get(*n as usize).is_some_and(|&count| count > 0);
    let groups = graph.nodes().map(|n| graph.children(n).iter().copied().filter(known).collect::<Vec<_>>());
    // Below the root, or without a class graph, all classes are siblings, which says nothing.
    let all = counts.iter().filter(|&&count| count > 0).count();
    let groups: Vec<Vec<Node>> = groups.filter(|group| group.len() > 1 && group.len() < all).collect();
    let whole: Vec<Vec<Node>> = vec![(0..counts.len() as Node).filter(known).collect()];
    let scattering = if groups.is_empty() { &whole } else { &groups };
    let (mut scatter, mut freedom) = (vec![0.0; dim], 0);
    for group in scattering {
        let row = |class: Node| &means[class as usize * dim..][..dim];
        let mut mean = vec![0.0; dim];
        for &class in group {
            mean.iter_mut().zip(row(class)).for_each(|(sum, &x)| *sum += f64::from(x) / group.len() as f64);
        }
        for &class in group {
            for ((sum, &x), mean) in scatter.iter_mut().zip(row(class)).zip(&mean) {
                *sum += (f64::from(x) - mean) * (f64::from(x) - mean);
            }
        }
        freedom += group.len() - 1;
    }
    // What stands for a class is half its sample and half its siblings.
    let mut mixed = means.clone();
    for group in &groups {
        let mut mean = vec![0.0; dim];
        for &class in group {
            let row = &means[class as usize * dim..][..dim];
            mean.iter_mut().zip(row).for_each(|(sum, &x)| *sum += f64::from(x) / group.len() as f64);
        }
        for &class in group {
            let row = &mut mixed[class as usize * dim..][..dim];
            row.iter_mut().zip(&mean).for_each(|(x, mean)| *x = (0.5 * f64::from(*x) + 0.5 * mean) as f32);
            let length: f64 = row.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt();
            if length > 0.0 {
                for x in row {
                    *x = (f64::from(*x) / length) as f32;
                }
            }
        }
    }
    // The same in all directions: single samples say nothing of single directions.
    let mean = scatter.iter().sum::<f64>() / (dim * freedom.max(1)) as f64;
    let within = if mean > 0.0 { mean / 2.0 } else { 1.0 };
    Ok(ClassStatistics::new(dim, mixed, counts, vec![within; dim])?)
}
