//! What a fit reached, as a value that serialises.

use std::time::Duration;

use gpn_model::prior::{UnknownScore, probabilities};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::candidate::Recipe;
use super::choose::Measured;
use super::classes::Classes;
use super::novel::{NewClassAccuracy, Novel};
use super::rows::Rows;

/// Likeliest classes that are kept of each answer.
pub(super) const TOP: usize = 20;

/// A held-out sample and what was answered.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldOutAnswer {
    /// The row of the sample in the data.
    pub row: usize,
    /// Its class, by number.
    pub truth: u32,
    /// The likeliest classes with their probabilities.
    pub ranked: Vec<(u32, f64)>,
    /// The probability of its class.
    pub truth_probability: f64,
}

/// What a fit reached on samples held out, before all of them were used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FitReport {
    /// Classes with samples.
    pub classes: usize,
    /// Samples in all.
    pub samples: usize,
    /// Length of an embedding.
    pub dim: usize,
    /// Samples that measured, each by a fit that had not seen it.
    pub measured: usize,
    /// Share of these answered rightly, 0 to 1; none where classes have too few samples.
    pub accuracy: Option<f64>,
    /// The same of the nearest mean of embeddings as they are.
    pub nearest_mean: Option<f64>,
    /// The share of the class with the most samples.
    pub majority: Option<f64>,
    /// Expected calibration error of the probabilities.
    pub calibration_error: Option<f64>,
    /// The way to answer that was chosen.
    pub recipe: Recipe,
    /// How well new classes were told apart, by hiding known ones.
    pub new_classes: Vec<NewClassAccuracy>,
    /// What tells samples of no class.
    pub unknown_score: Option<UnknownScore>,
    /// How well it does so on classes left out: the area under the curve, 0.5 to 1.
    pub unknown_auroc: Option<f64>,
    /// Seconds it took.
    pub seconds: f64,
    /// The held-out samples and their answers.
    #[serde(skip)]
    pub answers: Vec<HeldOutAnswer>,
    /// Scores of samples of known classes, and of classes left out; more is stranger.
    #[serde(skip)]
    pub unknown_scores: [Vec<f64>; 2],
}

impl FitReport {
    pub(super) fn new(
        rows: &dyn Rows,
        classes: &Classes,
        recipe: &Recipe,
        measured: Option<&Measured>,
        novel: Option<&Novel>,
        scale: f32,
        elapsed: Duration,
    ) -> Self {
        let answers = measured.map_or_else(Vec::new, |measured| answers(measured, classes.answers, scale));
        let share = |count: usize| count as f64 / answers.len().max(1) as f64;
        Self {
            classes: classes.answers,
            samples: rows.labels().len(),
            dim: rows.dim(),
            measured: answers.len(),
            accuracy: measured.map(|measured| share(measured.best.right)),
            nearest_mean: measured.map(|measured| share(measured.nearest_mean)),
            majority: measured.map(|measured| share(measured.majority)),
            calibration_error: measured.map(|_| calibration_error(&answers)),
            recipe: *recipe,
            new_classes: novel.map_or_else(Vec::new, |novel| novel.accuracy.clone()),
            unknown_score: novel.map(|novel| novel.unknown),
            unknown_auroc: novel.and_then(|novel| novel.auroc),
            seconds: elapsed.as_secs_f64(),
            unknown_scores: novel.map_or_else(Default::default, |novel| novel.scores.clone()),
            answers,
        }
    }
}

impl FitReport {
    /// Held-out samples bear other row numbers: row `i` is `rows[i]`.
    pub(super) fn name_rows(&mut self, rows: &[usize]) {
        for answer in &mut self.answers {
            answer.row = rows[answer.row];
        }
    }
}

fn answers(measured: &Measured, classes: usize, scale: f32) -> Vec<HeldOutAnswer> {
    let of_row = |((scores, &truth), &row): ((&[f32], &u32), &u32)| {
        let (likely, _) = probabilities(scores, scale);
        let by_score = |&a: &u32, &b: &u32| scores[b as usize].total_cmp(&scores[a as usize]).then(a.cmp(&b));
        let mut order: Vec<u32> = (0..classes as u32).collect();
        if TOP < classes {
            order.select_nth_unstable_by(TOP, by_score);
            order.truncate(TOP);
        }
        order.sort_unstable_by(by_score);
        HeldOutAnswer {
            row: row as usize,
            truth,
            ranked: order.iter().map(|&class| (class, f64::from(likely[class as usize]))).collect(),
            truth_probability: f64::from(likely[truth as usize]),
        }
    };
    let scores = measured.best.scores.par_chunks_exact(classes);
    scores.zip(&measured.right).zip(&measured.rows).map(of_row).collect()
}

/// The mean difference between how sure answers are and how often they are right, over 15 bins of sureness.
pub(super) fn calibration_error(answers: &[HeldOutAnswer]) -> f64 {
    const BINS: usize = 15;
    let mut bins = [(0_usize, 0.0, 0.0); BINS];
    for answer in answers {
        let (best, probability) = answer.ranked[0];
        let bin = &mut bins[((probability * BINS as f64) as usize).min(BINS - 1)];
        bin.0 += 1;
        bin.1 += probability;
        bin.2 += f64::from(u8::from(best == answer.truth));
    }
    bins.iter().map(|(_, sure, right)| (sure - right).abs()).sum::<f64>() / answers.len().max(1) as f64
}
