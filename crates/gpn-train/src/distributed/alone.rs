//! The group of one: this process alone.

use super::{ByRank, Group};
use crate::error::TrainError;

/// A process that trains alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Group for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn exchange(&self, outgoing: &ByRank, incoming: &mut ByRank) -> Result<(), TrainError> {
        self.share(&outgoing.values, incoming)
    }

    fn share(&self, own: &[f32], incoming: &mut ByRank) -> Result<(), TrainError> {
        incoming.values.copy_from_slice(own);
        Ok(())
    }

    fn gather(&self, own: &[u8]) -> Result<Vec<Vec<u8>>, TrainError> {
        Ok(vec![own.to_vec()])
    }

    fn abort(&self) -> ! {
        std::process::exit(1)
    }
}
