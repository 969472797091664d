//! The sum of all shards' vectors, for all ranks.
//!
//! Each rank adds up the shards it has computed, branch by branch of a fixed tree ([`PairwiseSum`]). The vector is cut into one
//! piece for each rank; a rank gets that piece of everybody's branches, adds them up in the order of the tree, and hands the
//! sum to all. With as many shards as ranks this sends two vectors per rank, as few as any all-reduce; with more shards on a
//! rank than one, no more where each rank has the same number of shards and that number is a power of two, and up to
//! `2 log2(shards)` for each otherwise.

use std::ops::Range;

use super::pairwise_sum::{Branch, PairwiseSum};
use super::shards::Shards;
use super::{ByRank, Group};
use crate::error::TrainError;

/// What a rank has added up so far.
#[derive(Default)]
pub(crate) struct ShardSum(PairwiseSum);

impl ShardSum {
    /// Adds the vector of the next shard, or says that it has none.
    pub(crate) fn push(&mut self, shard: usize, values: Option<Vec<f32>>) {
        self.0.push(Branch { first: shard, places: 1, values });
    }

    /// The sum over all shards of all ranks. `has_work` says which shards have a vector, `length` how long each is.
    pub(crate) fn over(
        self,
        group: &dyn Group,
        shards: Shards,
        length: usize,
        has_work: impl Fn(usize) -> bool,
    ) -> Result<Vec<f32>, TrainError> {
        let size = group.size();
        if size == 1 {
            return Ok(self.0.total().unwrap_or_default());
        }
        let piece = |rank: usize| length * rank / size..length * (rank + 1) / size;
        let own: Vec<Vec<f32>> = self.0.branches().into_iter().filter_map(|branch| branch.values).collect();
        let mut outgoing = ByRank { values: Vec::with_capacity(own.len() * length), lengths: Vec::new() };
        for rank in 0..size {
            for values in &own {
                outgoing.values.extend_from_slice(&values[piece(rank)]);
            }
            outgoing.lengths.push(own.len() * piece(rank).len());
        }
        let branches: Vec<Vec<Branch>> =
            (0..size).map(|rank| branches(shards.of_rank(rank, size), &has_work)).collect();
        let width = piece(group.rank()).len();
        let mut incoming = ByRank::zeros(branches.iter().map(|of_rank| {
            let sent = of_rank.iter().filter(|branch| branch.values.is_some()).count();
            sent * width
        }));
        group.exchange(&outgoing, &mut incoming)?;

        let mut sum = PairwiseSum::default();
        for (of_rank, values) in branches.into_iter().zip(incoming.parts()) {
            let mut pieces = values.chunks_exact(width.max(1));
            for branch in of_rank {
                let values = branch.values.map(|_| pieces.next().map_or_else(Vec::new, <[f32]>::to_vec));
                sum.push(Branch { values, ..branch });
            }
        }
        let own = sum.total().unwrap_or_default();
        let mut sums = ByRank::zeros((0..size).map(|rank| piece(rank).len()));
        group.share(&own, &mut sums)?;
        Ok(sums.values)
    }
}

/// The branches that a rank with these shards has, with an empty vector where it sends one.
fn branches(shards: Range<usize>, has_work: impl Fn(usize) -> bool) -> Vec<Branch> {
    let mut sum = PairwiseSum::default();
    for shard in shards {
        sum.push(Branch { first: shard, places: 1, values: has_work(shard).then(Vec::new) });
    }
    sum.branches()
}

#[cfg(test)]
mod tests {
    use super::super::{Alone, ThreadGroup};
    use super::*;

    #[test]
    fn any_number_of_ranks_gets_the_same_sum() {
        for (count, length) in [(1, 3), (4, 5), (7, 1), (8, 2), (12, 9)] {
            let shards = Shards { count };
            let has_work = |shard: usize| shard % 3 != 1;
            let vector = move |shard: usize| -> Option<Vec<f32>> {
                let value = |element: usize| ((shard * 37 + element * 11) as f32).powi(3) * 1e-2 - 3.3;
                has_work(shard).then(|| (0..length).map(value).collect())
            };
            let total = move |group: &dyn Group| {
                let mut sum = ShardSum::default();
                for shard in shards.of_rank(group.rank(), group.size()) {
                    sum.push(shard, vector(shard));
                }
                sum.over(group, shards, length, has_work).unwrap()
            };
            let alone = total(&Alone);
            assert_eq!(alone.len(), length);
            for size in 1..=count {
                let ranks = ThreadGroup::of(size).into_iter();
                let ranks = ranks.map(|group| std::thread::spawn(move || total(&group)));
                for sum in ranks.collect::<Vec<_>>() {
                    assert_eq!(sum.join().unwrap(), alone, "{count} shards, {size} ranks");
                }
            }
        }
    }
}
