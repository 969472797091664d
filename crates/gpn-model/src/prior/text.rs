//! A prior from class texts: classes whose names or descriptions are alike look alike.

use gpn_taxonomy::Node;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::check::{finite, rows_of};
use super::field::KnownClasses;
use super::fit::{FitConfig, GraphPrior, HIDDEN, above_noise};
use super::hiding::hide;
use super::pooling::{pool, pooled_share};
use super::posterior::{ClassPrior, Share, Source};
use super::statistics::ClassStatistics;
use crate::error::{ModelError, Result};
use crate::vector::dot;

/// Settings of a [`TextPrior`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TextConfig {
    /// How many classes of the most similar texts are looked at. Default: 10.
    pub nearest: usize,
    /// What cosines are multiplied with before the softmax that weighs these classes. Default: 10.
    pub sharpness: f64,
}

impl Default for TextConfig {
    fn default() -> Self {
        Self { nearest: 10, sharpness: 10.0 }
    }
}

impl TextConfig {
    pub(super) fn check(&self) -> Result<()> {
        if self.nearest == 0 {
            return Err(ModelError::Zero { what: "number of nearest texts" });
        }
        if !(self.sharpness >= 0.0 && self.sharpness.is_finite()) {
            let (what, range) = ("sharpness of the text prior", "0 upwards");
            return Err(ModelError::OutOfRange { what, range, value: self.sharpness });
        }
        Ok(())
    }
}

/// The prior of a class by its text: the mean of the known classes with the most similar texts.
///
/// ```
/// use gpn_model::prior::{FitConfig, StatisticsBuilder, TextConfig, TextPrior, TextRows};
///
/// let mut samples = StatisticsBuilder::new(1, 4)?;
/// for (class, rows) in [[1.0, 2.0], [1.5, 2.0], [8.0, 9.0], [8.0, 8.5]].iter().enumerate() {
///     samples.add(class as u32, rows)?;
/// }
/// let samples = samples.finish()?;
/// // Embeddings of the texts of the four classes.
/// let texts = TextRows::new(2, &[1.0, 0.1, 0.9, 0.2, 0.1, 1.0, 0.0, 1.0])?;
/// let fitted = TextPrior::fit(&texts, &samples, TextConfig::default(), FitConfig::default())?;
/// let prior = fitted.of(&texts, &samples, &[0.1, 0.9])?;
/// assert!(prior.mean[0] > 5.0);
/// # Ok::<(), gpn_model::ModelError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct TextPrior {
    pub(super) config: TextConfig,
    pub(super) grand: Vec<f64>,
    pub(super) weight: f64,
    pub(super) variance: Vec<f64>,
}

/// Embeddings of class texts, made to length 1; row `i` belongs to class `i`. A row of zeros is a class without a text.
#[derive(Clone, Debug, PartialEq)]
pub struct TextRows {
    dim: usize,
    rows: Vec<f32>,
}

impl TextRows {
    /// Rows from a table `[classes, dim]`.
    pub fn new(dim: usize, table: &[f32]) -> Result<Self> {
        rows_of("text embeddings", table, dim)?;
        finite("text embeddings", table)?;
        Ok(Self { dim, rows: table.chunks_exact(dim).flat_map(unit).collect() })
    }

    /// Rows that have length 1 already, bit for bit, as a file holds them.
    pub(super) fn of_unit_rows(dim: usize, table: &[f32]) -> Result<Self> {
        rows_of("text embeddings", table, dim)?;
        finite("text embeddings", table)?;
        Ok(Self { dim, rows: table.to_vec() })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len() / self.dim
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Length of a text embedding.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The row of a class, `[dim]`, of length 1; `None` where the class has no text.
    pub fn row(&self, class: Node) -> Option<&[f32]> {
        let row = self.rows.get(class as usize * self.dim..)?.get(..self.dim)?;
        row.iter().any(|&x| x != 0.0).then_some(row)
    }
}

impl TextPrior {
    /// Fits weight and variance to known classes by hiding, as [`GraphPrior::fit`] does.
    ///
    /// O(classes * text dim) for each class predicted; not more than 1,000 are in a round. The same result with any number of
    /// threads.
    pub fn fit(
        texts: &TextRows,
        statistics: &ClassStatistics,
        config: TextConfig,
        fit: FitConfig,
    ) -> Result<Self> {
        if fit.rounds == 0 {
            return Err(ModelError::Zero { what: "rounds of hiding" });
        }
        let known: Vec<Node> = with_text(texts, statistics).collect();
        let rounds = (0..fit.rounds * HIDDEN.len()).map(|round| {
            let count = (HIDDEN[round % HIDDEN.len()] * known.len() as f64) as usize;
            hide(&known, count, fit.seed, round as u64)
        });
        Self::fit_hiding(texts, statistics, config, rounds, fit.most_classes.min(MOST))
    }

