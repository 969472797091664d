//! How good answers are: measures of a model's answers to labelled samples.
//!
//! **In** come answers, from whatever model ([`Answered`]). **Out** comes a [`TestResult`]: accuracy with its interval, per class,
//! confusion, calibration, and how far mistakes are from the truth in the class graph. Single measures are functions of
//! their own ([`wilson`], [`auroc`], [`false_positive_rate`]). [`test_page`] and the functions beside it choose what a
//! page shows of a result, and [`class_table`] and [`sample_table`] are for files.
//!
//! ```
//! use gpn::measure::{Answered, AnsweredSample, measure};
//! use gpn::taxonomy::TaxonomyBuilder;
//!
//! let mut graph = TaxonomyBuilder::new();
//! let [fruit, apple, gala, fuji, pear] = ["fruit", "apple", "gala", "fuji", "pear"].map(|id| graph.add_class(id));
//! for (parent, child) in [(fruit, apple), (fruit, pear), (apple, gala), (apple, fuji)] {
//!     graph.add_edge(parent, child, None);
//! }
//! let graph = graph.build()?.taxonomy;
//! let sample = |truth, ranked: [(u32, f64); 3]| AnsweredSample {
//!     truth,
//!     ranked: ranked.to_vec(),
//!     ..AnsweredSample::default()
//! };
//! let result = measure(&Answered {
//!     graph: &graph,
//!     samples: vec![
//!         sample(gala, [(gala, 0.8), (fuji, 0.1), (pear, 0.1)]),
//!         sample(gala, [(fuji, 0.5), (gala, 0.4), (pear, 0.1)]),
//!     ],
//! })?;
//! assert_eq!(result.accuracy, 0.5);
//! // A fuji is an apple, which is half of what there was to say.
//! assert_eq!(result.hierarchy.f1, 0.75);
//! assert_eq!(result.hierarchy.mistake_height, Some(1.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ancestry;
mod calibration;
mod classes;
mod findings;
mod hedge;
mod hierarchy;
mod page;
mod rates;
mod result;
#[cfg(test)]
mod sample;
mod tables;
mod unknown;

use gpn_taxonomy::{Node, Taxonomy};

use crate::error::{Error, Result};
use ancestry::Ancestry;
use rates::{harmonic, share};

pub use findings::{
    ConfusedPair, accuracy_by_samples, confused_pairs, mistakes_of, suspicious_labels, worst_classes,
};
pub use hedge::{HedgeCurve, HedgeMeasure, HedgePoint};
pub(crate) use page::told_apart;
pub use page::{path_above, test_page};
pub use rates::wilson;
pub use result::{
    ClassResult, ConfusedWith, Confusion, DistanceAt, GroupResult, HierarchyResult, LevelResult, TestResult,
};
pub use tables::{class_table, sample_table};
pub use unknown::{ScoreHistogram, UnknownResult, auroc, false_positive_rate};

/// Answers of a model to labelled samples.
#[derive(Clone, Debug)]
pub struct Answered<'a> {
    /// The graph that all classes are positions in.
    pub graph: &'a Taxonomy,
    /// The samples with their labels and answers.
    pub samples: Vec<AnsweredSample>,
}

/// A labelled sample and what a model answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AnsweredSample {
    /// What the sample is called: its file, or file and row.
    pub name: String,
    /// The class it is labelled with: a leaf, or a class above.
    pub truth: Node,
    /// The answers, the likeliest first, with their probabilities: classes that exclude one another, as leaves do. At least
    /// five where there are so many, and twenty for the hierarchical distance at twenty.
    pub ranked: Vec<(Node, f64)>,
    /// Probability of the truth, for the log loss. Needed where `ranked` was cut before it says that.
    pub truth_probability: Option<f64>,
    /// Whether the labelled class was taught after fitting.
    pub is_new: bool,
    /// How much the sample looks like none of the classes; high is unknown.
    pub unknown_score: Option<f64>,
}

impl AnsweredSample {
    /// The likeliest class.
    fn answer(&self) -> Node {
        self.ranked[0].0
    }
}

