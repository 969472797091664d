//! The graph prior as one fitted thing: metric, statistics of the training classes, priors, and the scale of
//! distances.

use gpn_taxonomy::{Node, Taxonomy};
use serde::{Deserialize, Serialize};

use super::choose::{Judged, Tasks};
use super::decision::Decision;
use super::field::KnownClasses;
use super::fit::{FitConfig, GraphPrior};
use super::join::join_shares;
use super::metric::{Metric, MetricConfig};
use super::posterior::{ClassPrior, Posterior, Share, Source};
use super::scorer::Rule;
use super::state::StateTensor;
use super::statistics::{ClassStatistics, StatisticsBuilder};
use super::text::{TextConfig, TextPrior, TextRows};
use crate::distance::squared_distance;
use crate::error::{ModelError, Result};

/// The space in which distances are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MetricName {
    /// Whichever does best on tasks of hidden training classes.
    #[default]
    Auto,
    /// Embeddings as they are.
    Raw,
    /// Without the mean of the training classes.
    Centred,
    /// Centred and of length 1.
    Unit,
    /// Centred and whitened.
    Whitened,
    /// Centred, of length 1, then whitened.
    UnitWhitened,
    /// The same, then of length 1 again.
    WhitenedCosine,
}

/// What training tasks compare queries with, where a network is trained for the prior.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LearnBy {
    /// The means of labelled samples, as a Prototypical Network does.
    #[default]
    Means,
    /// The posteriors of a prior that is fitted anew at each refresh of the memory.
    Posteriors,
}

/// Settings of the graph prior.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PriorConfig {
    /// The space in which distances are taken. Default `auto`.
    pub metric: MetricName,
    /// Share of the identity in the covariance that whitens, 0 to 1. Default 0.5.
    pub shrinkage: f64,
    /// What the variance of the prior is multiplied with; 0 for whichever does best on tasks of hidden
    /// training classes. Default 0.
    pub scale: f64,
    /// Share of a prototype's own variance that is taken off its distances, -1 to 1: more favours new classes
    /// over known ones where both are answers, less favours known ones. Default 0.
    pub spread: f64,
    /// Rounds of hiding in the fit. Default 4.
    pub rounds: usize,
    /// What training tasks compare queries with. Default `means`.
    pub learn_by: LearnBy,
}

impl Default for PriorConfig {
    fn default() -> Self {
        let (metric, learn_by) = (MetricName::default(), LearnBy::default());
        Self { metric, shrinkage: 0.5, scale: 0.0, spread: 0.0, rounds: 4, learn_by }
    }
}

impl PriorConfig {
    /// The metrics to choose from.
    fn metrics(&self) -> Vec<MetricConfig> {
        let share = self.shrinkage;
        match self.metric {
            MetricName::Auto => {
                vec![MetricConfig::unit_whitened(share), MetricConfig::UNIT, MetricConfig::RAW]
            }
            MetricName::Raw => vec![MetricConfig::RAW],
            MetricName::Centred => vec![MetricConfig::CENTRED],
            MetricName::Unit => vec![MetricConfig::UNIT],
            MetricName::Whitened => vec![MetricConfig::whitened(share)],
            MetricName::UnitWhitened => vec![MetricConfig::unit_whitened(share)],
            MetricName::WhitenedCosine => vec![MetricConfig::whitened_cosine(share)],
        }
    }

    /// The scales to choose from.
    fn scales(&self) -> Vec<f64> {
        if self.scale > 0.0 { vec![self.scale] } else { vec![1.0, 0.5, 2.0] }
    }
}

/// Embeddings of the training classes, for what is fitted in closed form.
pub struct TrainingSamples<'a> {
    /// Length of an embedding.
    pub dim: usize,
    /// Embeddings of each training class, `[n, dim]`.
    pub rows: &'a [Vec<f32>],
    /// Embeddings of samples that the network was not trained on, `[n, dim]` for each class; may be empty.
    pub held_out: &'a [Vec<f32>],
    /// The class graph: node `i` is class `i`; classes without samples may follow, and connect those that
    /// have some.
    pub graph: &'a Taxonomy,
    /// Embeddings of the classes' texts, where there are any.
    pub texts: Option<&'a TextRows>,
    /// What is drawn depends on it.
    pub seed: u64,
}

