//! How the work of a step is divided into shards, and shards among ranks.

use std::ops::Range;

/// The shards of each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shards {
    pub(crate) count: usize,
}

impl Shards {
    /// The part of a step's `things` (tasks, or samples) that belongs to a shard. The first shard always has one.
    pub(crate) fn part(self, shard: usize, things: usize) -> Range<usize> {
        let begin = |shard: usize| (shard * things).div_ceil(self.count);
        begin(shard)..begin(shard + 1)
    }

    /// The shards that a rank computes.
    pub(crate) fn of_rank(self, rank: usize, size: usize) -> Range<usize> {
        self.count * rank / size..self.count * (rank + 1) / size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thing_belongs_to_one_shard_and_every_shard_to_one_rank() {
        for count in 1..9 {
            let shards = Shards { count };
            for things in 1..20 {
                let parts: Vec<usize> = (0..count).flat_map(|shard| shards.part(shard, things)).collect();
                assert_eq!(parts, (0..things).collect::<Vec<_>>());
                assert!(!shards.part(0, things).is_empty());
            }
            for size in 1..=count {
                let all: Vec<usize> = (0..size).flat_map(|rank| shards.of_rank(rank, size)).collect();
                assert_eq!(all, (0..count).collect::<Vec<_>>());
                assert!((0..size).all(|rank| !shards.of_rank(rank, size).is_empty()));
            }
        }
    }
}
