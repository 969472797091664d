//! A group of processes that train one model.

use std::sync::Arc;

use crate::error::TrainError;

/// Bytes that the first rank hands to all at once: less than the 2^31 that MPI can count.
const PIECE: usize = 1 << 28;

/// A group of processes, the ranks, that train one model. The first, rank 0, writes its files.
///
/// All ranks call the same functions in the same order; each call ends when all have called it.
pub trait Group: Send + Sync {
    /// The number of this process, below [`size`](Self::size).
    fn rank(&self) -> usize;

    /// The number of processes.
    fn size(&self) -> usize;

    /// Sends `outgoing[r]` to each rank `r`, and fills `incoming[r]` with what rank `r` has sent to this one. Each is as
    /// long as what comes.
    fn exchange(&self, outgoing: &[Vec<f32>], incoming: &mut [Vec<f32>]) -> Result<(), TrainError>;

    /// Sends `own` to all ranks, and fills `incoming[r]` with what rank `r` has sent. Each is as long as what comes.
    fn share(&self, own: &[f32], incoming: &mut [Vec<f32>]) -> Result<(), TrainError>;

    /// What each rank gives, for all of them, by rank.
    fn gather(&self, own: &[u8]) -> Result<Vec<Vec<u8>>, TrainError>;

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
