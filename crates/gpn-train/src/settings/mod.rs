//! The settings of a run: every one has a name, a default and a place in `config.toml`.

mod limits;
mod memory;
mod pathways;
mod presets;
mod run_file;
pub(crate) mod schedule;
mod validation;

pub use memory::{MemoryConfig, MemoryNorm, MemoryView};
pub use pathways::PathwayConfig;
pub use presets::PRESETS;
pub use schedule::ScheduleConfig;
pub use validation::ValidationConfig;

use gpn_data::loader::View;
use gpn_data::task::{Sampling, SnowballRule, TaskConfig};
use gpn_data::transform::CropConfig;
use gpn_model::methods::{MethodRef, MethodSettings, Needs};
use gpn_model::prior::{LearnBy, PriorConfig};
use gpn_model::{AdamConfig, BackboneKind, CosineFit, GnnConfig, HeadInit, PropagationConfig, StepDecay};
use serde::{Deserialize, Serialize};

use self::schedule::AUXILIARY_SHARE;
use crate::error::TrainError;

/// All settings of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Length, seed and bookkeeping.
    pub train: TrainSettings,
    /// The backbone.
    pub model: ModelSettings,
    /// Training tasks.
    pub task: TaskSettings,
    /// Crops and mirroring of training images.
    pub augment: AugmentSettings,
    /// Attention, gate and steps.
    pub propagation: PropagationConfig,
    /// The graph network, where the method is `gnn`.
    pub gnn: GnnConfig,
    /// The classifier fitted to each task, where the method is `baseline++`.
    pub baseline: CosineFit,
    /// The graph prior, where the method is `prior`.
    pub prior: PriorConfig,
    /// The graph that a task propagates on.
    pub pathways: PathwayConfig,
    /// Prototypes of the training classes.
    pub memory: MemoryConfig,
    /// Validation tasks.
    pub validation: ValidationConfig,
    /// Auxiliary task and lambda over time.
    pub schedule: ScheduleConfig,
    /// Adam.
    pub optimiser: AdamConfig,
    /// Learning rate over time.
    pub rate: StepDecay,
}

/// Length, seed and bookkeeping of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainSettings {
    /// Training steps, auxiliary ones included. Default 20,000.
    pub episodes: u64,
    /// Seed of everything random. Default 0.
    pub seed: u64,
    /// The few-shot method. Default `gpn`.
    pub method: MethodRef,
    /// Whether the loss of a task moves the embeddings of its support samples too. Default true.
    pub through_prototypes: bool,
    /// What squared distances are multiplied with before the softmax. Default 1.
    pub distance_scale: f32,
    /// Whether few-shot and auxiliary steps have moments of their own in Adam. Default true.
    pub own_moments: bool,
    /// Samples of an auxiliary batch. Default 128.
    pub auxiliary_batch: usize,
    /// Tasks of a few-shot step; their losses are averaged. Default 1.
    pub tasks_per_step: usize,
    /// Parts that the work of a step is divided into, each with batch-norm statistics of its own; several processes can
    /// compute them. Default 1.
    pub shards: usize,
    /// Episodes between two checkpoints. Default 1000.
    pub checkpoint_every: u64,
    /// Checkpoints kept. Default 2.
    pub keep_checkpoints: usize,
    /// Episodes between two lines of metrics. Default 100.
    pub log_every: u64,
    /// Threads that prepare batches. Default 1.
    pub workers: usize,
}

impl Default for TrainSettings {
    fn default() -> Self {
        Self {
            episodes: 20_000,
            seed: 0,
            method: MethodRef::default(),
            through_prototypes: true,
            distance_scale: 1.0,
            own_moments: true,
            auxiliary_batch: 128,
            tasks_per_step: 1,
            shards: 1,
            checkpoint_every: 1000,
            keep_checkpoints: 2,
            log_every: 100,
            workers: 1,
        }
    }
}

