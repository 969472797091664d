//! What the numbers among the settings must be, wherever they come from: the command line, a file, a model of unknown origin.

use super::Config;
use crate::error::TrainError;

impl Config {
    /// Refuses numbers that are not finite, too small to make sense, or so large that they can only be a mistake or an attack.
    pub(crate) fn check_numbers(&self) -> Result<(), TrainError> {
        let refused = |key: &str, reason: String| Err(TrainError::Setting { key: key.to_owned(), reason });
        let least_one = [
            ("train.episodes", self.train.episodes),
            ("train.checkpoint_every", self.train.checkpoint_every),
            ("train.keep_checkpoints", self.train.keep_checkpoints as u64),
            ("train.log_every", self.train.log_every),
            ("train.auxiliary_batch", self.train.auxiliary_batch as u64),
            ("train.tasks_per_step", self.train.tasks_per_step as u64),
            ("train.shards", self.train.shards as u64),
        ];
        if let Some((key, _)) = least_one.into_iter().find(|(_, value)| *value == 0) {
            return refused(key, "it must be at least 1".into());
        }
        // What a file of settings can hold.
        let most = i64::MAX.cast_unsigned();
        let at_most = [
            ("train.episodes", self.train.episodes, most),
            ("train.seed", self.train.seed, most),
            ("model.image_size", u64::from(self.model.image_size), 4096),
            ("propagation.steps", self.propagation.steps as u64, 64),
            ("propagation.heads", self.propagation.heads as u64, 1024),
            ("propagation.hidden", self.propagation.hidden as u64, 65_536),
            ("gnn.hidden", self.gnn.hidden as u64, 65_536),
            ("gnn.blocks", self.gnn.blocks as u64, 64),
            ("baseline.steps", self.baseline.steps as u64, 1_000_000),
            ("pathways.nearest", self.pathways.nearest as u64, 10_000),
            ("task.way", self.task.way as u64, 65_536),
            ("task.shot", self.task.shot as u64, 1 << 20),
            ("task.most_shot", self.task.most_shot as u64, 1 << 20),
            ("train.workers", self.train.workers as u64, 1024),
            ("train.tasks_per_step", self.train.tasks_per_step as u64, 65_536),
            ("train.shards", self.train.shards as u64, 65_536),
        ];
        if let Some((key, value, most)) = at_most.into_iter().find(|(_, value, most)| value > most) {
            return refused(key, format!("{value} is too large; the most is {most}"));
        }
        if let Some(key) = self.first_not_finite() {
            return refused(&key, "it must be a finite number".into());
        }
        if !(0.001..=1.0).contains(&self.memory.share) {
            return refused("memory.share", "it must be between 0.001 and 1".into());
        }
        Ok(())
    }

    /// The first setting that is NaN or infinite.
    fn first_not_finite(&self) -> Option<String> {
        // invariant: settings are plain values in groups, which always serialise. JSON has no such numbers and says null.
        let groups = serde_json::to_value(self).unwrap();
        for (group, settings) in groups.as_object().into_iter().flatten() {
            for (name, value) in settings.as_object().into_iter().flatten() {
                if value.is_null() {
                    return Some(format!("{group}.{name}"));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_cannot_be_are_refused() {
        for (assignment, expected) in [
            ("schedule.lambda=nan", "finite"),
            ("propagation.keep=inf", "finite"),
            ("rate.initial=-inf", "finite"),
            // Finite, but not as single precision.
            ("train.distance_scale=1e300", "finite"),
            ("propagation.steps=2147483648", "too large"),
            ("propagation.heads=1099511627776", "too large"),
            ("memory.share=nan", "setting `memory.share`"),
            ("task.shot=9000000000000000000", "too large"),
            ("task.most_shot=9000000000000000000", "too large"),
        ] {
            let message = Config::default().with_setting(assignment).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
        // Given past the settings' own file, as by a command's option.
        for key in ["train.episodes", "train.seed"] {
            let mut config = Config::default();
            let value = if key == "train.seed" { &mut config.train.seed } else { &mut config.train.episodes };
            *value = u64::MAX;
            let message = config.check_numbers().unwrap_err().to_string();
            assert!(message.contains(key) && message.contains("too large"), "{message}");
        }
    }
}
