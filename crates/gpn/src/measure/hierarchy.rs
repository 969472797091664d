//! How far from the truth answers are in the class graph.

use gpn_taxonomy::{Node, levels};

use super::Answered;
use super::ancestry::Ancestry;
use super::rates::{harmonic, share};
use super::result::{DistanceAt, HierarchyResult, LevelResult};

/// Numbers of answers that the mean distance is given for.
const ANSWERS: [usize; 3] = [1, 5, 20];

/// `judged` are the answers as they count: the truth in place of an answer below it.
pub(super) fn hierarchy(answered: &Answered<'_>, ancestry: &Ancestry, judged: &[Node]) -> HierarchyResult {
    let (graph, samples) = (answered.graph, &answered.samples);
    let root = usize::from(ancestry.has_single_root());
    let (mut common, mut of_answers, mut of_truths) = (0, 0, 0);
    let (mut mistakes, mut heights, mut siblings) = (0, 0, 0);
    let mut by_level = ByLevel::new(answered, ancestry);
    for (sample, &answer) in samples.iter().zip(judged) {
        common += ancestry.common(sample.truth, answer).count() - root;
        of_answers += ancestry.count_below_root(answer);
        of_truths += ancestry.count_below_root(sample.truth);
        by_level.add(ancestry, sample.truth, answer);
        if answer != sample.truth {
            mistakes += 1;
            heights += u64::from(ancestry.distance(sample.truth, answer));
            let parents = graph.parents(answer);
            siblings +=
                usize::from(graph.parents(sample.truth).iter().any(|parent| parents.contains(parent)));
        }
    }
    // Samples of the root alone have nothing to be compared in; they are right.
    let of = |part: usize, all: usize| if all == 0 { 1.0 } else { share(part, all) };
    let (precision, recall) = (of(common, of_answers), of(common, of_truths));
    HierarchyResult {
        precision,
        recall,
        f1: harmonic(precision, recall),
        mistake_height: (mistakes > 0).then(|| heights as f64 / mistakes as f64),
        sibling_mistakes: (mistakes > 0).then(|| share(siblings, mistakes)),
        height: ancestry.above_roots(),
        distance_at: distances(answered, ancestry),
        levels: by_level.results(),
    }
}

fn distances(answered: &Answered<'_>, ancestry: &Ancestry) -> Vec<DistanceAt> {
    let shortest = answered.samples.iter().map(|sample| sample.ranked.len()).min().unwrap_or(0);
    let mut sums = [0u64; ANSWERS.len()];
    for sample in &answered.samples {
        let mut sum = 0;
        for (place, &(answer, _)) in sample.ranked.iter().take(ANSWERS[ANSWERS.len() - 1]).enumerate() {
            sum += u64::from(ancestry.distance(sample.truth, answer));
            if let Some(at) = ANSWERS.iter().position(|&k| k == place + 1) {
                sums[at] += sum;
            }
        }
    }
    let mean = |k: usize, sum: u64| sum as f64 / (k * answered.samples.len()) as f64;
    let listed = ANSWERS.into_iter().zip(sums).filter(|&(k, _)| k <= shortest);
    listed.map(|(k, sum)| DistanceAt { k, distance: mean(k, sum) }).collect()
}

/// Right answers at each level below the root.
struct ByLevel {
    /// Level of each class along the longest path: 1 below the only root, or for each of several roots.
    level: Vec<usize>,
    /// Samples and right ones, by level.
    counts: Vec<[usize; 2]>,
    /// Classes that samples are labelled with or below.
    seen: Vec<bool>,
    /// Levels where the answer at hand is right, to count each once; all false between answers.
    marked: Vec<bool>,
}

impl ByLevel {
    fn new(answered: &Answered<'_>, ancestry: &Ancestry) -> Self {
        let below = usize::from(!ancestry.has_single_root());
        let level: Vec<usize> =
            levels(answered.graph).longest.iter().map(|&depth| depth as usize + below).collect();
        let deepest = answered.samples.iter().map(|sample| level[sample.truth as usize]).max().unwrap_or(0);
        let seen = vec![false; level.len()];
        Self { level, counts: vec![[0, 0]; deepest + 1], seen, marked: vec![false; deepest + 1] }
    }

    fn add(&mut self, ancestry: &Ancestry, truth: Node, answer: Node) {
        for &n in ancestry.of(truth) {
            self.seen[n as usize] = true;
        }
        let depth = self.level[truth as usize];
        // Each level down to the truth has an ancestor of the truth, on its longest path.
        for counts in &mut self.counts[..=depth] {
            counts[0] += 1;
        }
        for n in ancestry.common(truth, answer) {
            // Every common ancestor is one of the truth, so it lies no deeper.
            self.marked[self.level[n as usize]] = true;
        }
        for (counts, marked) in self.counts.iter_mut().zip(&mut self.marked) {
            counts[1] += usize::from(std::mem::take(marked));
        }
    }

    fn results(&self) -> Vec<LevelResult> {
        let mut classes = vec![0; self.counts.len()];
        for (&level, _) in self.level.iter().zip(&self.seen).filter(|(_, seen)| **seen) {
            classes[level] += 1;
        }
        let results = self.counts.iter().zip(classes).zip(0..).skip(1);
        results
            .map(|(([samples, right], classes), level)| LevelResult {
                level,
                classes,
                samples: *samples,
                accuracy: share(*right, *samples),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::measure::measure;
    use crate::measure::sample::{answers, graph_of};

    #[test]
    fn mistakes_near_the_truth_count_less() {
        let graph = graph_of("r>a r>b a>x a>y b>z");
        let result = measure(&answers(&graph, "x:x,y,z x:y,x,z x:z,x,y z:z,x,y")).unwrap().hierarchy;
        // Common below the root: 2 + 1 + 0 + 2 of 8.
        assert_eq!((result.precision, result.recall, result.f1), (0.625, 0.625, 0.625));
        assert_eq!((result.mistake_height, result.sibling_mistakes), (Some(1.5), Some(0.5)));
        let levels: Vec<_> =
            result.levels.iter().map(|l| (l.level, l.classes, l.samples, l.accuracy)).collect();
        assert_eq!(levels, [(1, 2, 4, 0.75), (2, 2, 4, 0.5)]);
        let distances: Vec<_> = result.distance_at.iter().map(|at| (at.k, at.distance)).collect();
        assert_eq!(distances, [(1, 0.75)]);
    }

    #[test]
    fn leaves_at_unequal_depths_and_several_parents_work() {
        let graph = graph_of("r>a r>pet a>x pet>x pet>y r>z");
        let result = measure(&answers(&graph, "x:y z:z y:y")).unwrap().hierarchy;
        // {a, pet, x} with {pet, y}: one common; {z}; {pet, y}.
        assert_eq!((result.precision, result.recall), (4.0 / 5.0, 4.0 / 6.0));
        let levels: Vec<_> = result.levels.iter().map(|l| (l.level, l.samples, l.accuracy)).collect();
        // At the first level `x` is a pet and an `a`; a `y` is a pet too.
        assert_eq!(levels, [(1, 3, 1.0), (2, 2, 0.5)]);
    }

    #[test]
    fn a_graph_without_edges_has_one_level() {
        let graph = graph_of("a b c");
        let result = measure(&answers(&graph, "a:a b:c")).unwrap();
        assert_eq!((result.hierarchy.f1, result.hierarchy.mistake_height), (0.5, Some(1.0)));
        let levels: Vec<_> =
            result.hierarchy.levels.iter().map(|l| (l.level, l.samples, l.accuracy)).collect();
        assert_eq!(levels, [(1, 2, 0.5)]);
    }
}
