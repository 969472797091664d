//! Which samples each class gets.
//!
//! A class of any level has samples of the leaves below it, a fixed number from each, and within a data set
//! (training and Close, or training and Far) no sample is used for two classes.

use serde::{Deserialize, Serialize};

use super::split::Split;
use crate::rng::{Purpose, Stream};

/// What a sample of a class is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// Training.
    Train,
    /// Choosing settings while training; never trained on.
    Val,
    /// Support and query samples of test tasks.
    Test,
}

/// A class as the assignment sees it.
pub(super) struct Claimant {
    /// The side it is on.
    pub split: Split,
    /// The root also gets test samples, since it stands in the test graphs.
    pub is_root: bool,
    /// The source leaves at or below it, ascending.
    pub leaves: Vec<u32>,
}

/// How many samples a class gets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AssignConfig {
    /// Seed of the choice.
    pub seed: u64,
    /// Samples of each leaf below a class.
    pub per_leaf: usize,
    /// Share of a training class's samples kept for validation.
    pub val_share: f64,
}

impl Default for AssignConfig {
    fn default() -> Self {
        Self { seed: 0, per_leaf: 20, val_share: 0.1 }
    }
}

/// One row of the assignment: class, sample, part.
pub(super) type Row = (u32, u32, Part);

/// A leaf with too few samples: every class above it gets `given` of them instead of the number in the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shortage {
    /// Position of the leaf in the source.
    pub leaf: u32,
    /// Samples the leaf has.
    pub samples: usize,
    /// Classes that draw from it within one data set.
    pub classes: usize,
    /// Samples that each class gets.
    pub given: usize,
}

/// Hands out samples. `samples_of[leaf]` lists the samples of a leaf; rows come ordered by class, then sample.
pub(super) fn assign_samples(
    claimants: &[Claimant],
    samples_of: &[Vec<u32>],
    config: &AssignConfig,
) -> (Vec<Row>, Vec<Shortage>) {
    let claims = Claims::new(claimants, samples_of.len());
    let mut training: Vec<Vec<u32>> = vec![Vec::new(); claimants.len()];
    let mut rows = Vec::new();
    let mut shortages = Vec::new();
    for (leaf, samples) in samples_of.iter().enumerate() {
        let [train, root, close, far] = &claims.of_leaf[leaf];
        let classes = train.len() + root.len() + close.len().max(far.len());
        if classes == 0 {
            continue;
        }
        let given = config.per_leaf.min(samples.len() / classes);
        if given < config.per_leaf {
            shortages.push(Shortage { leaf: leaf as u32, samples: samples.len(), classes, given });
        }
        let mut stream = Stream::new(config.seed, Purpose::Assignment, leaf as u64);
        let shuffled = stream.choose(samples, samples.len());
        let mut portions = shuffled[..given * classes].chunks(given.max(1));
        for &class in train {
            training[class as usize].extend(portions.next().into_iter().flatten());
        }
        for &class in root {
            rows.extend(portions.next().into_iter().flatten().map(|&sample| (class, sample, Part::Test)));
        }
        // Close and Far are separate data sets: both draw from what training and the root left over.
        for side in [close, far] {
            let mut portions = portions.clone();
            for &class in side {
                rows.extend(portions.next().into_iter().flatten().map(|&sample| (class, sample, Part::Test)));
            }
        }
    }
    for (class, samples) in training.iter().enumerate() {
        let parts = hold_out(samples.len(), config.val_share);
        rows.extend(samples.iter().zip(parts).map(|(&sample, part)| (class as u32, sample, part)));
    }
    rows.sort_unstable();
    (rows, shortages)
}

/// Marks a share of `count` samples, evenly spaced, as validation: at least one of four or more.
pub(super) fn hold_out(count: usize, share: f64) -> Vec<Part> {
    let mut held = (count as f64 * share).round() as usize;
    if held == 0 && share > 0.0 && count >= 4 {
        held = 1;
    }
    let mut parts = vec![Part::Train; count];
    for i in 0..held.min(count) {
        parts[(2 * i + 1) * count / (2 * held)] = Part::Val;
    }
    parts
}

