//! How much work an experiment is.

use gpn_train::{Config, TrainError};
use serde::{Deserialize, Serialize};

/// How much work an experiment is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Minutes, on built-in data: every part of the experiment, too short to tell methods apart well.
    #[default]
    Quick,
    /// Hours on a CPU, for Tiny-ImageNet: 8,000 episodes a run at 32x32, 600 test tasks.
    Standard,
    /// The paper's: 350,000 episodes a run at 84x84, for tieredImageNet on a GPU.
    Paper,
}

impl Scale {
    /// Test tasks behind every figure.
    pub(crate) fn tasks(self) -> u64 {
        match self {
            Self::Quick => 200,
            Self::Standard | Self::Paper => 600,
        }
    }

    /// The settings of every run, for so many episodes if given.
    pub(crate) fn config(self, episodes: Option<u64>) -> Result<Config, TrainError> {
        let mut config = Config::preset(match self {
            Self::Quick => "demo",
            Self::Standard => "default",
            Self::Paper => "paper",
        })?;
        let train = &mut config.train;
        train.episodes = episodes.unwrap_or(match self {
            Self::Quick => 600,
            Self::Standard => 8_000,
            Self::Paper => 350_000,
        });
        if self == Self::Quick {
            train.auxiliary_batch = 32;
            config.gnn.hidden = 16;
            config.validation.tasks = 100;
            config.validation.every = train.episodes;
        }
        train.log_every = (train.episodes / 20).max(1);
        train.checkpoint_every = (train.episodes / 10).max(1);
        // The paper's schedule of 350,000 episodes, compressed.
        config.rate.every = (train.episodes / 35).max(1);
        config.rate.from = 2 * config.rate.every;
        config.rate.factor = 0.9;
        Ok(config)
    }
}