/// The backbone and its inputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelSettings {
    /// The backbone. Default `resnet08`; `identity` or `mlp` for embeddings.
    pub backbone: BackboneKind,
    /// Height and width of the images the network sees. Default 32.
    pub image_size: u32,
    /// How the classifier of the auxiliary task begins. Default `uniform`.
    pub head_init: HeadInit,
    /// Images in the largest batch that a training step on the CPU rounds as PyTorch does, so that gradients agree
    /// closely; the forward pass of such a batch takes about twice as long. Default 8.
    pub exact_batch: usize,
}

impl Default for ModelSettings {
    fn default() -> Self {
        Self {
            backbone: BackboneKind::default(),
            image_size: 32,
            head_init: HeadInit::default(),
            exact_batch: gpn_model::EXACT_BATCH,
        }
    }
}

/// The shape of training tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TaskSettings {
    /// Classes of a task. Default 5.
    pub way: usize,
    /// Labelled samples of each class. Default 1.
    pub shot: usize,
    /// Where larger than `shot`: each task draws the number of labelled samples, from `shot` to this. Default 0; 10 where
    /// `train.method` is chosen as `prior` by name.
    pub most_shot: usize,
    /// Queries of each class; 0 for as many as `shot`. Default 0.
    pub queries: usize,
    /// How classes are chosen. Default `both`.
    pub sampling: Sampling,
    /// Hops of snowball sampling. Default 5.
    pub hops: usize,
    /// How snowball sampling weighs candidates. Default `union`.
    pub snowball: SnowballRule,
    /// Labelled samples of one more answer, "other", from classes outside the task; 0 for no such answer. Default 0.
    pub rest: usize,
}

impl Default for TaskSettings {
    fn default() -> Self {
        let TaskConfig { way, shot, most_shot, sampling, hops, snowball, rest, .. } = TaskConfig::default();
        Self { way, shot, most_shot, queries: 0, sampling, hops, snowball, rest }
    }
}

impl TaskSettings {
    /// The shape for a sampler.
    pub fn sampler_config(&self) -> TaskConfig {
        let queries = if self.queries == 0 { self.shot } else { self.queries };
        let Self { way, shot, most_shot, sampling, hops, snowball, rest, .. } = *self;
        TaskConfig { way, shot, most_shot, queries, sampling, hops, snowball, rest }
    }
}

/// Crops and mirroring of training images.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AugmentSettings {
    /// Smallest share of an image that a crop covers. Default 0.08.
    pub least_scale: f64,
    /// Probability of mirroring. Default 0.5.
    pub flip: f64,
}

impl Default for AugmentSettings {
    fn default() -> Self {
        let CropConfig { scale, flip, .. } = CropConfig::default();
        Self { least_scale: scale.0, flip }
    }
}

impl AugmentSettings {
    /// The transform for a loader.
    pub fn view(&self) -> View {
        View::Train(CropConfig { scale: (self.least_scale, 1.0), flip: self.flip, ..CropConfig::default() })
    }
}

/// Labelled samples of a training task, at most, where a method learns by posteriors.
const MOST_SHOT: usize = 10;
/// About how often a run validates where its settings do not say.
const VALIDATIONS: u64 = 20;
/// What training on a sample costs, in passes of a sample through the network for the memory (measured on ResNet-08).
const STEP_COST: f64 = 4.0;

impl Config {
    /// Reads settings from TOML text; those left out keep their value.
    pub fn with_toml(&self, text: &str, file: &std::path::Path) -> Result<Self, TrainError> {
        let given: toml::Table = toml::from_str(text).map_err(|error| TrainError::Malformed {
            path: file.to_owned(),
            reason: error.to_string().trim_end().to_owned(),
        })?;
        let mut config = self.clone();
        for (key, value) in flattened(&given) {
            config = config.with_value(&key, value)?;
        }
        Ok(config)
    }