/// The graph prior, fitted to training classes.
#[derive(Clone, Debug, PartialEq)]
pub struct PriorModel {
    metric: Metric,
    statistics: ClassStatistics,
    prior: GraphPrior,
    text: Option<(TextPrior, TextRows)>,
    /// Share of a prototype's variance that is taken off its distances.
    spread: f32,
    /// What squared distances are multiplied with before the softmax.
    temperature: f32,
    /// How a catalogue that was fitted further is answered.
    decision: Option<Decision>,
}

impl PriorModel {
    /// Fits everything to the training classes. Metric and scale are those that answer tasks of hidden
    /// training classes best; the temperature is that of the least log loss on them.
    pub fn fit(training: &TrainingSamples<'_>, config: &PriorConfig) -> Result<Self> {
        let fit = FitConfig { rounds: config.rounds, seed: training.seed, ..FitConfig::default() };
        let (tasks, scales) = (Tasks::draw(training), config.scales());
        let mut best: Option<(Judged, Self)> = None;
        for metric in config.metrics() {
            let fitted = Self::with_metric(training, metric, fit, config.spread as f32)?;
            for (judged, &scale) in tasks.judge(&fitted, &scales)?.into_iter().zip(&scales) {
                if best.as_ref().is_none_or(|(so_far, _)| judged.is_better_than(so_far)) {
                    let prior = fitted.prior.clone().with_scale(scale)?;
                    best = Some((judged, Self { prior, ..fitted.clone() }));
                }
            }
        }
        // invariant: there is at least one metric and one scale.
        let (judged, mut model) = best.unwrap();
        model.temperature = judged.temperature();
        if let Some(texts) = training.texts {
            let prior = TextPrior::fit(texts, &model.statistics, TextConfig::default(), fit)?;
            model.text = Some((prior, texts.clone()));
        }
        Ok(model)
    }

    fn with_metric(
        training: &TrainingSamples<'_>,
        metric: MetricConfig,
        fit: FitConfig,
        spread: f32,
    ) -> Result<Self> {
        let metric = Metric::fit(metric, training.dim, training.rows.iter().map(Vec::as_slice))?;
        let mut builder = StatisticsBuilder::new(training.dim, training.rows.len())?;
        for (class, rows) in (0..).zip(training.rows) {
            builder.add(class, &metric.apply(rows)?)?;
        }
        let statistics = builder.finish()?;
        let prior = GraphPrior::fit(training.graph, &statistics, fit)?;
        Ok(Self { metric, statistics, prior, text: None, spread, temperature: 1.0, decision: None })
    }

    /// A model from its parts, for classes whose statistics are in the space of `metric`.
    pub fn of_statistics(metric: Metric, statistics: ClassStatistics, prior: GraphPrior) -> Self {
        Self { metric, statistics, prior, text: None, spread: 0.0, temperature: 1.0, decision: None }
    }

    /// The same with another temperature, share of the spread, and way to answer.
    #[must_use]
    pub fn with_decision(mut self, temperature: f32, spread: f32, decision: Decision) -> Self {
        self.temperature = temperature;
        self.spread = spread;
        self.decision = Some(decision);
        self
    }

    /// The same with another scale of the prior.
    pub fn with_scale(mut self, scale: f64) -> Result<Self> {
        self.prior = self.prior.with_scale(scale)?;
        Ok(self)
    }

    /// How a catalogue that was fitted further is answered.
    pub fn decision(&self) -> Option<&Decision> {
        self.decision.as_ref()
    }

    /// The share of a prototype's variance that is taken off its distances.
    pub fn spread(&self) -> f32 {
        self.spread
    }

    /// The linear rule of a posterior.
    pub fn rule(&self, posterior: &Posterior) -> Rule {
        Rule::of_posterior(posterior, self.temperature, self.spread)
    }

    /// The metric.
    pub fn metric(&self) -> &Metric {
        &self.metric
    }

    /// The fitted prior of places in the graph.
    pub fn prior(&self) -> &GraphPrior {
        &self.prior
    }

    /// The statistics of the training classes, in the space of the metric.
    pub fn statistics(&self) -> &ClassStatistics {
        &self.statistics
    }

