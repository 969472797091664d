//! Fitting: a catalogue of one's own. Every class is an answer and every sample is used.
//!
//! A part of the samples of each class measures which way to answer is best; then all samples are used. Classes with few samples go by
//! their posterior under the graph prior, classes with many by borders that begin there.

mod candidate;
mod choose;
mod classes;
mod hedge;
mod novel;
mod photos;
mod report;
mod rows;
mod threshold;
mod unseen;

use std::time::Instant;

use gpn_data::source::{SampleKind, Source};
use gpn_model::prior::{ClassStatistics, Decision, MetricConfig, PriorModel, UnknownScore, best_scale};
use gpn_model::{Device, InputShape, Memory};
use gpn_taxonomy::{Node, Taxonomy};
use gpn_train::{ClassInfo, Config, FitInfo, ModelInfo, Network, TrainedModel};
use serde::{Deserialize, Serialize};

pub use self::candidate::Recipe;
use self::candidate::{Related, Space};
use self::classes::Classes;
pub use self::novel::NewClassAccuracy;
pub use self::photos::{By, fit_samples};
pub use self::report::{FitReport, HeldOutAnswer};
use self::rows::{Chosen, InMemory, Rows};
use crate::classifier::Classifier;
use crate::error::{Error, Result};
use crate::texts::ClassTexts;
use crate::watch::Watch;

/// What is asked of a fit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FitRequest {
    /// What is drawn depends on it. Default 0.
    pub seed: u64,
    /// A way to answer instead of the one that measures best.
    pub recipe: Option<Recipe>,
    /// Embeddings of names or descriptions of classes: classes whose texts are alike are expected near each other.
    #[serde(skip)]
    pub texts: Option<ClassTexts>,
}

/// A fitted catalogue.
pub struct Fitted {
    /// The model, ready to use, save and teach.
    pub classifier: Classifier,
    /// What it reached on samples held out.
    pub report: FitReport,
}

/// Fits a catalogue to embeddings with labels. Every class of `source` is an answer; `taxonomy` says how they are related, the
/// source's own graph is taken where it brings one, and without either all classes hang below one root.
///
/// Memory for the samples that choose (400 MB at most) and for the classes; all samples are read once more in one pass.
///
/// ```
/// use gpn::{ArraySource, FitRequest, Watch, fit};
///
/// // Two samples of each of three classes.
/// let values = [0.0, 0.1, 0.2, 0.0, 5.0, 5.1, 5.2, 5.0, 0.0, 9.0, 0.1, 9.2_f32];
/// let source = ArraySource::embeddings(&values[..], 2, &["cat", "cat", "dog", "dog", "saw", "saw"])?;
/// let fitted = fit(&source, None, &FitRequest::default(), &Watch::default())?;
/// let request = gpn::PredictRequest::default();
/// let sample = gpn::Sample::embedding("query", vec![5.0, 5.2]);
/// let answers = fitted.classifier.predict(&[sample], &request, &Watch::default())?;
/// assert_eq!(answers[0].as_ref().unwrap().classes[0].id, "dog");
/// # Ok::<(), gpn::Error>(())
/// ```
pub fn fit(
    source: &dyn Source,
    taxonomy: Option<&Taxonomy>,
    request: &FitRequest,
    watch: &Watch<'_>,
) -> Result<Fitted> {
    let SampleKind::Embeddings { dim } = source.kind() else {
        return Err(Error::input(source.describe(), "it holds images; they must be embedded first"));
    };
    let own = match taxonomy {
        Some(_) => None,
        None => source.taxonomy().transpose()?,
    };
    let taxonomy = taxonomy.or(own.as_ref().map(|own| &own.taxonomy));
    let classes = Classes::new(source.leaves(), taxonomy, watch)?;
    let labels: Vec<Node> = source.samples().iter().map(|sample| sample.leaf).collect();
    let rows = SourceRows { source, dim, labels };
    fit_rows(&rows, &classes, request, None, watch)
}

/// The same for embeddings in memory, `[n, dim]`, with the number of a leaf each.
pub(crate) fn fit_embedded(
    (values, dim): (Vec<f32>, usize),
    labels: Vec<Node>,
    leaves: &[gpn_data::source::Leaf],
    taxonomy: Option<&Taxonomy>,
    request: &FitRequest,
    base: FittedOn,
    watch: &Watch<'_>,
) -> Result<Fitted> {
    let classes = Classes::new(leaves, taxonomy, watch)?;
    fit_rows(&InMemory { dim, values, labels }, &classes, request, Some(base), watch)
}