    /// Changes one setting, given as `group.name=value`.
    ///
    /// ```
    /// let config = gpn_train::Config::default().with_setting("task.way=10")?;
    /// assert_eq!(config.task.way, 10);
    /// let error = gpn_train::Config::default().with_setting("task.wya=10").unwrap_err();
    /// assert!(error.to_string().contains("did you mean `task.way`?"));
    /// # Ok::<(), gpn_train::TrainError>(())
    /// ```
    pub fn with_setting(&self, assignment: &str) -> Result<Self, TrainError> {
        let (key, text) = assignment.split_once('=').ok_or_else(|| TrainError::Setting {
            key: assignment.to_owned(),
            reason: "write it as group.name=value, such as task.way=10".into(),
        })?;
        // A bare word is a string: `propagation.gate=fixed`.
        let value = text.parse::<toml::Value>().unwrap_or_else(|_| toml::Value::String(text.to_owned()));
        self.with_value(key.trim(), value)
    }

    fn with_value(&self, key: &str, value: toml::Value) -> Result<Self, TrainError> {
        // invariant: settings are plain values in groups, which TOML can write.
        let mut table = toml::Table::try_from(self).unwrap();
        let known: Vec<String> = flattened(&table).into_iter().map(|(key, _)| key).collect();
        let Some((group, name)) = key.split_once('.').filter(|_| known.iter().any(|known| known == key))
        else {
            let reason = unknown(key, known.iter().map(String::as_str), "setting");
            return Err(TrainError::Setting { key: key.to_owned(), reason });
        };
        // invariant: the key was found among the flattened keys, so the group is a table.
        let slot = &mut table.get_mut(group).unwrap().as_table_mut().unwrap()[name];
        let value = match (&slot, value) {
            (toml::Value::Float(_), toml::Value::Integer(whole)) => toml::Value::Float(whole as f64),
            (_, value) => value,
        };
        *slot = value;
        let config: Self = table.try_into().map_err(|error: toml::de::Error| TrainError::Setting {
            key: key.to_owned(),
            reason: gpn_taxonomy::plain_words(error.message()),
        })?;
        config.check_numbers()?;
        Ok(config)
    }

    /// Chooses the few-shot method, with the settings that it needs.
    pub fn with_method(&self, name: &str) -> Result<Self, TrainError> {
        let method = MethodRef::named(name)?;
        let Needs { given_embeddings, lambda, posteriors } = method.kind().needs;
        let mut config = self.clone();
        config.train.method = method;
        if given_embeddings {
            config.model.backbone = BackboneKind::Identity;
        }
        if posteriors {
            config.prior.learn_by = LearnBy::Posteriors;
            config.task.most_shot = MOST_SHOT;
        }
        if let Some(lambda) = lambda {
            config.schedule.anneal_lambda = false;
            config.schedule.lambda = lambda;
        }
        Ok(config)
    }

    /// What the few-shot method is made of.
    pub fn method_settings(&self) -> MethodSettings {
        MethodSettings {
            seed: self.train.seed,
            answers: self.task.way + usize::from(self.task.rest > 0),
            through_prototypes: self.train.through_prototypes,
            distance_scale: self.train.distance_scale,
            propagation: self.propagation.clone(),
            spanning_tree: self.pathways.spanning_tree,
            gnn: self.gnn,
            baseline: self.baseline,
            prior: self.prior.clone(),
        }
    }

    /// The settings with every interval that was left open worked out, for training classes with so many samples each.
    #[must_use]
    pub fn resolved(&self, samples_of: &[usize]) -> Self {
        let mut config = self.clone();
        if config.memory.refresh_every == 0 {
            config.memory.refresh_every = self.affordable_refresh(samples_of);
        }
        if config.validation.every == 0 {
            let refresh = config.memory.refresh_every;
            config.validation.every = (self.train.episodes / VALIDATIONS).div_ceil(refresh).max(1) * refresh;
        }
        config
    }

    /// The least number of episodes between refreshes of the memory that keeps them to their share of the work.
    fn affordable_refresh(&self, samples_of: &[usize]) -> u64 {
        let most = if self.memory.samples == 0 { usize::MAX } else { self.memory.samples };
        let looked_at: usize = samples_of.iter().map(|&samples| samples.min(most)).sum();
        let TaskConfig { way, shot, most_shot, queries, rest, .. } = self.task.sampler_config();
        let shot = usize::midpoint(shot, most_shot.max(shot));
        let few_shot = (way * (shot + queries) + if rest > 0 { rest + queries } else { 0 }) as f64;
        let auxiliary = if self.schedule.auxiliary { AUXILIARY_SHARE } else { 0.0 };
        let few_shot = few_shot * self.train.tasks_per_step as f64;
        let trained = auxiliary * self.train.auxiliary_batch as f64 + (1.0 - auxiliary) * few_shot;
        let least = looked_at as f64 / (STEP_COST * trained * self.memory.share);
        // Two significant digits are enough, and read better.
        let digit = libm::pow(10.0, libm::log10(least.max(1.0)).floor() - 1.0).max(1.0);
        ((least / digit).ceil() * digit).max(1.0) as u64
    }
}

