//! None of these: how well a score tells samples of no class from the others.

use serde::{Deserialize, Serialize};

use super::rates::share;
use super::{Answered, TestResult};
use crate::error::{Error, Result};

/// Share of unknown samples to be found when false alarms are counted.
const RECALL: f64 = 0.95;
const BINS: usize = 30;

/// How well samples of no class are told from the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnknownResult {
    /// Samples of classes of the model.
    pub known: usize,
    /// Samples of no class.
    pub unknown: usize,
    /// Probability that an unknown sample has a higher score than a known one.
    pub auroc: f64,
    /// Share of known samples taken for unknown at the threshold that finds 95% of the unknown ones.
    pub false_positives: f64,
    /// The scores of both.
    pub histogram: ScoreHistogram,
}

/// Scores of known and unknown samples in bins of equal width.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScoreHistogram {
    /// Where the first bin begins.
    pub low: f64,
    /// Where the last bin ends.
    pub high: f64,
    /// Known samples in each bin.
    pub known: Vec<usize>,
    /// Unknown samples in each bin.
    pub unknown: Vec<usize>,
}

/// Area under the curve of true and false positives: the probability that an unknown sample has a higher score than a known
/// one, where equal scores count half. None where one list is empty or a score is not a number.
///
/// O(n log n) for n scores.
///
/// ```
/// assert_eq!(gpn::measure::auroc(&[0.1, 0.2], &[0.2, 0.9]), Some(0.875));
/// ```
pub fn auroc(known_scores: &[f64], unknown_scores: &[f64]) -> Option<f64> {
    let (known, unknown) = (sorted(known_scores)?, sorted(unknown_scores)?);
    // For each unknown score twice the known ones below it and once the equal ones.
    let (mut below, mut not_above, mut twice) = (0, 0, 0u64);
    for score in &unknown {
        while known.get(below).is_some_and(|k| k < score) {
            below += 1;
        }
        while known.get(not_above).is_some_and(|k| k <= score) {
            not_above += 1;
        }
        twice += (below + not_above) as u64;
    }
    Some(twice as f64 / (2.0 * known.len() as f64 * unknown.len() as f64))
}

/// Share of known samples taken for unknown at the highest threshold that finds a share `recall` of the unknown ones. A
/// sample is taken for unknown where its score reaches the threshold. None as in [`auroc`].
pub fn false_positive_rate(known_scores: &[f64], unknown_scores: &[f64], recall: f64) -> Option<f64> {
    let (known, unknown) = (sorted(known_scores)?, sorted(unknown_scores)?);
    let count = unknown.len();
    let needed = (1..=count).find(|&found| share(found, count) >= recall).unwrap_or(count);
    let threshold = unknown[count - needed];
    Some(share(known.len() - known.partition_point(|&score| score < threshold), known.len()))
}

fn sorted(scores: &[f64]) -> Option<Vec<f64>> {
    let mut sorted = scores.to_vec();
    sorted.sort_by(f64::total_cmp);
    (!sorted.is_empty() && !sorted.iter().any(|score| score.is_nan())).then_some(sorted)
}

impl ScoreHistogram {
    fn new(known: &[f64], unknown: &[f64]) -> Self {
        let finite = || known.iter().chain(unknown).copied().filter(|score| score.is_finite());
        let low = finite().reduce(f64::min).unwrap_or(0.0);
        let high = finite().reduce(f64::max).filter(|&high| high > low).unwrap_or(low + 1.0);
        let count = |scores: &[f64]| {
            let mut bins = vec![0; BINS];
            for &score in scores {
                // Infinite scores fall into the outer bins.
                let bin = (score - low) / (high - low) * BINS as f64;
                bins[(bin.max(0.0) as usize).min(BINS - 1)] += 1;
            }
            bins
        };
        Self { low, high, known: count(known), unknown: count(unknown) }
    }
}

impl TestResult {
    /// Adds how well the scores of unknown samples stand out from those of the labelled ones, all of which need a score.
    pub fn with_unknown(mut self, answered: &Answered<'_>, unknown_scores: &[f64]) -> Result<Self> {
        let known: Option<Vec<f64>> = answered.samples.iter().map(|sample| sample.unknown_score).collect();
        let known = known
            .ok_or_else(|| Error::input("the test", "a labelled sample has no score for being unknown"))?;
        let [area, alarms] =
            [auroc(&known, unknown_scores), false_positive_rate(&known, unknown_scores, RECALL)];
        let (Some(auroc), Some(false_positives)) = (area, alarms) else {
            let reason = "there are none, or one is not a number; give some samples of no class";
            return Err(Error::input("the scores of unknown samples", reason));
        };
        self.unknown = Some(UnknownResult {
            known: known.len(),
            unknown: unknown_scores.len(),
            auroc,
            false_positives,
            histogram: ScoreHistogram::new(&known, unknown_scores),
        });
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::measure;
    use crate::measure::sample::{answers, graph_of};

    #[test]
    fn equal_scores_count_half() {
        assert_eq!(auroc(&[1.0, 1.0], &[1.0]), Some(0.5));
        assert_eq!(auroc(&[1.0, 2.0], &[3.0]), Some(1.0));
        assert_eq!(auroc(&[3.0], &[1.0, 2.0]), Some(0.0));
        assert_eq!((auroc(&[], &[1.0]), auroc(&[f64::NAN], &[1.0])), (None, None));
    }

    #[test]
    fn false_alarms_are_counted_at_the_threshold() {
        let unknown: Vec<f64> = (1..=20).map(f64::from).collect();
        // 19 of 20 are found from 2 on.
        assert_eq!(false_positive_rate(&[0.0, 1.0, 2.0, 5.0], &unknown, 0.95), Some(0.5));
        assert_eq!(false_positive_rate(&[0.0, 1.0, 2.0, 5.0], &unknown, 1.0), Some(0.75));
    }

    #[test]
    fn scores_join_a_result() {
        let graph = graph_of("r>a r>b");
        let mut answered = answers(&graph, "a:a b:b");
        let result = measure(&answered).unwrap();
        assert!(result.clone().with_unknown(&answered, &[0.5]).is_err());
        answered.samples[0].unknown_score = Some(0.0);
        answered.samples[1].unknown_score = Some(f64::NEG_INFINITY);
        assert!(result.clone().with_unknown(&answered, &[]).is_err());
        let unknown = result.with_unknown(&answered, &[0.5, 1.0]).unwrap().unknown.unwrap();
        assert_eq!((unknown.auroc, unknown.false_positives), (1.0, 0.0));
        assert_eq!(unknown.histogram.known[0], 2);
        assert_eq!((unknown.histogram.unknown[15], unknown.histogram.unknown[29]), (1, 1));
    }
}
