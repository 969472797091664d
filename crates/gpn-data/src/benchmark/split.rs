//! Which classes are trained on, and which test classes are close to them or far from them.
//!
//! The procedure of the paper: classes join the training side and a held-out side in turn, so that the two keep a
//! share and a minimum graph distance; then every class that is not for training is Close or Far by its distance
//! to the nearest training class.

use std::ops::RangeInclusive;

use gpn_taxonomy::{Node, Taxonomy};
use serde::{Deserialize, Serialize};

use super::python_random::PythonRandom;
use crate::rng::{Purpose, Stream};

/// The side of the benchmark a class is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// Seen in training.
    Train,
    /// A test class near the training classes.
    Close,
    /// A test class far from the training classes.
    Far,
    /// In neither: its distance is outside both ranges.
    Unused,
}

impl Split {
    /// The name used in files and by front ends.
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Close => "close",
            Self::Far => "far",
            Self::Unused => "unused",
        }
    }
}

/// Where random choices come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Generator {
    /// CPython's `random`, which drew the published splits.
    Reference,
    /// This project's own streams.
    Gpn,
}

/// How classes are divided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SplitConfig {
    /// Seed of the choice.
    pub seed: u64,
    /// The generator that draws classes.
    pub generator: Generator,
    /// Share of classes on the training side, between 0 and 1; 1 trains on every class.
    pub train_share: f64,
    /// Hops that lie at least between a drawn training class and a drawn held-out class.
    pub min_distance: u32,
    /// Distances to the nearest training class that make a class Close.
    pub close: RangeInclusive<u32>,
    /// Distances to the nearest training class that make a class Far.
    pub far: RangeInclusive<u32>,
}

impl Default for SplitConfig {
    fn default() -> Self {
        Self {
            seed: 0,
            generator: Generator::Gpn,
            train_share: 0.8,
            min_distance: 3,
            close: 1..=4,
            far: 5..=10,
        }
    }
}

/// Classes with their split and their distance to the nearest training class, by node.
pub(super) struct Splits {
    /// The side of each class.
    pub split: Vec<Split>,
    /// Hops to the nearest training class; `u32::MAX` where none is reachable.
    pub distance: Vec<u32>,
}

/// Divides the classes of `taxonomy`, whose top class is `root`. The root is always for training.
///
/// `order` is the order in which classes are listed for the random choice. Costs O(min_distance * edges + classes * log classes).
pub(super) fn split_classes(taxonomy: &Taxonomy, root: Node, order: &[Node], config: &SplitConfig) -> Splits {
    let mut below = generator(config);
    let mut train = Side::new(taxonomy, order);
    let mut held_out = Side::new(taxonomy, order);
    // The quotient in floating point (0.8 / (1 - 0.8) is a little more than 4) decides the published splits.
    let ratio = config.train_share / (1.0 - config.train_share);
    loop {
        let for_training = train.members as f64 / ratio <= held_out.members as f64;
        let (side, other) =
            if for_training { (&mut train, &mut held_out) } else { (&mut held_out, &mut train) };
        if side.candidates.total() == 0 {
            break;
        }
        let place = side.candidates.nth(below(side.candidates.total()));
        side.members += 1;
        side.is_member[order[place] as usize] = true;
        side.candidates.remove(place);
        other.candidates.remove(place);
        other.keep_away_from(taxonomy, order[place], config.min_distance);
    }

    train.is_member[root as usize] = true;
    let sources: Vec<Node> = taxonomy.nodes().filter(|&node| train.is_member[node as usize]).collect();
    let distance = gpn_taxonomy::hop_distances(taxonomy, &sources);
    let split = distance
        .iter()
        .map(|hops| match hops {
            0 => Split::Train,
            hops if config.close.contains(hops) => Split::Close,
            hops if config.far.contains(hops) => Split::Far,
            _ => Split::Unused,
        })
        .collect();
    Splits { split, distance }
}

fn generator(config: &SplitConfig) -> Box<dyn FnMut(usize) -> usize> {
    match config.generator {
        Generator::Reference => {
            let mut random = PythonRandom::new(config.seed);
            Box::new(move |bound| random.below(bound))
        }
        Generator::Gpn => {
            let mut stream = Stream::new(config.seed, Purpose::Split, 0);
            Box::new(move |bound| stream.below(bound))
        }
    }
}

/// One of the two sides while classes are drawn.
struct Side {
    members: usize,
    is_member: Vec<bool>,
    /// Places in the order that may still join this side.
    candidates: Places,
    /// Hops to the nearest member of the other side, as far as they are below the minimum distance.
    other_distance: Vec<u32>,
    place_of: Vec<usize>,
}

