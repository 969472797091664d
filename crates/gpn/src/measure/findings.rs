//! What of a result deserves a look: weak classes, their mistakes, doubtful labels, classes that are hard to tell apart.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use gpn_report::SampleGroup;
use gpn_taxonomy::Node;
use serde::{Deserialize, Serialize};

use super::ancestry::Ancestry;
use super::rates::share;
use super::{Answered, ClassResult, TestResult, wilson};
use crate::error::Result;

/// Two classes that were taken for one another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfusedPair {
    /// Ids of the classes, in the order of the more frequent mistake: truth, answer.
    pub classes: [String; 2],
    /// How often the first was taken for the second, and the second for the first.
    pub counts: [usize; 2],
}

/// The classes with the least share of right answers, at most so many. Classes without a mistake are none of them. Of equal
/// shares the one with more samples comes first.
pub fn worst_classes(result: &TestResult, most: usize) -> Vec<&ClassResult> {
    let mut worst: Vec<&ClassResult> =
        result.classes.iter().filter(|class| class.right < class.samples).collect();
    worst.sort_by(|a, b| {
        let by_share = share(a.right, a.samples).total_cmp(&share(b.right, b.samples));
        by_share.then_with(|| b.samples.cmp(&a.samples))
    });
    worst.truncate(most);
    worst
}

/// Positions of the samples of a class that were answered wrong, those with the surest answers first, at most so many.
pub fn mistakes_of(answered: &Answered<'_>, class: Node, most: usize) -> Result<Vec<usize>> {
    contradicted(answered, 0.0, most, |truth| truth == class)
}

/// Positions of samples whose label may be wrong: an answer of at least this probability contradicts it. The surest come first, at
/// most so many. The model must not have learned from these samples.
///
/// An answer above the label does not contradict it.
pub fn suspicious_labels(answered: &Answered<'_>, least_probability: f64, most: usize) -> Result<Vec<usize>> {
    contradicted(answered, least_probability, most, |_| true)
}

fn contradicted(
    answered: &Answered<'_>,
    least_probability: f64,
    most: usize,
    of: impl Fn(Node) -> bool,
) -> Result<Vec<usize>> {
    answered.check()?;
    let samples = &answered.samples;
    let probability = |place: usize| samples[place].ranked[0].1;
    let mut places: Vec<usize> = (0..samples.len())
        .filter(|&place| of(samples[place].truth) && probability(place) >= least_probability)
        .collect();
    let pair = |place: usize| [samples[place].truth, samples[place].answer()];
    let ancestry = Ancestry::new(answered.graph, places.iter().flat_map(|&place| pair(place)));
    places.retain(|&place| {
        let [truth, answer] = pair(place);
        !ancestry.is_at_or_below(answer, truth) && !ancestry.is_at_or_below(truth, answer)
    });
    places.sort_by(|&a, &b| probability(b).total_cmp(&probability(a)));
    places.truncate(most);
    Ok(places)
}

/// The pairs of classes most often taken for one another, in both directions together, at most so many.
pub fn confused_pairs(result: &TestResult, most: usize) -> Vec<ConfusedPair> {
    let mut pairs: BTreeMap<[&str; 2], [usize; 2]> = BTreeMap::new();
    for pair in &result.confusion {
        let (truth, answer) = (pair.truth.as_str(), pair.answer.as_str());
        let (key, place) = if truth < answer { ([truth, answer], 0) } else { ([answer, truth], 1) };
        pairs.entry(key).or_default()[place] += pair.count;
    }
    let mut pairs: Vec<ConfusedPair> = pairs
        .into_iter()
        .map(|([a, b], [there, back])| {
            let (classes, counts) =
                if there >= back { ([a, b], [there, back]) } else { ([b, a], [back, there]) };
            ConfusedPair { classes: classes.map(str::to_owned), counts }
        })
        .collect();
    // Sorting is stable, so equal counts stay in the order of their ids.
    pairs.sort_by_key(|pair| Reverse(pair.counts[0] + pair.counts[1]));
    pairs.truncate(most);
    pairs
}

/// Accuracy by how many samples a class was learned from, in groups of 1, 2, 3–4, 5–8, 9–16 and so on. `learned_from` knows
/// that number by the id of a class; a class it does not know is left out.
pub fn accuracy_by_samples(
    result: &TestResult,
    learned_from: impl Fn(&str) -> Option<usize>,
) -> Vec<SampleGroup> {
    // By the power of two that the number does not exceed: classes, samples, right.
    let mut groups: BTreeMap<u32, [usize; 3]> = BTreeMap::new();
    for class in result.classes.iter().filter(|class| class.samples > 0) {
        let Some(count) = learned_from(&class.id).filter(|&count| count > 0) else { continue };
        let group = groups.entry(count.next_power_of_two().ilog2()).or_default();
        group[0] += 1;
        group[1] += class.samples;
        group[2] += class.right;
    }
    let group = |(power, [classes, samples, right]): (u32, [usize; 3])| {
        let high = 1usize << power;
        let low = high / 2 + 1;
        SampleGroup {
            label: if low >= high { high.to_string() } else { format!("{low}–{high}") },
            classes,
            tested: samples,
            accuracy: share(right, samples),
            interval: wilson(right, samples),
        }
    };
    groups.into_iter().map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::measure;
    use crate::measure::sample::{answers, graph_of};

    #[test]
    fn what_deserves_a_look_is_found() {
        let graph = graph_of("r>a r>b r>c a>x a>y");
        let mut answered = answers(&graph, "x:y x:y y:x b:b c:b x:x x:a");
        answered.samples[1].ranked[0].1 = 0.9;
        let result = measure(&answered).unwrap();
        let ids: Vec<&str> = worst_classes(&result, 9).iter().map(|class| class.id.as_str()).collect();
        assert_eq!(ids, ["c", "y", "x"]);
        let x = graph.find("x").unwrap();
        // The answer `a` to an `x` is too high, but no contradiction.
        assert_eq!(mistakes_of(&answered, x, 9).unwrap(), [1, 0]);
        assert_eq!(suspicious_labels(&answered, 0.6, 9).unwrap(), [1]);
        let pairs = confused_pairs(&result, 2);
        assert_eq!((pairs[0].classes.join(" "), pairs[0].counts), ("x y".to_owned(), [2, 1]));
        assert_eq!(pairs.len(), 2);
    }

    #[test]
    fn classes_are_grouped_by_powers_of_two() {
        let graph = graph_of("r>a r>b r>c r>d");
        let result = measure(&answers(&graph, "a:a b:b c:a d:d")).unwrap();
        let groups = accuracy_by_samples(&result, |id| match id {
            "a" => Some(1),
            "b" => Some(5),
            "c" => Some(8),
            _ => None,
        });
        let read: Vec<_> = groups.iter().map(|g| (g.label.as_str(), g.classes, g.accuracy)).collect();
        assert_eq!(read, [("1", 1, 1.0), ("5–8", 2, 0.5)]);
    }
}