/// For each leaf, the classes that draw from it: training, root (for test), Close, Far.
struct Claims {
    of_leaf: Vec<[Vec<u32>; 4]>,
}

impl Claims {
    fn new(claimants: &[Claimant], leaves: usize) -> Self {
        let mut of_leaf: Vec<[Vec<u32>; 4]> = (0..leaves).map(|_| Default::default()).collect();
        let any_test = claimants.iter().any(|class| matches!(class.split, Split::Close | Split::Far));
        for (class, claimant) in claimants.iter().enumerate() {
            for &leaf in &claimant.leaves {
                let sides = &mut of_leaf[leaf as usize];
                match claimant.split {
                    Split::Train => {
                        sides[0].push(class as u32);
                        if claimant.is_root && any_test {
                            sides[1].push(class as u32);
                        }
                    }
                    Split::Close => sides[2].push(class as u32),
                    Split::Far => sides[3].push(class as u32),
                    Split::Unused => {}
                }
            }
        }
        Self { of_leaf }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn claimant(split: Split, leaves: &[u32]) -> Claimant {
        Claimant { split, is_root: false, leaves: leaves.to_vec() }
    }

    fn example(samples_per_leaf: u32) -> (Vec<Row>, Vec<Shortage>) {
        let root = Claimant { split: Split::Train, is_root: true, leaves: vec![0, 1] };
        let claimants = [
            root,
            claimant(Split::Train, &[0]),
            claimant(Split::Close, &[0, 1]),
            claimant(Split::Far, &[1]),
            claimant(Split::Unused, &[1]),
        ];
        let samples_of: Vec<Vec<u32>> =
            (0..2).map(|leaf| (leaf * samples_per_leaf..(leaf + 1) * samples_per_leaf).collect()).collect();
        assign_samples(&claimants, &samples_of, &AssignConfig { per_leaf: 10, ..AssignConfig::default() })
    }

    #[test]
    fn each_class_gets_its_number_from_each_leaf() {
        let (rows, shortages) = example(50);
        let count = |class, part| rows.iter().filter(|row| row.0 == class && row.2 == part).count();
        assert_eq!([count(0, Part::Train), count(0, Part::Val), count(0, Part::Test)], [18, 2, 20]);
        assert_eq!([count(1, Part::Train), count(1, Part::Val), count(1, Part::Test)], [9, 1, 0]);
        assert_eq!([count(2, Part::Test), count(3, Part::Test)], [20, 10]);
        assert_eq!(rows.iter().filter(|row| row.0 == 4).count(), 0);
        assert!(shortages.is_empty());
    }

    #[test]
    fn no_sample_serves_twice_within_a_data_set() {
        let (rows, _) = example(50);
        for other in [3, 2] {
            let samples: Vec<u32> = rows.iter().filter(|row| row.0 != other).map(|row| row.1).collect();
            assert_eq!(samples.len(), samples.iter().collect::<HashSet<_>>().len());
        }
    }

    #[test]
    fn short_leaves_are_shared_evenly_and_reported() {
        let (rows, shortages) = example(20);
        // Leaf 0 serves the root twice, class 1 and class 2: four portions of five.
        assert_eq!(shortages[0], Shortage { leaf: 0, samples: 20, classes: 4, given: 5 });
        assert_eq!(rows.iter().filter(|row| row.0 == 1).count(), 5);
        let (rows, _) = example(0);
        assert!(rows.is_empty());
    }

    #[test]
    fn validation_takes_its_share_evenly() {
        let held = |count, share| hold_out(count, share).iter().filter(|&&part| part == Part::Val).count();
        assert_eq!(
            [held(20, 0.1), held(4, 0.1), held(3, 0.1), held(100, 0.25), held(5, 0.0)],
            [2, 1, 0, 25, 0]
        );
        assert_eq!(held(5, 1.0), 5);
    }
}
