//! Training by several processes: how the work of a step is divided, and how what they found is put together.
//!
//! The work of a step is divided into a fixed number of shards (`train.shards`), each a batch of its own. A [`Group`] of
//! processes, the ranks, shares the shards out, and their gradients are summed in the order of shards. What a model becomes
//! thus depends on the number of shards, and not on who computes them: one process alone ([`Alone`]), several threads of
//! one ([`ThreadGroup`]) or many machines (`MpiGroup`, cargo feature `mpi`) give the same bits. Gradients are exchanged in
//! buckets while the backward pass computes the next.

mod alone;
pub(crate) mod contribution;
mod group;
#[cfg(feature = "mpi")]
mod mpi;
pub(crate) mod overlap;
mod pairwise_sum;
mod ranks;
pub(crate) mod reduce;
pub(crate) mod shards;
mod threads;

pub use alone::Alone;
pub use group::{ByRank, Group, mpi_group};
#[cfg(feature = "mpi")]
pub use mpi::MpiGroup;
pub use ranks::Ranks;
pub use threads::ThreadGroup;
