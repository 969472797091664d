//! The end of a run: which model it ships.

use gpn_model::Device;

use super::best;
use super::directory::RunDirectory;
use super::model_card::model_card;
use super::trainer::Trainer;
use crate::error::TrainError;
use crate::model::file::{ModelInfo, TrainedModel};

/// The models of a run that came to its end.
pub struct Shipped {
    /// `model.safetensors`: the best on the validation tasks, or the last where there are none.
    pub model: ModelInfo,
    /// `last.safetensors`: the model after the last episode.
    pub last: ModelInfo,
}

impl Trainer {
    /// Writes the last model, the model card, and the model of the run, which is there when all is.
    pub fn ship(&self, run: &RunDirectory) -> Result<Shipped, TrainError> {
        let last = self.info();
        self.save_model(&run.last_model())?;
        let best = self.position().best.map(|best| best::path(&run.checkpoints(), best.episode));
        let model = if let Some(path) = best {
            let best = TrainedModel::read(&path, &Device::cpu())?;
            run.write_card(&model_card(&best.info, &last, self.benchmark()))?;
            TrainedModel::save(&run.model(), &best.info, &best.network, &best.memory)?;
            best.info
        } else {
            run.write_card(&model_card(&last, &last, self.benchmark()))?;
            self.save_model(&run.model())?;
            last.clone()
        };
        Ok(Shipped { model, last })
    }
}
