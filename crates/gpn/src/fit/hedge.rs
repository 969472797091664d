//! How much surer or less sure than its probabilities an answer at a higher level is.

use gpn_model::prior::probabilities;
use rayon::prelude::*;

use super::choose::Measured;
use super::classes::Classes;
use crate::classifier::Levels;

/// Multipliers that are tried, the most cautious first.
const MULTIPLIERS: [f32; 13] = [0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 1.75, 2.0];
/// The confidences at which answers are to be right as often as they say.
const CONFIDENCES: [f64; 4] = [0.7, 0.8, 0.9, 0.95];
/// Samples that decide, at most.
const SAMPLES: usize = 2000;

/// The largest multiplier of scores with which answers that are as deep as sure are right as often as asked for, on samples held
/// out: more of it means deeper answers.
pub(super) fn multiplier(measured: &Measured, classes: &Classes, scale: f32) -> f32 {
    let answers: Vec<u32> = (0..classes.answers as u32).collect();
    let levels = Levels::new(&classes.graph, classes.root, &answers);
    let step = measured.right.len().div_ceil(SAMPLES).max(1);
    let rows: Vec<(&[f32], u32)> = measured
        .best
        .scores
        .chunks_exact(classes.answers)
        .zip(measured.right.iter().copied())
        .step_by(step)
        .collect();
    let is_kept = |multiplier: f32| {
        let right: Vec<[bool; CONFIDENCES.len()]> = rows
            .par_iter()
            .map(|(scores, right)| {
                let (likely, _) = probabilities(scores, scale * multiplier);
                CONFIDENCES.map(|confidence| {
                    let class = levels.deepest(&likely, confidence).class;
                    class.is_none_or(|class| levels.is_above(class, *right as usize))
                })
            })
            .collect();
        (0..CONFIDENCES.len()).all(|at| {
            let share = right.iter().filter(|right| right[at]).count() as f64 / right.len().max(1) as f64;
            share >= CONFIDENCES[at]
        })
    };
    MULTIPLIERS.into_iter().take_while(|&multiplier| is_kept(multiplier)).last().unwrap_or(MULTIPLIERS[0])
}
