//! Ranks that are processes on one machine or many, joined by MPI.

use mpi::collective::CommunicatorCollectives as _;
use mpi::datatype::{Partition, PartitionMut};
use mpi::environment::Universe;
use mpi::topology::{Communicator as _, SimpleCommunicator};
use mpi::{Count, Threading};

use super::Group;
use crate::error::TrainError;

/// The processes that one `mpirun` (or `srun`) has started.
///
/// A rank that dies, or that MPI cannot reach, ends all of them: that is MPI's own default.
pub struct MpiGroup {
    rank: usize,
    size: usize,
    /// MPI ends when it is dropped.
    _universe: Universe,
}

impl MpiGroup {
    /// Begins MPI. Called once, by the thread that ends the process.
    pub fn join() -> Result<Self, TrainError> {
        // Training runs in a pool of threads, of which one at a time calls MPI.
        let (universe, provided) = mpi::initialize_with_threading(Threading::Serialized)
            .ok_or(TrainError::Mpi { reason: "it has been started in this process before".into() })?;
        if provided < Threading::Serialized {
            return Err(TrainError::Mpi {
                reason: "this MPI serves the main thread only; install one with MPI_THREAD_SERIALIZED, as Open MPI and \
                         MPICH of all distributions are"
                    .into(),
            });
        }
        let world = SimpleCommunicator::world();
        Ok(Self { rank: world.rank() as usize, size: world.size() as usize, _universe: universe })
    }
}

impl Group for MpiGroup {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn exchange(&self, outgoing: &[Vec<f32>], incoming: &mut [Vec<f32>]) -> Result<(), TrainError> {
        let (counts, places) = layout(outgoing.iter().map(Vec::len))?;
        let sent = outgoing.concat();
        let (counts_in, places_in) = layout(incoming.iter().map(|of_rank| of_rank.len()))?;
        let mut received = vec![0.0_f32; incoming.iter().map(Vec::len).sum()];
        SimpleCommunicator::world().all_to_all_varcount_into(
            &Partition::new(&sent[..], counts, places),
            &mut PartitionMut::new(&mut received[..], counts_in, places_in),
        );
        hand_out(&received, incoming);
        Ok(())
    }

    fn share(&self, own: &[f32], incoming: &mut [Vec<f32>]) -> Result<(), TrainError> {
        let (counts, places) = layout(incoming.iter().map(|of_rank| of_rank.len()))?;
        let mut received = vec![0.0_f32; incoming.iter().map(Vec::len).sum()];
        let mut partition = PartitionMut::new(&mut received[..], counts, places);
        SimpleCommunicator::world().all_gather_varcount_into(own, &mut partition);
        hand_out(&received, incoming);
        Ok(())
    }

    fn gather(&self, own: &[u8]) -> Result<Vec<Vec<u8>>, TrainError> {
        let world = SimpleCommunicator::world();
        // One byte more: Rust's address of no bytes at all is what Open MPI calls "in place".
        let mut sent = own.to_vec();
        sent.push(0);
        let mut lengths = vec![0_u64; self.size];
        world.all_gather_into(&(sent.len() as u64), &mut lengths[..]);
        let mut gathered: Vec<Vec<u8>> = lengths.iter().map(|&length| vec![0; length as usize]).collect();
        let (counts, places) = layout(gathered.iter().map(Vec::len))?;
        let mut received = vec![0_u8; gathered.iter().map(Vec::len).sum()];
        let mut partition = PartitionMut::new(&mut received[..], counts, places);
        world.all_gather_varcount_into(&sent[..], &mut partition);
        hand_out(&received, &mut gathered);
        gathered.iter_mut().for_each(|of_rank| of_rank.truncate(of_rank.len() - 1));
        Ok(gathered)
    }

    fn abort(&self) -> ! {
        SimpleCommunicator::world().abort(1)
    }
}

/// Lengths and first places of parts that lie one after the other, as MPI counts them.
fn layout(lengths: impl Iterator<Item = usize>) -> Result<(Vec<Count>, Vec<Count>), TrainError> {
    let too_long = |_| TrainError::Mpi { reason: "a message is longer than 2^31 values".into() };
    let (mut counts, mut places, mut place) = (Vec::new(), Vec::new(), 0);
    for length in lengths {
        counts.push(Count::try_from(length).map_err(too_long)?);
        places.push(Count::try_from(place).map_err(too_long)?);
        place += length;
    }
    Ok((counts, places))
}

/// Cuts what was received into its parts.
fn hand_out<T: Copy>(received: &[T], parts: &mut [Vec<T>]) {
    let mut rest = received;
    for part in parts {
        let (own, others) = rest.split_at(part.len());
        part.copy_from_slice(own);
        rest = others;
    }
}