/// `group.name` and value of every setting.
pub(crate) fn flattened(table: &toml::Table) -> Vec<(String, toml::Value)> {
    let mut flat = Vec::new();
    for (group, value) in table {
        match value {
            toml::Value::Table(inner) => {
                flat.extend(inner.iter().map(|(name, value)| (format!("{group}.{name}"), value.clone())));
            }
            other => flat.push((group.clone(), other.clone())),
        }
    }
    flat
}

pub(crate) fn unknown<'a>(given: &str, known: impl IntoIterator<Item = &'a str>, what: &str) -> String {
    match gpn_taxonomy::nearest_name(given, known) {
        Some(nearest) => format!("there is no such {what}; did you mean `{nearest}`?"),
        None => format!("there is no such {what}; config.toml of a run lists all settings"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_survives_toml() {
        for preset in PRESETS {
            let config = Config::preset(preset).unwrap();
            let text = toml::to_string(&config).unwrap();
            assert_eq!(toml::from_str::<Config>(&text).unwrap(), config);
            assert_eq!(Config::default().with_toml(&text, "x".as_ref()).unwrap(), config);
        }
    }

    #[test]
    fn open_intervals_are_worked_out() {
        let config = Config::default().resolved(&[65; 300]);
        assert!((500..1_500).contains(&config.memory.refresh_every), "{}", config.memory.refresh_every);
        assert_eq!(config.validation.every % config.memory.refresh_every, 0);
        assert_eq!(config.resolved(&[5]), config, "what is given stays");
        let larger = Config::default().resolved(&[650; 300]).memory.refresh_every;
        assert!(larger >= 9 * config.memory.refresh_every && larger <= 11 * config.memory.refresh_every);
        let sampled = Config::default().with_setting("memory.samples=10").unwrap().resolved(&[650; 300]);
        assert!(sampled.memory.refresh_every < config.memory.refresh_every);
    }

    #[test]
    fn settings_are_checked_where_they_are_given() {
        let fault = |assignment: &str| Config::default().with_setting(assignment).unwrap_err().to_string();
        assert!(fault("propagation.gaet=fixed").contains("did you mean `propagation.gate`?"));
        assert!(fault("propagation.gate=fixde").contains("there is no `fixde`; write "));
        for (assignment, expected) in [
            ("task.way=many", "setting `task.way`: expected a whole number, not \"many\""),
            ("task.way=-1", "expected a whole number of at least 0, not -1"),
            ("rate.initial=fast", "expected a number, not \"fast\""),
            ("schedule.auxiliary=1", "expected true or false, not 1"),
        ] {
            assert!(fault(assignment).contains(expected), "{}", fault(assignment));
        }
        assert!(fault("train.episodes=0").contains("at least 1"));
        assert!(fault("task").contains("group.name=value"));
        let config = Config::default().with_setting("rate.initial=1").unwrap();
        assert!((config.rate.initial - 1.0).abs() < 1e-12);
        assert!(Config::preset("papr").unwrap_err().to_string().contains("did you mean `paper`?"));
    }

    #[test]
    fn settings_that_messages_advise_exist() {
        let (tensor, element, value, episode) = ("w".to_owned(), 0, f32::NAN, 1);
        let message = gpn_model::ModelError::BadGradient { tensor, element, value, episode }.to_string();
        let advised: Vec<&str> = message.split('`').skip(3).step_by(2).collect();
        assert_eq!(advised, ["rate.initial"]);
        Config::default().with_setting(&format!("{}=0.0001", advised[0])).unwrap();
    }
}
