//! The prior of class means, fitted in closed form by hiding training classes.

use gpn_taxonomy::{Node, Taxonomy};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::field::{Around, KnownClasses};
use super::hiding::hide;
use super::pooling::{pool, pooled_share};
use super::statistics::ClassStatistics;
use crate::error::{ModelError, Result};

/// Settings of [`GraphPrior::fit`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FitConfig {
    /// How often each share of the classes is hidden. Default: 4.
    pub rounds: usize,
    /// Hidden classes that are predicted in a round, at most: these are enough for a good fit. Default: 4,096.
    pub most_classes: usize,
    /// What is drawn depends on it. Default: 0.
    pub seed: u64,
}

impl Default for FitConfig {
    fn default() -> Self {
        Self { rounds: 4, most_classes: 4096, seed: 0 }
    }
}

/// Shares of the known classes that are hidden. Few, as when a class is added to many; and nearly all, so that classes far
/// from all known ones are met, too.
pub(super) const HIDDEN: [f64; 3] = [1.0 / 3.0, 2.0 / 3.0, 0.9];
/// Variances below this share of what they are part of count as this.
const FLOOR: f64 = 1e-3;
/// Rows that one task sums up.
const ROWS: usize = 128;
/// With fewer known classes there is nothing to learn how classes differ from.
const FEWEST: usize = 3;

/// What a class mean is expected to be before samples of the class are seen.
///
/// By place in the graph the mean of a class is expected at `g + weight * d` with variance `v * slope`: `g` is the grand mean,
/// `d` the deviation that the known classes around it predict, and `v` how far away they are (see [`KnownClasses`]). Without
/// a place it is expected at `g` with variance `between`. All variances are per dimension.
///
/// ```
/// use gpn_model::prior::{FitConfig, GraphPrior, KnownClasses, StatisticsBuilder};
/// use gpn_taxonomy::TaxonomyBuilder;
///
/// let mut graph = TaxonomyBuilder::new();
/// let [animal, cat, dog, lynx] = ["animal", "cat", "dog", "lynx"].map(|id| graph.add_class(id));
/// for (parent, child) in [(animal, cat), (animal, dog), (cat, lynx)] {
///     graph.add_edge(parent, child, None);
/// }
/// let graph = graph.build()?.taxonomy;
/// let mut samples = StatisticsBuilder::new(1, 3)?;
/// samples.add(animal, &[4.0, 6.0])?;
/// samples.add(cat, &[8.0, 9.0])?;
/// samples.add(dog, &[1.0, 3.0])?;
/// let samples = samples.finish()?;
///
/// let fitted = GraphPrior::fit(&graph, &samples, FitConfig::default())?;
/// let known = KnownClasses::new(&graph, &samples);
/// let prior = fitted.of(&known, lynx);
/// let posterior = fitted.posterior(&prior, &[10.0])?;
/// let prototype = f64::from(posterior.prototype[0]);
/// assert!(prior.mean[0] < prototype && prototype < 10.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct GraphPrior {
    pub(super) grand: Vec<f64>,
    pub(super) within: Vec<f64>,
    pub(super) between: Vec<f64>,
    pub(super) weight: f64,
    pub(super) slope: Vec<f64>,
    pub(super) scale: f64,
}

impl GraphPrior {
    /// Fits the prior to classes with samples. `statistics` has a row for each class of `graph` or for the first of them.
    ///
    /// Known classes are hidden at random, several times; each hidden class is predicted by those that are left. `weight` and
    /// `slope` are those of largest likelihood: least squares weighted by the inverse distance, and the mean of the squared error
    /// by distance, less the noise of a mean of so many samples.
    ///
    /// O(rounds * (classes + edges)) and O(dim) for each class predicted; the same result with any number of threads.
    pub fn fit(graph: &Taxonomy, statistics: &ClassStatistics, config: FitConfig) -> Result<Self> {
        if config.rounds == 0 {
            return Err(ModelError::Zero { what: "rounds of hiding" });
        }
        let known: Vec<Node> = statistics.known().collect();
        let rounds = (0..config.rounds * HIDDEN.len()).map(|round| {
            let count = (HIDDEN[round % HIDDEN.len()] * known.len() as f64) as usize;
            hide(&known, count, config.seed, round as u64)
        });
        Self::fit_hiding(graph, statistics, rounds, config.most_classes)
    }

    /// [`fit`](Self::fit) with chosen classes hidden in each round, of which the first `most_classes` are predicted.
    pub fn fit_hiding(
        graph: &Taxonomy,
        statistics: &ClassStatistics,
        rounds: impl IntoIterator<Item = Vec<Node>>,
        most_classes: usize,
    ) -> Result<Self> {
        if statistics.len() > graph.len() {
            let expected = format!("at most the {} classes of the graph", graph.len());
            return Err(ModelError::WrongLength {
                what: "class statistics",
                expected,
                got: statistics.len(),
            });
        }
        let mut prior = Self::without_graph(statistics)?;
        let mut sums = Sums::new(statistics.dim());
        for hidden in rounds {
            let left = KnownClasses::without(graph, statistics, &hidden);
            let predicted = &hidden[..hidden.len().min(most_classes)];
            let parts: Vec<Sums> = predicted
                .par_chunks(ROWS)
                .map(|classes| {
                    let mut part = Sums::new(statistics.dim());
                    for &class in classes {
                        part.add(&left, &left.around(class), class, &prior.grand);
                    }
                    part
                })
                .collect();
            for part in &parts {
                sums.join(part);
            }
        }
        if sums.rows > 0 {
            prior.weight = sums.weight();
            prior.slope = sums.slope(prior.weight, &prior.within);
            pool(&mut prior.slope, &prior.within, pooled_share(statistics));
        }
        Ok(prior)
    }

