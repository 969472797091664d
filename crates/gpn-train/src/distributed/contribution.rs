//! What one shard adds to a step, as one vector: gradients, running statistics, loss and accuracy, all weighted by the shard's
//! share of the step.

use crate::learn::network::{Learned, Network, StepResult};

/// Numbers behind the network's own: loss, accuracy, and how many shards have asked to stop.
const MORE: usize = 3;

/// Length of the vector.
pub(crate) fn length(network: &mut Network, learned: Learned) -> usize {
    network.averaged(learned).iter().map(|values| values.len()).sum::<usize>() + MORE
}

/// The vector of the shard that the network has just learned from.
pub(crate) fn take(
    network: &mut Network,
    learned: Learned,
    result: &StepResult,
    wants_stop: bool,
) -> Vec<f32> {
    let mut vector = Vec::with_capacity(length(network, learned));
    network.averaged(learned).iter().for_each(|values| vector.extend_from_slice(values));
    vector.extend([result.loss, result.accuracy, f32::from(wants_stop)]);
    vector
}

/// Gives the network the sum over all shards. Returns the result of the step, and whether anyone has asked to stop.
pub(crate) fn put(network: &mut Network, learned: Learned, sum: &[f32]) -> (StepResult, bool) {
    let mut rest = sum;
    for values in network.averaged(learned) {
        let (own, others) = rest.split_at(values.len());
        values.copy_from_slice(own);
        rest = others;
    }
    // invariant: the vector has these numbers behind the network's own.
    (StepResult { loss: rest[0], accuracy: rest[1] }, rest[2] > 0.0)
}
