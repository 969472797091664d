//! What changes over the course of training: the auxiliary task, lambda and the learning rate.

use gpn_data::rng::{Purpose, Stream};
use gpn_model::StepDecay;

use crate::settings::ScheduleConfig;

/// What an episode does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// One batch of the auxiliary classification task.
    Auxiliary,
    /// One few-shot task.
    FewShot,
}

/// The course of one run.
#[derive(Clone, Debug)]
pub struct Schedule {
    config: ScheduleConfig,
    rate: StepDecay,
    episodes: u64,
    seed: u64,
    /// Few-shot episodes before episode `rate.from`.
    few_shot_before: u64,
}

impl Schedule {
    /// The course of a run of `episodes`.
    pub fn new(config: ScheduleConfig, rate: StepDecay, episodes: u64, seed: u64) -> Self {
        let mut schedule = Self { config, rate, episodes, seed, few_shot_before: 0 };
        if schedule.config.count_few_shot_only {
            let before = 0..rate.from.min(episodes);
            schedule.few_shot_before =
                before.filter(|&t| schedule.kind(t) == StepKind::FewShot).count() as u64;
        }
        schedule
    }

    /// What episode `t` does: drawn from the episode's own stream, so that it depends on nothing before it.
    pub fn kind(&self, t: u64) -> StepKind {
        let probability = libm::pow(0.9, 20.0 * self.progress(t));
        let drawn = Stream::new(self.seed, Purpose::Step, t).unit();
        if self.config.auxiliary && drawn < probability { StepKind::Auxiliary } else { StepKind::FewShot }
    }

    /// Weight of the prototype before propagation in episode `t`.
    pub fn lambda(&self, t: u64) -> f32 {
        if !self.config.anneal_lambda {
            return self.config.lambda;
        }
        let every = self.config.lambda_every.max(1);
        (1.0 - self.progress(t / every * every)) as f32
    }

    /// Learning rate of episode `t`, before which `few_shot` few-shot episodes were taken.
    pub fn rate(&self, t: u64, few_shot: u64) -> f64 {
        if !self.config.count_few_shot_only {
            return self.rate.rate(t);
        }
        // The authors' scheduler begins to count at `from`, and its first fall comes after `every` counts.
        let counted = few_shot.saturating_sub(self.few_shot_before).checked_sub(self.rate.every);
        self.rate.rate(counted.map_or(0, |since| self.rate.from + since))
    }

    fn progress(&self, t: u64) -> f64 {
        t as f64 / self.episodes.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::schedule::AUXILIARY_SHARE;

    fn schedule(config: ScheduleConfig) -> Schedule {
        Schedule::new(config, StepDecay::default(), 10_000, 1)
    }

    #[test]
    fn about_forty_percent_of_episodes_are_auxiliary() {
        let schedule = schedule(ScheduleConfig::default());
        let auxiliary =
            |range: std::ops::Range<u64>| range.filter(|&t| schedule.kind(t) == StepKind::Auxiliary).count();
        assert!((auxiliary(0..10_000) as f64 - 10_000.0 * AUXILIARY_SHARE).abs() < 170.0);
        assert!(auxiliary(0..500) > 450);
        assert!(auxiliary(9_500..10_000) < 100);
    }

    #[test]
    fn lambda_falls_in_steps() {
        let config = ScheduleConfig { lambda_every: 100, ..ScheduleConfig::default() };
        let schedule = schedule(config);
        for (t, expected) in [(0, 1.0), (99, 1.0), (100, 0.99), (5_000, 0.5), (5_050, 0.5)] {
            assert!((schedule.lambda(t) - expected).abs() < 1e-6, "{t}");
        }
    }

    #[test]
    fn the_rate_may_count_few_shot_episodes_only() {
        let rate = StepDecay { every: 229, from: 500, ..StepDecay::default() };
        let config = ScheduleConfig { count_few_shot_only: true, ..ScheduleConfig::default() };
        let schedule = Schedule::new(config, rate, 8_000, 1);
        let (mut few_shot, mut counted) = (0, 0);
        for t in 0..8_000 {
            let falls = counted / 229;
            assert!((schedule.rate(t, few_shot) - 1e-3 * 0.9_f64.powi(falls)).abs() < 1e-12, "{t}");
            if schedule.kind(t) == StepKind::FewShot {
                few_shot += 1;
                counted += i32::from(t >= 500);
            }
        }
        assert!((18..=22).contains(&(counted / 229)), "{counted}");
        let every_episode = Schedule::new(ScheduleConfig::default(), rate, 8_000, 1);
        assert!((every_episode.rate(500, 0) - 0.9e-3).abs() < 1e-12);
    }
}
