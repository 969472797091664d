//! What a test found, in the form that serialises.

use serde::{Deserialize, Serialize};

use super::unknown::UnknownResult;

/// How a model answered labelled samples. Shares are from 0 to 1.
///
/// An answer at the labelled class or below it is right, so a sample may be labelled with a class of any level. In all
/// measures an answer below the labelled class counts as that class: the label cannot judge more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TestResult {
    /// Labelled samples.
    pub samples: usize,
    /// Those whose likeliest answer is right.
    pub right: usize,
    /// Share of right answers.
    pub accuracy: f64,
    /// Its 95% interval, by Wilson's formula.
    pub interval: [f64; 2],
    /// Share of samples with a right answer among the five likeliest.
    pub top5: f64,
    /// Mean over classes of their share of right answers.
    pub balanced_accuracy: f64,
    /// Share of samples of the most frequent class: what always answering that class reaches.
    pub majority: f64,
    /// Expected calibration error: how far the probability of the answer is from the share of right answers, over fifteen
    /// bins of that probability.
    pub calibration_error: f64,
    /// Mean of minus the natural logarithm of the truth's probability; none where a probability is not known.
    pub log_loss: Option<f64>,
    /// Samples of classes that the model was fitted to.
    pub known: Option<GroupResult>,
    /// Samples of classes that were taught later.
    pub new: Option<GroupResult>,
    /// Harmonic mean of the accuracies on known and new classes, where there are both.
    pub harmonic_mean: Option<f64>,
    /// How far from the truth answers are in the class graph.
    pub hierarchy: HierarchyResult,
    /// How well samples of no class are told from the others, where there were some.
    pub unknown: Option<UnknownResult>,
    /// Every class that a sample is labelled with or was answered, in the order of the graph.
    pub classes: Vec<ClassResult>,
    /// Mistakes by truth and answer, the most frequent first. Right answers stand in `classes`.
    pub confusion: Vec<Confusion>,
}

/// A part of the samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupResult {
    /// Classes that its samples are labelled with.
    pub classes: usize,
    /// Its samples.
    pub samples: usize,
    /// Those answered right.
    pub right: usize,
    /// Share of right answers.
    pub accuracy: f64,
    /// Its 95% interval, by Wilson's formula.
    pub interval: [f64; 2],
}

/// How far from the truth answers are in the class graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HierarchyResult {
    /// Of the answered classes with all their ancestors, the share that the truth has as well. The root is left out where
    /// there is only one.
    pub precision: f64,
    /// Of the true classes with all their ancestors, the share that the answer has as well.
    pub recall: f64,
    /// Harmonic mean of the two.
    pub f1: f64,
    /// Mean over mistakes of the height of the lowest class above both truth and answer; none without mistakes. The height of
    /// a class is the longest way down to a leaf.
    pub mistake_height: Option<f64>,
    /// Share of mistakes where truth and answer have a parent in common; none without mistakes.
    pub sibling_mistakes: Option<f64>,
    /// Largest height that a mistake can have.
    pub height: u32,
    /// Mean over samples and their `k` likeliest answers of the same height, right answers at 0. For `k` of 1, 5 and 20, as
    /// far as every sample has so many answers.
    pub distance_at: Vec<DistanceAt>,
    /// Accuracy when only the ancestors at a level are asked for, from the level below the root.
    pub levels: Vec<LevelResult>,
}

/// Mean hierarchical distance of the likeliest answers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DistanceAt {
    /// Number of answers taken of each sample.
    pub k: usize,
    /// Mean height.
    pub distance: f64,
}

/// Accuracy at one level of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelResult {
    /// Edges from the root, along the longest path.
    pub level: u32,
    /// Classes of this level that samples are labelled with or below.
    pub classes: usize,
    /// Samples labelled at this level or deeper; only they count here.
    pub samples: usize,
    /// Share of them whose answer lies at or below an ancestor of the truth at this level.
    pub accuracy: f64,
}

/// How one class did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassResult {
    /// Id of the class.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Whether it was taught after fitting, as its samples say.
    pub is_new: bool,
    /// Samples labelled with it.
    pub samples: usize,
    /// Those answered right.
    pub right: usize,
    /// How often it was the answer.
    pub answered: usize,
    /// Share of its answers that are right; none where it was never answered.
    pub precision: Option<f64>,
    /// Share of its samples that are answered right; none without samples.
    pub recall: Option<f64>,
    /// Harmonic mean of the two, 0 where one is missing.
    pub f1: f64,
    /// The most frequent wrong answer to its samples.
    pub confused_with: Option<ConfusedWith>,
}

/// A wrong answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfusedWith {
    /// Id of the class.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// How often it was answered.
    pub count: usize,
}

/// How often one class was taken for another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confusion {
    /// Id of the class the samples are labelled with.
    pub truth: String,
    /// Id of the class that was answered.
    pub answer: String,
    /// Samples.
    pub count: usize,
}