/// What turned samples into the embeddings that a catalogue is fitted to.
pub(crate) enum FittedOn {
    /// A network of this program, with the height and width at which images are stored.
    Network(Box<TrainedModel>),
    /// A frozen encoder, described as JSON.
    Encoder(serde_json::Value),
}

/// The rows of a source of embeddings.
struct SourceRows<'a> {
    source: &'a dyn Source,
    dim: usize,
    labels: Vec<Node>,
}

impl Rows for SourceRows<'_> {
    fn dim(&self) -> usize {
        self.dim
    }

    fn labels(&self) -> &[Node] {
        &self.labels
    }

    fn read(&self, row: usize, out: &mut [f32]) -> Result<()> {
        self.source.embedding(row, out)?;
        match out.iter().position(|value| !value.is_finite()) {
            None => Ok(()),
            Some(column) => {
                let file = &self.source.samples()[row].file;
                let reason = format!("column {column} is {}; embeddings must be finite", out[column]);
                Err(Error::input(format!("{} ({file})", self.source.describe()), reason))
            }
        }
    }
}

fn fit_rows(
    rows: &dyn Rows,
    classes: &Classes,
    request: &FitRequest,
    base: Option<FittedOn>,
    watch: &Watch<'_>,
) -> Result<Fitted> {
    let start = Instant::now();
    if rows.labels().is_empty() || classes.answers == 0 {
        return Err(Error::input("the samples", "there are none; give at least one sample of each class"));
    }
    if classes.answers == 1 {
        let reason =
            "all samples are of this one class; a model tells classes apart: give samples of two or more";
        return Err(Error::Class { class: classes.graph.id(0).to_owned(), reason: reason.into() });
    }
    let (graph, seed, dim) = (&classes.graph, request.seed, rows.dim());
    let texts = request.texts.as_ref().map(|texts| texts.of_graph(graph)).transpose()?;
    let related = Related { graph, texts: texts.as_ref() };
    watch.step("reading samples");
    let chosen = Chosen::read(rows, classes.answers, seed)?;
    watch.step("choosing the way to answer on samples held out");
    let measured = choose::choose(&chosen, related, request.recipe.as_ref(), seed, watch)?;
    let recipe = measured.as_ref().map_or(SINGLE, |measured| measured.best.recipe);
    let temperature = measured.as_ref().map_or(1.0, |measured| measured.best.temperature());
    let scale = measured
        .as_ref()
        .map_or(1.0, |measured| best_scale(&measured.best.scores, classes.answers, &measured.right));
    watch.step("hiding classes, to see how new ones will fare");
    let novel = novel::hide(&chosen, related, &recipe, temperature, scale, seed, watch)?;

    watch.step("using all samples");
    let space = Space::fit(recipe.metric, dim, &chosen.classes, related, seed)?;
    let space = with_all_rows(space, rows, &chosen, classes, related, seed, watch)?;
    let posteriors = space.posteriors(graph, recipe.scale)?;
    let temperature = if measured.is_some() { temperature } else { of_single(&space) };
    let borders = match recipe.ridge {
        Some(ridge) => space
            .borders(&posteriors, &chosen.classes, temperature)?
            .map(|start| start.learn(ridge, &|| watch.is_stopped()))
            .transpose()?,
        None => None,
    };
    if watch.is_stopped() {
        return Err(Error::interrupted());
    }
    let hedge = measured.as_ref().map_or(1.0, |measured| hedge::multiplier(measured, classes, scale));
    let unknown = novel.as_ref().map_or(UnknownScore::Doubt, |novel| novel.unknown);
    let decision = Decision {
        borders,
        scale,
        hedge,
        unknown,
        threshold: threshold::threshold(measured.as_ref(), unknown, classes.answers, scale),
        evidence: if space.few.is_empty() { 0 } else { candidate::MANY as u32 },
    };
    let spread = novel.as_ref().map_or(0.0, |novel| novel.spread);
    let prior = space.model.with_scale(recipe.scale)?.with_decision(temperature, spread, decision);
    let report =
        FitReport::new(rows, classes, &recipe, measured.as_ref(), novel.as_ref(), scale, start.elapsed());
    let (sums, counts) = rows::sum_rows(rows, classes.answers, |rows| Ok(rows.to_vec()), watch)?;
    let model = assemble(prior, classes, (&sums, &counts), dim, request, base, &report)?;
    Ok(Fitted { classifier: Classifier::new(model)?, report })
}

