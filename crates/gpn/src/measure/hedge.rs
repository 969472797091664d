//! As deep as sure: what answers of any level are worth.

use gpn_taxonomy::{Node, Taxonomy, leaf_counts};
use serde::{Deserialize, Serialize};

use super::ancestry::Ancestry;
use super::rates::share;
use crate::error::{Error, Result};

/// Accuracy and information of answers by the confidence that was asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HedgeCurve {
    /// The points, by rising confidence.
    pub points: Vec<HedgePoint>,
}

/// What answers are worth at one confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HedgePoint {
    /// Least probability that an answer had to have.
    pub confidence: f64,
    /// Share of answers that are right: the truth, a class above it, or one below a truth that is no leaf.
    pub accuracy: f64,
    /// Mean information gain of the answers in bits: the logarithm of all leaves by those below the answer. A wrong answer
    /// gains nothing.
    pub bits: f64,
    /// The same as a share of what right leaves for all samples would gain.
    pub information: f64,
    /// Share of answers that are leaves.
    pub leaf_share: f64,
}

/// Measures answers of any level on one graph.
///
/// Right answers near the root say little, so accuracy alone is not enough: information gain (Deng et al., "Hedging your
/// bets", 2012) weighs an answer by how many leaves it excludes.
///
/// ```
/// use gpn::measure::HedgeMeasure;
/// use gpn::taxonomy::TaxonomyBuilder;
///
/// let mut graph = TaxonomyBuilder::new();
/// let [all, a, b] = ["all", "a", "b"].map(|id| graph.add_class(id));
/// graph.add_edge(all, a, None);
/// graph.add_edge(all, b, None);
/// let graph = graph.build()?.taxonomy;
/// let point = HedgeMeasure::new(&graph).point(0.9, &[a, b], &[a, all])?;
/// assert_eq!((point.accuracy, point.bits, point.leaf_share), (1.0, 0.5, 0.5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct HedgeMeasure<'a> {
    graph: &'a Taxonomy,
    /// Bits that each class gains.
    gains: Vec<f64>,
    /// Bits that a leaf gains.
    most: f64,
}

impl<'a> HedgeMeasure<'a> {
    /// Counts the leaves below each class of a graph.
    pub fn new(graph: &'a Taxonomy) -> Self {
        let most = libm::log2(graph.leaves().count().max(1) as f64);
        let gains = leaf_counts(graph).iter().map(|&leaves| most - libm::log2(f64::from(leaves))).collect();
        Self { graph, gains, most }
    }

    /// What `answers` are worth, sample by sample beside the `truths`. O(samples × ancestors of a class).
    pub fn point(&self, confidence: f64, truths: &[Node], answers: &[Node]) -> Result<HedgePoint> {
        if truths.len() != answers.len() || truths.is_empty() {
            let reason = format!("{} answers for {} truths; give one for each", answers.len(), truths.len());
            return Err(Error::input("the hedge curve", reason));
        }
        if let Some(n) = truths.iter().chain(answers).find(|&&n| n as usize >= self.graph.len()) {
            let reason =
                format!("class number {n} is outside of the graph, which has {} classes", self.graph.len());
            return Err(Error::input("the hedge curve", reason));
        }
        let ancestry = Ancestry::new(self.graph, truths.iter().chain(answers).copied());
        let (mut right, mut leaves, mut bits) = (0, 0, 0.0);
        for (&truth, &answer) in truths.iter().zip(answers) {
            leaves += usize::from(self.graph.children(answer).is_empty());
            let below = ancestry.is_at_or_below(answer, truth);
            if below || ancestry.is_at_or_below(truth, answer) {
                right += 1;
                // The label cannot judge what lies below it.
                bits += self.gains[if below { truth } else { answer } as usize];
            }
        }
        let bits = bits / truths.len() as f64;
        let accuracy = share(right, truths.len());
        Ok(HedgePoint {
            confidence,
            accuracy,
            bits,
            information: if self.most > 0.0 { bits / self.most } else { accuracy },
            leaf_share: share(leaves, truths.len()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::sample::graph_of;

    #[test]
    fn higher_classes_are_right_and_say_less() {
        let graph = graph_of("r>a r>b a>w a>x b>y b>z");
        let nodes =
            |words: &str| -> Vec<Node> { words.split(' ').map(|id| graph.find(id).unwrap()).collect() };
        let measure = HedgeMeasure::new(&graph);
        let point = |answers| measure.point(0.5, &nodes("w w w w"), &nodes(answers)).unwrap();
        let mixed = point("w a r y");
        assert_eq!(
            (mixed.accuracy, mixed.bits, mixed.information, mixed.leaf_share),
            (0.75, 0.75, 0.375, 0.5)
        );
        assert_eq!((point("w w w w").information, point("w w w w").accuracy), (1.0, 1.0));
        assert_eq!((point("r r r r").information, point("r r r r").accuracy), (0.0, 1.0));
        // An answer below a labelled inner class gains what the label says.
        let below = measure.point(0.5, &nodes("a"), &nodes("x")).unwrap();
        assert_eq!((below.bits, below.leaf_share), (1.0, 1.0));
        assert!(measure.point(0.5, &nodes("a"), &[]).is_err());
        assert!(measure.point(0.5, &nodes("a"), &[99]).is_err());
    }
}
