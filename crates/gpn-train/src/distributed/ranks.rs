//! Who does a piece of work, and how it is stopped.

use std::ops::Range;

use super::{Alone, ByRank, Group};
use crate::error::TrainError;
use crate::stop::StopHandle;

/// The processes that divide a piece of work, and the handle that stops it.
#[derive(Clone, Copy)]
pub struct Ranks<'a> {
    /// The processes.
    pub group: &'a dyn Group,
    /// Stops the work. Of several processes, all stop where one is asked to; in training steps, where one that has a task or
    /// samples in the step is. The first process always has.
    pub stop: &'a StopHandle,
}

impl<'a> From<&'a StopHandle> for Ranks<'a> {
    /// This process alone.
    fn from(stop: &'a StopHandle) -> Self {
        Self { group: &Alone, stop }
    }
}

impl Ranks<'_> {
    /// Whether there are others.
    pub(crate) fn is_alone(self) -> bool {
        self.group.size() == 1
    }

    /// The part of `count` things that a rank does.
    pub(crate) fn part_of(self, rank: usize, count: usize) -> Range<usize> {
        let size = self.group.size();
        count * rank / size..count * (rank + 1) / size
    }

    /// An error where the work is to stop; the same for all ranks.
    pub(crate) fn check(self) -> Result<(), TrainError> {
        if self.is_alone() {
            return self.stop.check();
        }
        self.together(Vec::new(), &vec![0; self.group.size()]).map(drop)
    }

    /// Exact numbers that ranks have computed, one rank's after the other's; or the same error for all, where any is to stop.
    pub(crate) fn gathered(self, own: &[f64]) -> Result<Vec<f64>, TrainError> {
        let mut sent = vec![u8::from(self.stop.is_stopped())];
        sent.extend(own.iter().flat_map(|value| value.to_le_bytes()));
        let mut all = Vec::new();
        let gathered = self.group.gather(&sent)?;
        if gathered.iter().any(|of_rank| of_rank[0] == 1) {
            return Err(TrainError::Interrupted);
        }
        for of_rank in gathered {
            all.extend(of_rank[1..].as_chunks().0.iter().map(|&bytes| f64::from_le_bytes(bytes)));
        }
        Ok(all)
    }

    /// The numbers that ranks have computed, one rank's after the other's; `lengths` says how many each has. Where any rank is
    /// asked to stop, all get the same error.
    pub(crate) fn together(self, own: Vec<f32>, lengths: &[usize]) -> Result<Vec<f32>, TrainError> {
        let mut sent = own;
        sent.push(f32::from(self.stop.is_stopped()));
        let mut incoming = ByRank::zeros(lengths.iter().map(|length| length + 1));
        self.group.share(&sent, &mut incoming)?;
        let mut is_stopped = false;
        let mut all = Vec::with_capacity(lengths.iter().sum());
        for of_rank in incoming.parts() {
            let (values, flag) = of_rank.split_at(of_rank.len() - 1);
            is_stopped |= flag[0] > 0.0;
            all.extend_from_slice(values);
        }
        if is_stopped { Err(TrainError::Interrupted) } else { Ok(all) }
    }
}
