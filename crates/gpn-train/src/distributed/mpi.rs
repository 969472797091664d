//! Ranks that are processes on one machine or many, joined by MPI.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mpi::collective::CommunicatorCollectives as _;
use mpi::datatype::{Partition, PartitionMut};
use mpi::environment::Universe;
use mpi::request::{Request, Scope};
use mpi::topology::{Communicator as _, SimpleCommunicator};
use mpi::{Count, Threading};

use super::{ByRank, Group};
use crate::error::TrainError;

/// How often MPI is asked whether an exchange is done while this process computes. Messages over a network move on only then.
const POLL: Duration = Duration::from_micros(200);

/// The processes that one `mpirun` (or `srun`) has started.
///
/// A rank that dies, or that MPI cannot reach, ends all of them: that is MPI's own default.
pub struct MpiGroup {
    rank: usize,
    size: usize,
    is_computing: AtomicBool,
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
        let (rank, size) = (world.rank() as usize, world.size() as usize);
        Ok(Self { rank, size, is_computing: AtomicBool::new(false), _universe: universe })
    }

    /// Waits for a request. MPI itself would take half of the core that this process computes on.
    fn wait<'a, D: ?Sized>(&self, mut request: Request<'a, D, impl Scope<'a>>) {
        while self.is_computing.load(Ordering::Relaxed) {
            match request.test() {
                Ok(_) => return,
                Err(unfinished) => request = unfinished,
            }
            std::thread::park_timeout(POLL);
        }
        request.wait_without_status();
    }
}

impl Group for MpiGroup {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn exchange(&self, outgoing: &ByRank, incoming: &mut ByRank) -> Result<(), TrainError> {
        let (counts, places) = layout(&outgoing.lengths)?;
        let sent = Partition::new(&outgoing.values[..], counts, places);
        let (counts, places) = layout(&incoming.lengths)?;
        let mut received = PartitionMut::new(&mut incoming.values[..], counts, places);
        mpi::request::scope(|scope| {
            let world = SimpleCommunicator::world();
            self.wait(world.immediate_all_to_all_varcount_into(scope, &sent, &mut received));
        });
        Ok(())
    }

    fn share(&self, own: &[f32], incoming: &mut ByRank) -> Result<(), TrainError> {
        let (counts, places) = layout(&incoming.lengths)?;
        let mut received = PartitionMut::new(&mut incoming.values[..], counts, places);
        mpi::request::scope(|scope| {
            let world = SimpleCommunicator::world();
            self.wait(world.immediate_all_gather_varcount_into(scope, own, &mut received));
        });
        Ok(())
    }

    fn gather(&self, own: &[u8]) -> Result<Vec<Vec<u8>>, TrainError> {
        let world = SimpleCommunicator::world();
        // One byte more: Rust's address of no bytes at all is what Open MPI calls "in place".
        let mut sent = own.to_vec();
        sent.push(0);
        let mut lengths = vec![0_u64; self.size];
        world.all_gather_into(&(sent.len() as u64), &mut lengths[..]);
        let lengths: Vec<usize> = lengths.iter().map(|&length| length as usize).collect();
        let (counts, places) = layout(&lengths)?;
        let mut received = vec![0_u8; lengths.iter().sum()];
        let mut partition = PartitionMut::new(&mut received[..], counts, places);
        world.all_gather_varcount_into(&sent[..], &mut partition);
        let mut rest = &received[..];
        let gathered = lengths.iter().map(|length| {
            let (of_rank, others) = rest.split_at(*length);
            rest = others;
            of_rank[..length - 1].to_vec()
        });
        Ok(gathered.collect())
    }

    fn set_computing(&self, is_computing: bool) {
        self.is_computing.store(is_computing, Ordering::Relaxed);
    }

    fn abort(&self) -> ! {
        SimpleCommunicator::world().abort(1)
    }
}

/// Lengths and first places of parts that lie one after the other, as MPI counts them.
fn layout(lengths: &[usize]) -> Result<(Vec<Count>, Vec<Count>), TrainError> {
    let too_long = |_| TrainError::Mpi { reason: "a message is longer than 2^31 values".into() };
    let (mut counts, mut places, mut place) = (Vec::new(), Vec::new(), 0);
    for length in lengths {
        counts.push(Count::try_from(*length).map_err(too_long)?);
        places.push(Count::try_from(place).map_err(too_long)?);
        place += length;
    }
    Ok((counts, places))
}