/// The way to answer where no class has two samples.
const SINGLE: Recipe = Recipe { metric: MetricConfig::UNIT, scale: candidate::PLAIN, ridge: None };

/// What squared distances are multiplied with where nothing could be measured: one over twice the variance within classes.
fn of_single(space: &Space) -> f32 {
    let within = space.model.statistics().within();
    let mean = within.iter().sum::<f64>() / within.len() as f64;
    (0.5 / mean / (within.len() as f64).sqrt()) as f32
}

/// The space with the means of all samples of each class in place of those that chose.
fn with_all_rows(
    space: Space,
    rows: &dyn Rows,
    chosen: &Chosen,
    classes: &Classes,
    related: Related<'_>,
    seed: u64,
    watch: &Watch<'_>,
) -> Result<Space> {
    if chosen.len() == rows.labels().len() {
        return Ok(space);
    }
    let metric = space.model.metric().clone();
    let (sums, counts) = rows::sum_rows(rows, classes.answers, |rows| Ok(metric.apply(rows)?), watch)?;
    let means = means(&sums, &counts, rows.dim());
    let within = space.model.statistics().within().to_vec();
    let statistics = ClassStatistics::new(rows.dim(), means, counts, within)?;
    Space::of_statistics(metric, statistics, related, seed)
}

fn means(sums: &[f64], counts: &[u32], dim: usize) -> Vec<f32> {
    let of_class = |(sums, &count): (&[f64], &u32)| -> Vec<f32> {
        sums.iter().map(|sum| (sum / f64::from(count.max(1))) as f32).collect()
    };
    sums.chunks_exact(dim).zip(counts).flat_map(of_class).collect()
}

/// The model file's content: the fitted prior on the embeddings of `base`.
fn assemble(
    prior: PriorModel,
    classes: &Classes,
    (sums, counts): (&[f64], &[u32]),
    dim: usize,
    request: &FitRequest,
    base: Option<FittedOn>,
    report: &FitReport,
) -> Result<TrainedModel> {
    let graph = &classes.graph;
    let class = |n: Node| ClassInfo {
        id: graph.id(n).to_owned(),
        name: graph.name(n).to_owned(),
        samples: counts.get(n as usize).map_or(0, |&count| count as usize),
    };
    let nodes: Vec<ClassInfo> = graph.nodes().map(class).collect();
    let (answers, others) = nodes.split_at(classes.answers);
    let mut encoder = None;
    let (config, input, stored_size, embedder) = match base {
        Some(FittedOn::Network(trained)) => {
            let TrainedModel { info, network, .. } = *trained;
            let config = info.config.with_setting("train.method=prior")?;
            (config, info.input, info.stored_size, Some(network.embedder))
        }
        other => {
            if let Some(FittedOn::Encoder(described)) = other {
                encoder = Some(described);
            }
            let config = Config::default()
                .with_setting("train.method=prior")?
                .with_setting("model.backbone=identity")?
                .with_setting(&format!("train.seed={}", request.seed))?;
            (config, InputShape::Embedding { len: dim }, None, None)
        }
    };
    let mut network = Network::new(&config, input, classes.answers, &Device::cpu())?;
    if let Some(embedder) = embedder {
        network.embedder = embedder;
    }
    network.method.set_prior(std::sync::Arc::new(prior));
    let info = ModelInfo {
        built_by: format!("gpn {}", env!("CARGO_PKG_VERSION")),
        config,
        input,
        stored_size,
        benchmark: String::new(),
        classes: answers.to_vec(),
        held_out: others.to_vec(),
        edges: graph.edges().collect(),
        root: classes.root,
        taught: Vec::new(),
        changes: gpn_train::Changes::default(),
        // invariant: the report is plain data, which always serialises.
        fit: Some(FitInfo { encoder, report: serde_json::to_value(report).unwrap() }),
        episode: None,
        validation: None,
    };
    let memory = Memory::new(dim, means(sums, counts, dim));
    // What a file keeps is what answers, here and after it is opened again: the same bits.
    let bytes = TrainedModel::to_bytes(&info, &network, &memory)?;
    Ok(TrainedModel::from_bytes(&bytes, "the fitted model".as_ref(), &Device::cpu())?)
}
