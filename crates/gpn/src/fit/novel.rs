//! Classes that come later: some classes are hidden, then taught with a few samples each or left out altogether. This says how much of a
//! prototype's uncertainty to take off its distances, and what tells samples of no class.

use gpn_data::rng::{Purpose, Stream};
use gpn_model::prior::{ClassRule, KnownClasses, Posterior, Rule, Scorer, UnknownScore, unknown_score};
use gpn_taxonomy::{Node, Taxonomy};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::candidate::{Recipe, Related, Space, rules};
use super::choose::highest;
use super::rows::Chosen;
use crate::error::{Error, Result};
use crate::measure::auroc;
use crate::watch::Watch;

/// One of so many classes is hidden.
const HIDDEN: usize = 3;
/// With fewer classes nothing is hidden.
const FEWEST: usize = 6;
/// Samples that hidden classes are taught with, in turn.
const SHOTS: [usize; 3] = [1, 2, 5];
/// Shares of the spread that are tried; of equals the first is chosen.
const SPREADS: [f32; 8] = [0.0, 0.25, -0.25, 0.5, -0.5, 0.75, 1.0, -1.0];

/// How well classes are told apart that were not there when the catalogue was fitted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewClassAccuracy {
    /// Samples of each new class.
    pub shot: usize,
    /// Accuracy on samples of new classes, 0 to 1, where all classes are answers.
    pub new: f64,
    /// The same on samples of known classes.
    pub known: f64,
    /// The same on all samples.
    pub all: f64,
}

/// What hiding classes has shown.
pub(super) struct Novel {
    /// The share of the spread that is taken off distances.
    pub(super) spread: f32,
    /// What tells samples of no class.
    pub(super) unknown: UnknownScore,
    /// Area under the curve of that, on classes left out; `None` where nothing could be hidden.
    pub(super) auroc: Option<f64>,
    /// Scores of samples of known classes, and of those left out.
    pub(super) scores: [Vec<f64>; 2],
    /// Accuracy by the number of samples of new classes.
    pub(super) accuracy: Vec<NewClassAccuracy>,
}

