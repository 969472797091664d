//! Exchange behind computing: buckets of a step are summed over all ranks while the next are computed.

use std::sync::mpsc;

use super::Group;
use super::reduce::ShardSum;
use super::shards::Shards;
use crate::error::TrainError;

/// The exchange of a step.
pub(crate) struct Exchange<'a> {
    pub(crate) group: &'a dyn Group,
    pub(crate) shards: Shards,
    /// Which shards have something.
    pub(crate) has_work: &'a (dyn Fn(usize) -> bool + Sync),
}

impl Exchange<'_> {
    /// The sums over all ranks of what `compute` hands over, each with its length, in the same order.
    ///
    /// Where there are several ranks, a thread exchanges while `compute` goes on, and nobody else may use the group until this
    /// returns. What is left at the end is waited for.
    pub(crate) fn during(
        &self,
        compute: impl FnOnce(&mut dyn FnMut(ShardSum, usize)) -> Result<(), TrainError>,
    ) -> Result<Vec<Vec<f32>>, TrainError> {
        let (sender, buckets) = mpsc::channel::<(ShardSum, usize)>();
        let sum = move || -> Result<Vec<Vec<f32>>, TrainError> {
            let sums = buckets.into_iter();
            sums.map(|(sum, length)| sum.over(self.group, self.shards, length, self.has_work)).collect()
        };
        // A thread that has failed takes no more, and says why when it is waited for.
        let mut hand_over = move |sum, length| drop(sender.send((sum, length)));
        if self.group.size() == 1 {
            compute(&mut hand_over)?;
            drop(hand_over);
            return sum();
        }
        std::thread::scope(|scope| {
            self.group.set_computing(true);
            let sums = scope.spawn(sum);
            let computed = compute(&mut hand_over);
            self.group.set_computing(false);
            sums.thread().unpark();
            // No more will come.
            drop(hand_over);
            let sums = sums.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            computed.and(sums)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Alone, ThreadGroup};
    use super::*;

    const SHARDS: Shards = Shards { count: 5 };

    /// What a rank gets for two buckets of a value for each shard; `fails` after the first where it is so.
    fn sums(group: &dyn Group, fails: bool) -> Result<Vec<Vec<f32>>, TrainError> {
        let exchange = Exchange { group, shards: SHARDS, has_work: &|_| true };
        exchange.during(|hand_over| {
            for bucket in 1..=2 {
                let mut sum = ShardSum::default();
                for shard in SHARDS.of_rank(group.rank(), group.size()) {
                    sum.push(shard, Some(vec![(shard as f32 + 0.1).powi(9); bucket]));
                }
                hand_over(sum, bucket);
                if fails {
                    return Err(TrainError::Interrupted);
                }
            }
            Ok(())
        })
    }

    #[test]
    fn buckets_are_summed_in_order_by_any_number_of_ranks() {
        let alone = sums(&Alone, false).unwrap();
        assert_eq!(alone.iter().map(Vec::len).collect::<Vec<_>>(), [1, 2]);
        for size in 1..=SHARDS.count {
            let ranks = ThreadGroup::of(size).into_iter();
            let ranks = ranks.map(|group| std::thread::spawn(move || sums(&group, false).unwrap()));
            for sums in ranks.collect::<Vec<_>>() {
                assert_eq!(sums.join().unwrap(), alone, "{size} ranks");
            }
        }
    }

    #[test]
    fn a_rank_that_fails_on_the_way_says_why_and_ends_the_others() {
        let ranks = ThreadGroup::of(3).into_iter();
        let ranks = ranks.map(|group| {
            std::thread::spawn(move || sums(&group, group.rank() == 1).unwrap_err().to_string())
        });
        let told: Vec<String> =
            ranks.collect::<Vec<_>>().into_iter().map(|rank| rank.join().unwrap()).collect();
        assert_eq!(told[1], TrainError::Interrupted.to_string());
        assert!(told[0].contains("it has ended") && told[2].contains("it has ended"), "{told:?}");
    }

    #[test]
    fn a_panic_on_the_way_does_not_hang() {
        let group = ThreadGroup::of(2).remove(0);
        let exchange = Exchange { group: &group, shards: SHARDS, has_work: &|_| true };
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            exchange.during(|_| panic!("on the way"))
        }));
        assert!(outcome.is_err());
    }
}