    /// [`fit`](Self::fit) with chosen classes hidden in each round, of which the first `most_classes` are predicted.
    pub fn fit_hiding(
        texts: &TextRows,
        statistics: &ClassStatistics,
        config: TextConfig,
        rounds: impl IntoIterator<Item = Vec<Node>>,
        most_classes: usize,
    ) -> Result<Self> {
        config.check()?;
        let without = GraphPrior::without_graph(statistics)?;
        let dim = statistics.dim();
        let mut prior = Self { config, grand: without.grand, weight: 0.0, variance: without.between };
        let mut rows: Vec<(Node, Vec<f64>)> = Vec::new();
        for hidden in rounds {
            let mut is_hidden = vec![false; statistics.len()];
            for &class in &hidden {
                is_hidden[class as usize] = true;
            }
            let left: Vec<Node> =
                with_text(texts, statistics).filter(|&class| !is_hidden[class as usize]).collect();
            let predict = |&class: &Node| {
                let row = texts.row(class)?;
                let near = prior.nearest(texts, left.iter().copied(), row);
                Some((class, prior.deviation(&near, statistics)))
            };
            let predicted = &hidden[..hidden.len().min(most_classes)];
            rows.extend(predicted.par_iter().filter_map(predict).collect::<Vec<_>>());
        }
        if rows.is_empty() {
            return Ok(prior);
        }
        let truth = |class: Node, d: usize| f64::from(statistics.mean(class)[d]) - prior.grand[d];
        let (mut tp, mut pp, mut noise) = (0.0, 0.0, 0.0);
        for (class, predicted) in &rows {
            for (d, p) in predicted.iter().enumerate() {
                tp += truth(*class, d) * p;
                pp += p * p;
            }
            noise += 1.0 / f64::from(statistics.count(*class));
        }
        let weight = if pp > 0.0 { f64::max(tp / pp, 0.0) } else { 0.0 };
        let mut residual = vec![0.0; dim];
        for (class, predicted) in &rows {
            for (d, p) in predicted.iter().enumerate() {
                residual[d] += (truth(*class, d) - weight * p) * (truth(*class, d) - weight * p);
            }
        }
        let count = rows.len() as f64;
        let variance = residual.iter().zip(statistics.within());
        prior.variance =
            variance.map(|(sum, within)| above_noise(sum / count, within * noise / count)).collect();
        pool(&mut prior.variance, statistics.within(), pooled_share(statistics));
        prior.weight = weight;
        Ok(prior)
    }

    /// The prior of a class with this text embedding, by the texts of the classes known in `statistics`.
    /// O(classes * text dim).
    pub fn of(&self, texts: &TextRows, statistics: &ClassStatistics, text: &[f32]) -> Result<ClassPrior> {
        let near = self.nearest_known(texts, statistics, text)?;
        let deviation = self.deviation(&near, statistics);
        let mean = self.grand.iter().zip(&deviation).map(|(grand, d)| grand + self.weight * d).collect();
        Ok(ClassPrior { mean, variance: self.variance.clone() })
    }

    /// The prior of a class of the graph by its own text, as the texts of the other known classes tell it; `None` where it has no
    /// text. O(classes * text dim).
    pub(super) fn of_class(
        &self,
        texts: &TextRows,
        known: &KnownClasses<'_>,
        class: Node,
    ) -> Option<ClassPrior> {
        let near = self.nearest_others(texts, known, class)?;
        let deviation = self.deviation(&near, known.statistics());
        let mean = self.grand.iter().zip(&deviation).map(|(grand, d)| grand + self.weight * d).collect();
        Some(ClassPrior { mean, variance: self.variance.clone() })
    }