    /// What squared distances are multiplied with before the softmax.
    pub fn temperature(&self) -> f32 {
        self.temperature
    }

    /// Length of a text embedding, where texts were given.
    pub fn text_dim(&self) -> Option<usize> {
        self.text.as_ref().map(|(_, rows)| rows.dim())
    }

    /// The training classes on a graph whose first nodes they are.
    pub fn known<'a>(&'a self, graph: &'a Taxonomy) -> KnownClasses<'a> {
        KnownClasses::new(graph, &self.statistics)
    }

    /// The prior of a class: by its place where it has one, by its text where it has one, joined where it has
    /// both.
    pub fn prior_of(
        &self,
        place: Option<(&KnownClasses<'_>, Node)>,
        text: Option<&[f32]>,
    ) -> Result<ClassPrior> {
        let by_text = match (&self.text, text) {
            (Some((prior, rows)), Some(text)) => Some(prior.of(rows, &self.statistics, text)?),
            _ => None,
        };
        let by_place = place.map(|(known, class)| self.prior.of(known, class));
        Ok(match (by_place, by_text) {
            (Some(place), Some(text)) => place.join(&text)?,
            (Some(prior), None) | (None, Some(prior)) => prior,
            (None, None) => self.prior.of_unknown_place(),
        })
    }

    /// Takes texts: row `i` is that of node `i` of the class graph. How far they are to be believed is fitted
    /// to the classes of `known`.
    pub fn take_texts(&mut self, texts: TextRows, known: &ClassStatistics, fit: FitConfig) -> Result<()> {
        let prior = TextPrior::fit(&texts, known, TextConfig::default(), fit)?;
        self.text = Some((prior, texts));
        Ok(())
    }

    /// The prior of a class of the graph: by its place where it has one, and by its own text where texts were
    /// given, joined where it has both. Own samples of the class are left out.
    pub fn prior_of_class(
        &self,
        known: &KnownClasses<'_>,
        class: Node,
        is_placed: bool,
    ) -> Result<ClassPrior> {
        let by_text = self.text.as_ref().and_then(|(prior, rows)| prior.of_class(rows, known, class));
        Ok(match (is_placed, by_text) {
            (true, Some(text)) => self.prior.of(known, class).join(&text)?,
            (true, None) => self.prior.of(known, class),
            (false, Some(text)) => text,
            (false, None) => self.prior.of_unknown_place(),
        })
    }

    /// What [`prior_of_class`](Self::prior_of_class) is made of, largest first; adds up to 1.
    pub fn shares_of_class(&self, known: &KnownClasses<'_>, class: Node, is_placed: bool) -> Vec<Share> {
        let of_text = self.text.as_ref().and_then(|(prior, rows)| {
            Some((prior.of_class(rows, known, class)?, prior.shares_of_class(rows, known, class)?))
        });
        match (is_placed, of_text) {
            (true, Some((text, by_text))) => {
                let share = self.prior.of(known, class).share_in_join(&text);
                join_shares(share, &self.prior.shares(known, class), &by_text)
            }
            (true, None) => self.prior.shares(known, class),
            (false, Some((_, by_text))) => by_text,
            (false, None) => vec![Share { source: Source::GrandMean, share: 1.0 }],
        }
    }

    /// The posterior of a class with this prior and these samples, `[k, dim]`, embeddings as the network
    /// gives them.
    pub fn posterior(&self, prior: &ClassPrior, samples: &[f32]) -> Result<Posterior> {
        if samples.is_empty() {
            return self.prior.posterior_of_mean(prior, &vec![0.0; self.prior.dim()], 0);
        }
        self.prior.posterior(prior, &self.metric.apply(samples)?)
    }

    /// Distances of a query in the space of the metric to prototypes, less the share of their spread.
    pub fn distance(&self, query: &[f32], posterior: &Posterior) -> f32 {
        squared_distance(query, &posterior.prototype) - self.spread * posterior.spread()
    }

    /// The model as it comes back from its file: what is trained and answered with it is the same before and after.
    pub fn as_stored(&self) -> Result<Self> {
        let tensors = self.to_tensors();
        let find = |name: &str| {
            let found = tensors.iter().find(|tensor| tensor.0 == name);
            found.map(|(_, shape, values)| (&shape[..], &values[..]))
        };
        let stored = Self::from_tensors(self.metric.dim(), find)?;
        // invariant: the tensors of a fitted model are complete.
        Ok(stored.unwrap_or_else(|| self.clone()))
    }

    /// The fitted state as tensors.
    pub fn to_tensors(&self) -> Vec<StateTensor> {
        let MetricConfig { compress, centre, unit, whiten, unit_at_last } = self.metric.config();
        let switch = |is_on: bool| f32::from(u8::from(is_on));
        let kind = vec![
            switch(centre),
            switch(unit),
            whiten.map_or(-1.0, |share| share as f32),
            switch(unit_at_last),
            switch(compress),
        ];
        let (classes, dim) = (self.statistics.len(), self.statistics.dim());
        let counts: Vec<f32> =
            (0..classes as Node).map(|class| self.statistics.count(class) as f32).collect();
        let mut tensors = vec![
            ("metric.kind", vec![kind.len()], kind),
            ("prior.means", vec![classes, dim], self.statistics.means().to_vec()),
            ("prior.counts", vec![classes], counts),
            ("prior.spread_and_temperature", vec![2], vec![self.spread, self.temperature]),
        ];
        tensors.extend(self.metric.to_tensors());
        tensors.extend(self.prior.to_tensors());
        tensors.extend(self.decision.iter().flat_map(Decision::to_tensors));
        if let Some((prior, rows)) = &self.text {
            tensors.extend(prior.to_tensors());
            let table = (0..rows.len() as Node)
                .flat_map(|class| rows.row(class).map_or_else(|| vec![0.0; rows.dim()], <[f32]>::to_vec))
                .collect();
            tensors.push(("text_prior.rows", vec![rows.len(), rows.dim()], table));
        }
        tensors
    }

    /// The model whose [`to_tensors`](Self::to_tensors) these are, for embeddings of length `dim`; `tensor`
    /// gives shape and values of a name. `None` where it was not fitted yet.
    pub fn from_tensors<'a>(
        dim: usize,
        tensor: impl Fn(&str) -> Option<(&'a [usize], &'a [f32])> + Copy,
    ) -> Result<Option<Self>> {
        let Some((_, kind)) = tensor("metric.kind") else { return Ok(None) };
        let values = |name: &str| tensor(name).map(|(_, values)| values);
        let wrong =
            |what, expected: &str, got| ModelError::WrongLength { what, expected: expected.into(), got };
        // Files written before metrics could compress have four numbers.
        let ([centre, unit, whiten, unit_at_last] | [centre, unit, whiten, unit_at_last, _]) = kind else {
            return Err(wrong("metric.kind", "5", kind.len()));
        };
        let config = MetricConfig {
            compress: kind.get(4).is_some_and(|&compress| compress > 0.5),
            centre: *centre > 0.5,
            unit: *unit > 0.5,
            whiten: (*whiten >= 0.0).then_some(f64::from(*whiten)),
            unit_at_last: *unit_at_last > 0.5,
        };
        let metric = Metric::from_tensors(config, dim, values)?;
        let prior = GraphPrior::from_tensors(dim, values)?;
        let (means, counts) =
            (values("prior.means").unwrap_or_default(), values("prior.counts").unwrap_or_default());
        if counts.iter().any(|&count| !(0.0..=16_777_216.0).contains(&count)) {
            return Err(wrong("prior.counts", "numbers of samples", counts.len()));
        }
        let counts = counts.iter().map(|&count| count as u32).collect();
        let statistics = ClassStatistics::new(dim, means.to_vec(), counts, prior.within().to_vec())?;
        let pair = values("prior.spread_and_temperature").unwrap_or_default();
        let &[spread, temperature] = pair else {
            return Err(wrong("prior.spread_and_temperature", "2", pair.len()));
        };
        let text = match tensor("text_prior.rows") {
            Some((&[_, text_dim], table)) => Some((
                TextPrior::from_tensors(TextConfig::default(), dim, values)?,
                TextRows::of_unit_rows(text_dim, table)?,
            )),
            _ => None,
        };
        let decision = Decision::from_tensors(dim, statistics.len(), tensor)?;
        Ok(Some(Self { metric, statistics, prior, text, spread, temperature, decision }))
    }
}
