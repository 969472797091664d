//! A group of processes that train one model.

use std::sync::Arc;

use crate::error::TrainError;

/// Bytes that the first rank hands to all at once: less than the 2^31 that MPI can count.
const PIECE: usize = 1 << 28;

/// Values for each rank, or of each.
#[derive(Clone, Debug)]
pub struct ByRank {
    /// One rank's after the other's.
    pub values: Vec<f32>,
    /// How many each rank has.
    pub lengths: Vec<usize>,
}

impl ByRank {
    /// Zeros to be filled.
    pub fn zeros(lengths: impl IntoIterator<Item = usize>) -> Self {
        let lengths: Vec<usize> = lengths.into_iter().collect();
        Self { values: vec![0.0; lengths.iter().sum()], lengths }
    }

    /// The values of each rank.
    pub fn parts(&self) -> impl Iterator<Item = &[f32]> {
        let mut rest = &self.values[..];
        self.lengths.iter().map(move |&length| {
            let (part, others) = rest.split_at(length);
            rest = others;
            part
        })
    }
}

/// A group of processes, the ranks, that train one model. The first, rank 0, writes its files.
///
/// All ranks call the same functions in the same order; each call ends when all have called it.
pub trait Group: Send + Sync {
    /// The number of this process, below [`size`](Self::size).
    fn rank(&self) -> usize;

    /// The number of processes.
    fn size(&self) -> usize;

    /// Sends to each rank its part of `outgoing`, and fills each rank's part of `incoming`, as long as what comes, with what it
    /// has sent to this one.
    fn exchange(&self, outgoing: &ByRank, incoming: &mut ByRank) -> Result<(), TrainError>;

    /// Sends `own` to all ranks, and fills each rank's part of `incoming`, as long as what comes, with what it has sent.
    fn share(&self, own: &[f32], incoming: &mut ByRank) -> Result<(), TrainError>;

    /// What each rank gives, for all of them, by rank.
    fn gather(&self, own: &[u8]) -> Result<Vec<Vec<u8>>, TrainError>;

    /// Says whether this process computes on another thread while one exchanges, which then leaves it the core while it waits.
    /// A thread that is unparked looks again.
    fn set_computing(&self, _is_computing: bool) {}

    /// Ends all processes at once, with an exit code that says so.
    fn abort(&self) -> !;

    /// What the first rank gives, for all of them.
    fn of_first(&self, own: &[u8]) -> Result<Vec<u8>, TrainError> {
        let is_first = self.rank() == 0;
        let first = |own: &[u8]| -> Result<Vec<u8>, TrainError> {
            Ok(self.gather(if is_first { own } else { &[] })?.swap_remove(0))
        };
        let mut length = [0; 8];
        // invariant: the first rank sends eight bytes.
        length.copy_from_slice(&first(&(own.len() as u64).to_le_bytes())?);
        let length = u64::from_le_bytes(length) as usize;
        let mut all = Vec::with_capacity(length);
        while all.len() < length {
            let rest = if is_first { &own[all.len()..] } else { own };
            all.extend(first(&rest[..rest.len().min(PIECE)])?);
        }
        Ok(all)
    }
}

/// The processes that `mpirun` or a scheduler has started with this one. Called once.
pub fn mpi_group() -> Result<Arc<dyn Group>, TrainError> {
    #[cfg(feature = "mpi")]
    return Ok(Arc::new(super::MpiGroup::join()?));
    #[cfg(not(feature = "mpi"))]
    Err(TrainError::WithoutMpi)
}