    /// What the others contribute to [`of_class`](Self::of_class).
    pub(super) fn shares_of_class(
        &self,
        texts: &TextRows,
        known: &KnownClasses<'_>,
        class: Node,
    ) -> Option<Vec<Share>> {
        Some(self.as_shares(&self.nearest_others(texts, known, class)?))
    }

    fn nearest_others(
        &self,
        texts: &TextRows,
        known: &KnownClasses<'_>,
        class: Node,
    ) -> Option<Vec<(Node, f64)>> {
        let row = texts.row(class)?;
        let others = with_text(texts, known.statistics());
        let others = others.filter(|&other| other != class && known.is_known(other));
        Some(self.nearest(texts, others, row)).filter(|near| !near.is_empty())
    }

    /// What each known class and the grand mean contribute to [`of`](Self::of), largest first; adds up to 1.
    pub fn shares(&self, texts: &TextRows, statistics: &ClassStatistics, text: &[f32]) -> Result<Vec<Share>> {
        Ok(self.as_shares(&self.nearest_known(texts, statistics, text)?))
    }

    fn as_shares(&self, near: &[(Node, f64)]) -> Vec<Share> {
        let share = |&(class, share): &(Node, f64)| Share {
            source: Source::Text(class),
            share: (self.weight * share) as f32,
        };
        let mut shares: Vec<Share> = near.iter().map(share).collect();
        let rest = 1.0 - shares.iter().map(|share| f64::from(share.share)).sum::<f64>();
        shares.push(Share { source: Source::GrandMean, share: rest as f32 });
        shares
    }

    /// The settings.
    pub fn config(&self) -> TextConfig {
        self.config
    }

    /// The weight of what texts predict.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// Variance of a class mean around what its text predicts, `[dim]`.
    pub fn variance(&self) -> &[f64] {
        &self.variance
    }

    fn nearest_known(
        &self,
        texts: &TextRows,
        statistics: &ClassStatistics,
        text: &[f32],
    ) -> Result<Vec<(Node, f64)>> {
        if text.len() != texts.dim {
            let expected = texts.dim.to_string();
            return Err(ModelError::WrongLength { what: "text embedding", expected, got: text.len() });
        }
        finite("text embedding", text)?;
        let text: Vec<f32> = unit(text).collect();
        if text.iter().all(|&x| x == 0.0) {
            return Ok(Vec::new());
        }
        Ok(self.nearest(texts, with_text(texts, statistics), &text))
    }

