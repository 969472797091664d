//! Named sets of settings.

use gpn_data::task::SnowballRule;
use gpn_model::propagation::Attention;
use gpn_model::{HeadInit, PropagationConfig, SpanningTree, StepDecay};

use super::{
    AugmentSettings, Config, MemoryConfig, MemoryNorm, MemoryView, ModelSettings, PathwayConfig,
    ScheduleConfig, TaskSettings, TrainSettings, unknown,
};
use crate::error::TrainError;

/// The names of the presets.
pub const PRESETS: [&str; 5] = ["default", "paper", "reference", "quick", "demo"];

impl Config {
    /// A named set of settings.
    pub fn preset(name: &str) -> Result<Self, TrainError> {
        let default = Self::default();
        match name {
            "default" => Ok(default),
            "paper" => Ok(Self {
                train: TrainSettings { episodes: 350_000, own_moments: false, ..default.train },
                model: ModelSettings { image_size: 84, ..default.model },
                propagation: PropagationConfig { attention: Attention::CosineRaw, ..default.propagation },
                pathways: PathwayConfig { spanning_tree: SpanningTree::Cosine, ..default.pathways },
                memory: MemoryConfig { refresh_every: 3, ..default.memory },
                ..default
            }),
            "reference" => Ok(Self {
                train: TrainSettings {
                    episodes: 350_000,
                    through_prototypes: false,
                    own_moments: false,
                    ..default.train
                },
                // All tasks of the tables are exact, batches of the auxiliary task are not.
                model: ModelSettings { head_init: HeadInit::Kaiming, exact_batch: 100, ..default.model },
                task: TaskSettings { snowball: SnowballRule::Joined, ..default.task },
                pathways: PathwayConfig { halve_lists: true, ..default.pathways },
                // An epoch of 100 episodes goes before the first refresh.
                memory: MemoryConfig {
                    refresh_every: 300,
                    refresh_from: 100,
                    norm: MemoryNorm::Training,
                    view: MemoryView::Training,
                    ..default.memory
                },
                schedule: ScheduleConfig { lambda_every: 100, count_few_shot_only: true, ..default.schedule },
                ..default
            }),
            "quick" => Ok(Self {
                train: TrainSettings { episodes: 2_000, ..default.train },
                rate: StepDecay { every: 200, from: 1_000, ..default.rate },
                ..default
            }),
            // For the drawn images of the built-in data set: crops that keep most of a shape, and a short schedule.
            "demo" => Ok(Self {
                train: TrainSettings {
                    episodes: 3_000,
                    auxiliary_batch: 64,
                    log_every: 300,
                    ..default.train
                },
                augment: AugmentSettings { least_scale: 0.35, ..default.augment },
                rate: StepDecay { every: 300, from: 1_500, factor: 0.8, ..default.rate },
                ..default
            }),
            other => Err(TrainError::Setting {
                key: format!("preset {other}"),
                reason: unknown(other, PRESETS, "preset"),
            }),
        }
    }
}
