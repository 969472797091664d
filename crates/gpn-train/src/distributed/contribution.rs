//! What one shard adds to a step: gradients, running statistics, loss and accuracy, all weighted by the shard's share of the
//! step.
//!
//! It is divided into buckets, in the order in which they are final, so that one can be exchanged while the next is computed.
//! The first has all but the gradients of the backbone, and is final before the backward pass; the others have those, from the
//! last layers to the first.

use std::ops::Range;

use gpn_model::{TensorInfo, Trainable as _};

use super::reduce::ShardSum;
use crate::error::TrainError;
use crate::learn::network::{Learned, Network, StepPass, StepResult};

/// Numbers behind the network's own in the first bucket: loss, accuracy, and how many shards have asked to stop.
const MORE: usize = 3;

/// Buckets of the backbone's gradients, at most. Few have to wait for the end of the backward pass, and each is worth a message.
const MOST: usize = 4;

/// How contributions are divided: the same for all shards of a run.
pub(crate) struct Buckets {
    /// The backbone's tensors of each bucket behind the first.
    tensors: Vec<Range<usize>>,
    /// Their values.
    lengths: Vec<usize>,
}

impl Buckets {
    /// Whole tensors from the last to the first, until a bucket has its part of all values.
    pub(crate) fn of(network: &Network) -> Self {
        let sizes: Vec<usize> = network.embedder.parameters().infos().iter().map(TensorInfo::numel).collect();
        let enough = sizes.iter().sum::<usize>().div_ceil(MOST);
        let (mut tensors, mut lengths) = (Vec::new(), Vec::new());
        let (mut end, mut length) = (sizes.len(), 0);
        for (tensor, size) in sizes.iter().enumerate().rev() {
            length += size;
            if length >= enough || tensor == 0 {
                tensors.push(tensor..end);
                lengths.push(length);
                (end, length) = (tensor, 0);
            }
        }
        Self { tensors, lengths }
    }

    /// Nothing added up yet, for each bucket.
    pub(crate) fn sums(&self) -> Vec<ShardSum> {
        (0..=self.tensors.len()).map(|_| ShardSum::default()).collect()
    }

    /// The length of each bucket.
    pub(crate) fn lengths(&self, network: &mut Network, learned: Learned) -> Vec<usize> {
        let first = network.final_early(learned).iter().map(|values| values.len()).sum::<usize>() + MORE;
        std::iter::once(first).chain(self.lengths.iter().copied()).collect()
    }

    /// Computes the backward pass of a shard, and hands each bucket over as soon as it is final; `None` for each where the
    /// shard has nothing.
    pub(crate) fn take(
        &self,
        network: &mut Network,
        pass: Option<&StepPass>,
        wants_stop: bool,
        hand_over: &mut dyn FnMut(usize, Option<Vec<f32>>),
    ) -> Result<(), TrainError> {
        let Some(pass) = pass else {
            (0..=self.tensors.len()).for_each(|bucket| hand_over(bucket, None));
            return Ok(());
        };
        let mut first = network.final_early(pass.learned).concat();
        first.extend([pass.result.loss, pass.result.accuracy, f32::from(wants_stop)]);
        hand_over(0, Some(first));
        let mut left = (1..).zip(&self.tensors).peekable();
        network.backward(pass, &mut |first, gradients| {
            while let Some((bucket, tensors)) = left.next_if(|(_, tensors)| tensors.start >= first) {
                hand_over(bucket, Some(gradients[tensors.clone()].concat()));
            }
        })
    }

    /// Gives the network the sums of the buckets over all shards. Returns the result of the step, and whether anyone has asked
    /// to stop.
    pub(crate) fn put(
        &self,
        network: &mut Network,
        learned: Learned,
        sums: &[Vec<f32>],
    ) -> (StepResult, bool) {
        // invariant: there is a sum for each bucket, as long as it is.
        let more = fill(network.final_early(learned), &sums[0]);
        let mut gradients: Vec<&mut [f32]> = network.embedder.gradients_mut().collect();
        for (tensors, sum) in self.tensors.iter().zip(&sums[1..]) {
            fill(gradients.drain(tensors.clone()), sum);
        }
        (StepResult { loss: more[0], accuracy: more[1] }, more[2] > 0.0)
    }
}

/// Fills tensors from a vector that has their values one after the other. Returns the rest of it.
fn fill<'a, 'b>(tensors: impl IntoIterator<Item = &'a mut [f32]>, vector: &'b [f32]) -> &'b [f32] {
    tensors.into_iter().fold(vector, |rest, values| {
        let (own, rest) = rest.split_at(values.len());
        values.copy_from_slice(own);
        rest
    })
}