    /// The classes with the most similar texts and their weights, which add up to 1; of equal ones the first.
    fn nearest(
        &self,
        texts: &TextRows,
        classes: impl Iterator<Item = Node>,
        text: &[f32],
    ) -> Vec<(Node, f64)> {
        let cosine = |class| texts.row(class).map(|row| (class, dot(row, text)));
        let mut near: Vec<(Node, f32)> = classes.filter_map(cosine).collect();
        let order = |a: &(Node, f32), b: &(Node, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        if near.len() > self.config.nearest {
            near.select_nth_unstable_by(self.config.nearest - 1, order);
            near.truncate(self.config.nearest);
        }
        near.sort_unstable_by(order);
        let Some(&(_, most)) = near.first() else { return Vec::new() };
        let weigh = |cosine: f32| libm::exp(self.config.sharpness * f64::from(cosine - most));
        let sum: f64 = near.iter().map(|&(_, cosine)| weigh(cosine)).sum();
        near.into_iter().map(|(class, cosine)| (class, weigh(cosine) / sum)).collect()
    }

    fn deviation(&self, near: &[(Node, f64)], statistics: &ClassStatistics) -> Vec<f64> {
        let mut deviation = vec![0.0; self.grand.len()];
        for &(class, weight) in near {
            let mean = statistics.mean(class).iter().zip(&self.grand);
            deviation.iter_mut().zip(mean).for_each(|(d, (&x, grand))| *d += weight * (f64::from(x) - grand));
        }
        deviation
    }
}

/// Predicting a class looks at all others, so that more would take long with many classes.
const MOST: usize = 1000;

/// The known classes that have a text.
fn with_text<'a>(texts: &'a TextRows, statistics: &'a ClassStatistics) -> impl Iterator<Item = Node> + 'a {
    statistics.known().filter(|&class| texts.row(class).is_some())
}

/// A row made to length 1; zeros stay zeros.
fn unit(row: &[f32]) -> impl Iterator<Item = f32> + '_ {
    let length = row.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt();
    row.iter().map(move |&x| if length > 0.0 { (f64::from(x) / length) as f32 } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prior::StatisticsBuilder;
    use crate::prior::sample::noise;

    /// Classes whose means are a turn of their texts, or have nothing to do with them.
    fn fitted(is_alike: bool, threads: usize) -> (TextPrior, TextRows, ClassStatistics) {
        let (mut values, classes) = (noise(4), 60);
        let mut table: Vec<f32> = Vec::new();
        let mut builder = StatisticsBuilder::new(2, classes).unwrap();
        for class in 0..classes {
            let text: Vec<f32> = (0..2).map(|_| values()).collect();
            let length = text[0].hypot(text[1]);
            let other: Vec<f32> = (0..2).map(|_| 3.0 * values()).collect();
            let at = if is_alike { vec![-3.0 * text[1] / length, 3.0 * text[0] / length] } else { other };
            let rows: Vec<f32> = (0..10).flat_map(|_| at.clone()).map(|x| x + 0.5 * values()).collect();
            table.extend(text);
            builder.add(class as Node, &rows).unwrap();
        }
        table[10..12].fill(0.0);
        let (texts, statistics) = (TextRows::new(2, &table).unwrap(), builder.finish().unwrap());
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let fit =
            || TextPrior::fit(&texts, &statistics, TextConfig::default(), FitConfig::default()).unwrap();
        (pool.install(fit), texts, statistics)
    }

    #[test]
    fn texts_count_where_they_tell_something() {
        let (alike, texts, statistics) = fitted(true, 1);
        assert_eq!(fitted(true, 3).0, alike);
        let (unlike, ..) = fitted(false, 1);
        let mean = |prior: &TextPrior| prior.variance().iter().sum::<f64>() / 2.0;
        assert!(alike.weight() > 0.8 && unlike.weight() < 0.5, "{} {}", alike.weight(), unlike.weight());
        assert!(mean(&alike) < 0.2 * mean(&unlike));
        assert_eq!(texts.row(5), None);
        let prior = alike.of(&texts, &statistics, &[2.0, 0.0]).unwrap();
        assert!((prior.mean[1] - 3.0).abs() < 0.6, "{prior:?}");
        let shares = alike.shares(&texts, &statistics, &[2.0, 0.0]).unwrap();
        assert_eq!(shares.len(), 11);
        assert!((shares.iter().map(|share| share.share).sum::<f32>() - 1.0).abs() < 1e-5);
    }

    #[test]
    fn a_class_is_told_by_the_texts_of_others() {
        let (prior, texts, statistics) = fitted(true, 1);
        let mut graph = gpn_taxonomy::TaxonomyBuilder::new();
        for class in 0..texts.len() {
            graph.add_class(&class.to_string());
        }
        let graph = graph.build().unwrap().taxonomy;
        let own = texts.row(7).unwrap().to_vec();
        let others = KnownClasses::without(&graph, &statistics, &[7]);
        let all = KnownClasses::new(&graph, &statistics);
        let of_others = prior.of_class(&texts, &others, 7).unwrap();
        assert_eq!(prior.of_class(&texts, &all, 7).unwrap(), of_others);
        assert_ne!(prior.of(&texts, &statistics, &own).unwrap(), of_others);
        let shares = prior.shares_of_class(&texts, &all, 7).unwrap();
        assert!(shares.iter().all(|share| share.source != Source::Text(7)));
        assert_eq!(prior.of_class(&texts, &all, 5), None, "it has no text");
    }

    #[test]
    fn a_class_without_text_is_expected_at_the_grand_mean() {
        let (prior, texts, statistics) = fitted(true, 1);
        let of = prior.of(&texts, &statistics, &[0.0, 0.0]).unwrap();
        assert_eq!(of.mean, statistics.grand_mean());
        assert!(prior.of(&texts, &statistics, &[0.0]).is_err());
        assert!(TextRows::new(2, &[f32::INFINITY, 0.0]).is_err());
    }
}
