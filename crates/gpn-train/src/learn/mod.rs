//! Learning: the network with its training steps, the memory, the schedule, the optimisers and the validation tasks.

pub(crate) mod fitting;
pub(crate) mod means;
pub(crate) mod memory;
pub(crate) mod network;
pub(crate) mod optimisers;
pub(crate) mod schedule;
pub(crate) mod validation;