/// Measures answers.
///
/// O(samples × answers × ancestors of a class + classes + edges). Memory grows with the mistakes and the ancestors of the
/// classes that occur, not with the square of the classes.
pub fn measure(answered: &Answered<'_>) -> Result<TestResult> {
    answered.check()?;
    let ancestry = answered.ancestry();
    let samples = &answered.samples;
    let is_right = |sample: &AnsweredSample, answer: Node| ancestry.is_at_or_below(answer, sample.truth);
    // An answer below the truth counts as the truth.
    let judged: Vec<Node> = samples
        .iter()
        .map(|sample| {
            let answer = sample.answer();
            if is_right(sample, answer) { sample.truth } else { answer }
        })
        .collect();
    let right: Vec<bool> =
        samples.iter().zip(&judged).map(|(sample, &answer)| answer == sample.truth).collect();
    let right_count = right.iter().filter(|&&right| right).count();
    let in_top5 =
        |sample: &&AnsweredSample| sample.ranked.iter().take(5).any(|&(answer, _)| is_right(sample, answer));
    let (classes, confusion) = classes::classes(answered, &judged);
    let with_samples: Vec<&ClassResult> = classes.iter().filter(|class| class.samples > 0).collect();
    let balanced =
        with_samples.iter().filter_map(|class| class.recall).sum::<f64>() / with_samples.len() as f64;
    let largest = with_samples.iter().map(|class| class.samples).max().unwrap_or(0);
    let [known, new] = [false, true].map(|is_new| group(samples, &right, is_new));
    let harmonic_mean =
        known.as_ref().zip(new.as_ref()).map(|(known, new)| harmonic(known.accuracy, new.accuracy));
    Ok(TestResult {
        samples: samples.len(),
        right: right_count,
        accuracy: share(right_count, samples.len()),
        interval: wilson(right_count, samples.len()),
        top5: share(samples.iter().filter(in_top5).count(), samples.len()),
        balanced_accuracy: balanced,
        majority: share(largest, samples.len()),
        calibration_error: calibration::calibration_error(samples, &right),
        log_loss: calibration::log_loss(samples, &ancestry),
        known,
        new,
        harmonic_mean,
        hierarchy: hierarchy::hierarchy(answered, &ancestry, &judged),
        unknown: None,
        classes,
        confusion,
    })
}

fn group(samples: &[AnsweredSample], right: &[bool], is_new: bool) -> Option<GroupResult> {
    let mut classes: Vec<Node> = Vec::new();
    let mut right_count = 0;
    for (sample, right) in samples.iter().zip(right).filter(|(sample, _)| sample.is_new == is_new) {
        classes.push(sample.truth);
        right_count += usize::from(*right);
    }
    let count = classes.len();
    classes.sort_unstable();
    classes.dedup();
    (count > 0).then(|| GroupResult {
        classes: classes.len(),
        samples: count,
        right: right_count,
        accuracy: share(right_count, count),
        interval: wilson(right_count, count),
    })
}

impl Answered<'_> {
    fn ancestry(&self) -> Ancestry {
        let answers =
            |sample: &AnsweredSample| sample.ranked.iter().map(|&(answer, _)| answer).collect::<Vec<_>>();
        let classes = self.samples.iter().flat_map(|s| std::iter::once(s.truth).chain(answers(s)));
        Ancestry::new(self.graph, classes)
    }

    /// Everything that can be measured is there and makes sense.
    fn check(&self) -> Result<()> {
        if self.samples.is_empty() {
            return Err(Error::input("the test", "it has no labelled sample; give some"));
        }
        let classes = self.graph.len() as Node;
        for sample in &self.samples {
            let fail = |reason: String| Err(Error::input(format!("sample {}", sample.name), reason));
            if sample.ranked.is_empty() {
                return fail("it has no answer; every sample needs at least one".into());
            }
            let mentioned = sample.ranked.iter().map(|&(answer, _)| answer);
            if let Some(n) = mentioned.chain([sample.truth]).find(|&n| n >= classes) {
                return fail(format!(
                    "class number {n} is outside of the graph, which has {classes} classes"
                ));
            }
            let given = sample.ranked.iter().map(|&(_, probability)| probability);
            // Sums of rounded numbers may exceed 1 by a little.
            if let Some(p) = given.chain(sample.truth_probability).find(|p| !(0.0..=1.0 + 1e-6).contains(p)) {
                return fail(format!("probability {p} is not between 0 and 1"));
            }
            if sample.unknown_score.is_some_and(f64::is_nan) {
                return fail("its score for being unknown is not a number".into());
            }
        }
        Ok(())
    }
}