/// Hides classes and measures. `scale` is what scores are multiplied with before the softmax.
pub(super) fn hide(
    chosen: &Chosen,
    related: Related<'_>,
    recipe: &Recipe,
    temperature: f32,
    scale: f32,
    seed: u64,
    watch: &Watch<'_>,
) -> Result<Option<Novel>> {
    let (fold, graph) = (chosen.fold(0), related.graph);
    let asked: Vec<Node> = {
        let mut asked = fold.right.clone();
        asked.dedup();
        asked
    };
    if asked.len() < FEWEST || watch.is_stopped() {
        return if watch.is_stopped() { Err(Error::interrupted()) } else { Ok(None) };
    }
    let mut stream = Stream::new(seed, Purpose::HeldOut, u64::from(u32::MAX));
    let mut is_hidden = vec![false; chosen.classes.len()];
    for class in stream.choose(&asked, asked.len() / HIDDEN) {
        is_hidden[class as usize] = true;
    }
    let left: Vec<Vec<f32>> = (fold.train.iter().zip(&is_hidden))
        .map(|(rows, &hidden)| if hidden { Vec::new() } else { rows.clone() })
        .collect();
    let space = match Space::fit(recipe.metric, chosen.dim, &left, related, seed) {
        Err(Error::Model(gpn_model::ModelError::NoScatter)) => return Ok(None),
        space => space?,
    };
    let posteriors = space.posteriors(graph, recipe.scale)?;
    let borders = match recipe.ridge {
        Some(ridge) => space
            .borders(&posteriors, &left, temperature)?
            .map(|start| start.learn(ridge, &|| watch.is_stopped()))
            .transpose()?,
        None => None,
    };
    let queries = space.model.metric().apply(&fold.queries)?;
    let base = rules(&space.model, &posteriors, borders.as_ref(), temperature, 0.0);
    let classes = base.len();
    let scorer = Scorer::new(chosen.dim, &base);
    let (by_prototypes, by_borders) = (scorer.by_prototypes(&queries), scorer.by_borders(&queries));

    // Left out altogether: what tells that a sample belongs to none?
    let mut known_scores = by_prototypes.clone();
    scorer.divide(&mut known_scores, &by_borders);
    let mut found: Option<(f64, UnknownScore, [Vec<f64>; 2])> = None;
    for kind in UnknownScore::ALL {
        let of_row = |(row, answers): (&[f32], &[f32])| {
            let length: f64 = row.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
            unknown_score(kind, f64::from(temperature) * length, answers, scale)
        };
        let rows = queries.par_chunks_exact(chosen.dim).zip(known_scores.par_chunks_exact(classes));
        let strange: Vec<f64> = rows.map(of_row).collect();
        let mut scores = [Vec::new(), Vec::new()];
        for (strange, &right) in strange.into_iter().zip(&fold.right) {
            scores[usize::from(is_hidden[right as usize])].push(strange);
        }
        let area = auroc(&scores[0], &scores[1]).unwrap_or(0.5);
        if found.as_ref().is_none_or(|found| area > found.0 + 1e-9) {
            found = Some((area, kind, scores));
        }
    }
    // invariant: there is at least one kind of score.
    let (area, unknown, scores) = found.unwrap();

    // Taught with a few samples. The spread moves the scores of a class by the same for all samples.
    let hidden: Vec<usize> = (0..classes).filter(|&class| is_hidden[class]).collect();
    let known_spread: Vec<f32> =
        posteriors.iter().map(|posterior| posterior.as_ref().map_or(0.0, Posterior::spread)).collect();
    let mut totals = [0.0; SPREADS.len()];
    let mut accuracies = vec![Vec::new(); SPREADS.len()];
    let mut joined = known_scores;
    for shot in SHOTS {
        let taught = teach(&space, &fold.train, &is_hidden, graph, recipe.scale, shot)?;
        let of_posterior = |posterior| ClassRule {
            prototype: Rule::of_posterior(posterior, temperature, 0.0),
            border: None,
        };
        let rules: Vec<ClassRule> = taught.iter().map(of_posterior).collect();
        let by_taught = Scorer::new(chosen.dim, &rules).scores(&queries);
        for (at, spread) in SPREADS.into_iter().enumerate() {
            let mut moved: Vec<f32> = known_spread.iter().map(|own| temperature * spread * own).collect();
            for (&class, posterior) in hidden.iter().zip(&taught) {
                moved[class] = temperature * spread * posterior.spread();
            }
            let rows = by_prototypes.par_chunks_exact(classes).zip(by_taught.par_chunks_exact(hidden.len()));
            joined.par_chunks_exact_mut(classes).zip(rows).for_each(|(scores, (known, taught))| {
                scores.copy_from_slice(known);
                for (&class, &score) in hidden.iter().zip(taught) {
                    scores[class] = score;
                }
                scores.iter_mut().zip(&moved).for_each(|(score, moved)| *score += moved);
            });
            scorer.divide(&mut joined, &by_borders);
            let accuracy = count(shot, &joined, classes, &fold.right, &is_hidden);
            totals[at] += accuracy.all;
            accuracies[at].push(accuracy);
        }
    }
    let mut best: Option<(f64, usize)> = None;
    for (at, &total) in totals.iter().enumerate() {
        if best.is_none_or(|best| total > best.0 + 1e-9) {
            best = Some((total, at));
        }
    }
    // invariant: there is at least one share.
    let (_, at) = best.unwrap();
    let (spread, accuracy) = (SPREADS[at], accuracies.swap_remove(at));
    Ok(Some(Novel { spread, unknown, auroc: Some(area), scores, accuracy }))
}

/// Posteriors of the hidden classes with so many samples each, in the order of the classes.
fn teach(
    space: &Space,
    train: &[Vec<f32>],
    is_hidden: &[bool],
    graph: &Taxonomy,
    scale: f64,
    shot: usize,
) -> Result<Vec<Posterior>> {
    let dim = space.model.metric().dim();
    let known = KnownClasses::without(graph, space.model.statistics(), &space.few);
    let prior = space.model.prior().clone().with_scale(scale)?;
    let of_class = |class: usize| -> Result<Posterior> {
        let rows = &train[class][..train[class].len().min(shot * dim)];
        let before = space.model.prior_of_class(&known, class as Node, true)?;
        Ok(prior.posterior(&before, &space.model.metric().apply(rows)?)?)
    };
    (0..train.len()).into_par_iter().filter(|&class| is_hidden[class]).map(of_class).collect()
}

fn count(
    shot: usize,
    scores: &[f32],
    classes: usize,
    right: &[Node],
    is_hidden: &[bool],
) -> NewClassAccuracy {
    let mut counts = [[0_usize; 2]; 2];
    for (row, &right) in scores.chunks_exact(classes).zip(right) {
        let of_group = &mut counts[usize::from(is_hidden[right as usize])];
        of_group[0] += 1;
        of_group[1] += usize::from(highest(row) == right as usize);
    }
    let share = |[all, right]: [usize; 2]| right as f64 / all.max(1) as f64;
    let all = [counts[0][0] + counts[1][0], counts[0][1] + counts[1][1]];
    NewClassAccuracy { shot, new: share(counts[1]), known: share(counts[0]), all: share(all) }
}