impl Side {
    fn new(taxonomy: &Taxonomy, order: &[Node]) -> Self {
        let mut place_of = vec![0; taxonomy.len()];
        for (place, &node) in order.iter().enumerate() {
            place_of[node as usize] = place;
        }
        Self {
            members: 0,
            is_member: vec![false; taxonomy.len()],
            candidates: Places::all(order.len()),
            other_distance: vec![u32::MAX; taxonomy.len()],
            place_of,
        }
    }

    /// Strikes out every class closer than `min_distance` to `member`, which has joined the other side.
    ///
    /// A class is visited again only when its distance falls, at most `min_distance` times over all calls.
    fn keep_away_from(&mut self, taxonomy: &Taxonomy, member: Node, min_distance: u32) {
        let mut frontier = vec![member];
        for hops in 0..min_distance {
            let mut next = Vec::new();
            for node in frontier {
                if self.other_distance[node as usize] <= hops {
                    continue;
                }
                self.other_distance[node as usize] = hops;
                self.candidates.remove(self.place_of[node as usize]);
                next.extend(taxonomy.parents(node));
                next.extend(taxonomy.children(node));
            }
            frontier = next;
        }
    }
}

/// A set of places 0..n from which the k-th present one is found and removed in O(log n): a Fenwick tree of counts.
struct Places {
    present: Vec<bool>,
    counts: Vec<usize>,
    total: usize,
}

impl Places {
    fn all(len: usize) -> Self {
        let counts = (0..=len).map(|i| i & i.wrapping_neg()).collect();
        Self { present: vec![true; len], counts, total: len }
    }

    fn total(&self) -> usize {
        self.total
    }

    fn remove(&mut self, place: usize) {
        if std::mem::replace(&mut self.present[place], false) {
            self.total -= 1;
            let mut i = place + 1;
            while i < self.counts.len() {
                self.counts[i] -= 1;
                i += i & i.wrapping_neg();
            }
        }
    }

    /// The place of the k-th present entry, counted from 0; `k` is below `total`.
    fn nth(&self, k: usize) -> usize {
        let mut place = 0;
        let mut left = k;
        let mut stride = self.counts.len().next_power_of_two() / 2;
        while stride > 0 {
            let next = place + stride;
            if next < self.counts.len() && self.counts[next] <= left {
                left -= self.counts[next];
                place = next;
            }
            stride /= 2;
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use gpn_taxonomy::TaxonomyBuilder;
    use proptest::prelude::*;

    use super::*;

    fn chain(len: usize) -> Taxonomy {
        let mut builder = TaxonomyBuilder::new();
        let nodes: Vec<Node> = (0..len).map(|i| builder.add_class(&format!("c{i:04}"))).collect();
        for pair in nodes.windows(2) {
            builder.add_edge(pair[0], pair[1], None);
        }
        builder.build().unwrap().taxonomy
    }

    #[test]
    fn the_k_th_place_is_found_after_removals() {
        let mut places = Places::all(11);
        for place in [0, 4, 10, 4] {
            places.remove(place);
        }
        let left: Vec<usize> = (0..places.total()).map(|k| places.nth(k)).collect();
        assert_eq!(left, [1, 2, 3, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn a_share_of_one_trains_on_every_class() {
        let taxonomy = chain(20);
        let order: Vec<Node> = taxonomy.nodes().collect();
        let config = SplitConfig { train_share: 1.0, ..SplitConfig::default() };
        let splits = split_classes(&taxonomy, 0, &order, &config);
        assert!(splits.split.iter().all(|&split| split == Split::Train));
    }

    proptest! {
        #[test]
        fn splits_follow_the_distance(len in 2_usize..60, seed in 0_u64..50, reference in any::<bool>()) {
            let taxonomy = chain(len);
            let order: Vec<Node> = taxonomy.nodes().collect();
            let generator = if reference { Generator::Reference } else { Generator::Gpn };
            let config = SplitConfig { seed, generator, close: 1..=2, far: 3..=5, ..SplitConfig::default() };
            let splits = split_classes(&taxonomy, 0, &order, &config);
            prop_assert_eq!(splits.split[0], Split::Train);
            for (split, distance) in splits.split.iter().zip(&splits.distance) {
                let expected = match distance {
                    0 => Split::Train,
                    1..=2 => Split::Close,
                    3..=5 => Split::Far,
                    _ => Split::Unused,
                };
                prop_assert_eq!(*split, expected);
            }
        }
    }
}