    /// The prior of classes without a place in a graph: only the grand mean and how far classes are from it.
    pub fn without_graph(statistics: &ClassStatistics) -> Result<Self> {
        let known = statistics.known().count();
        if known < FEWEST {
            return Err(ModelError::TooFewClasses { least: FEWEST, got: known });
        }
        Ok(Self::of_few_classes(statistics))
    }

    /// The same for any number of classes: of one or two it says little, but something.
    pub fn of_few_classes(statistics: &ClassStatistics) -> Self {
        let known: Vec<Node> = statistics.known().collect();
        let grand = statistics.grand_mean();
        let within = statistics.within().to_vec();
        let mut between = vec![0.0; grand.len()];
        let mut noise = 0.0;
        for &class in &known {
            for ((sum, &x), grand) in between.iter_mut().zip(statistics.mean(class)).zip(&grand) {
                *sum += (f64::from(x) - grand) * (f64::from(x) - grand);
            }
            noise += 1.0 / f64::from(statistics.count(class));
        }
        let count = known.len().max(1) as f64;
        for (between, within) in between.iter_mut().zip(&within) {
            *between = above_noise(*between / count, within * noise / count);
        }
        pool(&mut between, &within, pooled_share(statistics));
        // Until a graph says otherwise, a class is as far from its prior as from the grand mean.
        let slope = between.clone();
        Self { grand, within, between, weight: 1.0, slope, scale: 1.0 }
    }

    /// Length of embeddings.
    pub fn dim(&self) -> usize {
        self.grand.len()
    }

    /// The mean of all class means, `[dim]`.
    pub fn grand_mean(&self) -> &[f64] {
        &self.grand
    }

    /// Variance of samples within a class, `[dim]`.
    pub fn within(&self) -> &[f64] {
        &self.within
    }

    /// Variance of class means around the grand mean, `[dim]`.
    pub fn between(&self) -> &[f64] {
        &self.between
    }

    /// The weight of what the graph predicts.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// Variance of a class mean around its prior for each unit of distance in the graph, `[dim]`.
    pub fn slope(&self) -> &[f64] {
        &self.slope
    }

    /// What all prior variances are multiplied with; 1 after the fit.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// The same prior, with all its variances multiplied by `scale` instead: above 1 samples count more, below 1 the prior
    /// does.
    pub fn with_scale(mut self, scale: f64) -> Result<Self> {
        if !(scale > 0.0 && scale.is_finite()) {
            return Err(ModelError::NotPositive { what: "scale of the prior", value: scale as f32 });
        }
        self.scale = scale;
        Ok(self)
    }
}

/// A variance less the noise that is part of it.
pub(super) fn above_noise(variance: f64, noise: f64) -> f64 {
    // Where classes do not differ at all, a number above zero keeps the divisions whole.
    (variance - noise).max(FLOOR * variance).max(FLOOR * noise).max(f64::MIN_POSITIVE)
}

/// Sums over predicted classes, each weighted by the inverse of its distance; `t` is the deviation of a class from the grand
/// mean, `p` what was predicted.
struct Sums {
    rows: usize,
    tt: Vec<f64>,
    tp: Vec<f64>,
    pp: Vec<f64>,
    /// Sum of `1 / samples`.
    noise: f64,
}

impl Sums {
    fn new(dim: usize) -> Self {
        Self { rows: 0, tt: vec![0.0; dim], tp: vec![0.0; dim], pp: vec![0.0; dim], noise: 0.0 }
    }

    fn add(&mut self, left: &KnownClasses<'_>, around: &Around, class: Node, grand: &[f64]) {
        if !around.is_related {
            return;
        }
        let predicted = left.deviation(around, grand);
        let truth = left.statistics().mean(class);
        let weight = 1.0 / around.variance;
        for (d, (p, &x)) in predicted.iter().zip(truth).enumerate() {
            let t = f64::from(x) - grand[d];
            self.tt[d] += weight * t * t;
            self.tp[d] += weight * t * p;
            self.pp[d] += weight * p * p;
        }
        self.noise += weight / f64::from(left.statistics().count(class));
        self.rows += 1;
    }

    fn join(&mut self, other: &Self) {
        let add = |to: &mut [f64], from: &[f64]| to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        add(&mut self.tt, &other.tt);
        add(&mut self.tp, &other.tp);
        add(&mut self.pp, &other.pp);
        self.noise += other.noise;
        self.rows += other.rows;
    }

    fn weight(&self) -> f64 {
        let (tp, pp): (f64, f64) = (self.tp.iter().sum(), self.pp.iter().sum());
        // A prediction that points the wrong way is worth nothing.
        if pp > 0.0 { (tp / pp).max(0.0) } else { 0.0 }
    }

    fn slope(&self, weight: f64, within: &[f64]) -> Vec<f64> {
        let residual = |d: usize| self.tt[d] - 2.0 * weight * self.tp[d] + weight * weight * self.pp[d];
        let slope = |d: usize| above_noise(residual(d).max(0.0), within[d] * self.noise) / self.rows as f64;
        (0..within.len()).map(slope).collect()
    }
}
