//! What a model reaches on photos that its network was not trained on.

use std::collections::HashMap;

use gpn_taxonomy::Node;

use super::classes::Classes;
use super::report::{HeldOutAnswer, TOP, calibration_error};
use super::rows::InMemory;
use super::{FitReport, FitRequest, fit_rows};
use crate::classifier::PredictRequest;
use crate::error::Result;
use crate::sample::Sample;
use crate::watch::Watch;

/// A photo's embedding with its class and its row in the data.
pub(super) struct Row<'a> {
    pub(super) values: &'a [f32],
    pub(super) label: Node,
    pub(super) row: usize,
}

/// Puts what is measured on `unseen` photos into the report of a fit to all photos: by a fit to those that the network was trained on. What
/// was measured on photos that the network has seen says nothing and is taken out.
pub(super) fn measure_unseen(
    report: &mut FitReport,
    seen: &[Row<'_>],
    unseen: &[Row<'_>],
    classes: &Classes,
    request: &FitRequest,
    watch: &Watch<'_>,
) -> Result<()> {
    report.answers = answers(seen, unseen, classes, request, watch)?;
    report.measured = report.answers.len();
    let share = |count: usize| (!unseen.is_empty()).then(|| count as f64 / unseen.len() as f64);
    report.accuracy =
        share(report.answers.iter().filter(|answer| answer.ranked[0].0 == answer.truth).count());
    let (means, counts) = means(seen, classes.answers, report.dim);
    report.nearest_mean = share(unseen.iter().filter(|row| nearest(row.values, &means) == row.label).count());
    let largest = (0..classes.answers as Node).rev().max_by_key(|&class| counts[class as usize]);
    report.majority = share(unseen.iter().filter(|row| Some(row.label) == largest).count());
    report.calibration_error = (!unseen.is_empty()).then(|| calibration_error(&report.answers));
    report.new_classes.clear();
    report.unknown_auroc = None;
    report.unknown_scores = Default::default();
    Ok(())
}

fn answers(
    seen: &[Row<'_>],
    unseen: &[Row<'_>],
    classes: &Classes,
    request: &FitRequest,
    watch: &Watch<'_>,
) -> Result<Vec<HeldOutAnswer>> {
    if unseen.is_empty() {
        return Ok(Vec::new());
    }
    let rows = InMemory {
        dim: seen[0].values.len(),
        values: seen.iter().flat_map(|row| row.values).copied().collect(),
        labels: seen.iter().map(|row| row.label).collect(),
    };
    let fitted = fit_rows(&rows, classes, request, None, watch)?;
    let number: HashMap<&str, Node> =
        (0..classes.answers as Node).map(|class| (classes.graph.id(class), class)).collect();
    let samples: Vec<Sample> =
        unseen.iter().map(|row| Sample::embedding("photo", row.values.to_vec())).collect();
    let ask = PredictRequest { top: TOP, ..PredictRequest::default() };
    let predicted = fitted.classifier.predict(&samples, &ask, watch)?;
    unseen
        .iter()
        .zip(predicted)
        .map(|(row, answer)| {
            let ranked: Vec<(Node, f64)> =
                answer?.classes.iter().map(|class| (number[class.id.as_str()], class.probability)).collect();
            let own = ranked.iter().find(|(class, _)| *class == row.label);
            let truth_probability = own.map_or(0.0, |(_, probability)| *probability);
            Ok(HeldOutAnswer { row: row.row, truth: row.label, ranked, truth_probability })
        })
        .collect()
}

/// The mean and the number of the photos of each class.
fn means(rows: &[Row<'_>], classes: usize, dim: usize) -> (Vec<Option<Vec<f32>>>, Vec<usize>) {
    let (mut sums, mut counts) = (vec![vec![0.0_f32; dim]; classes], vec![0; classes]);
    for row in rows {
        counts[row.label as usize] += 1;
        sums[row.label as usize].iter_mut().zip(row.values).for_each(|(sum, value)| *sum += value);
    }
    let mean = |(sum, &count): (Vec<f32>, &usize)| {
        (count > 0).then(|| sum.into_iter().map(|sum| sum / count as f32).collect())
    };
    (sums.into_iter().zip(&counts).map(mean).collect(), counts)
}

fn nearest(values: &[f32], means: &[Option<Vec<f32>>]) -> Node {
    let distance = |mean: &[f32]| mean.iter().zip(values).map(|(a, b)| (a - b) * (a - b)).sum::<f32>();
    let distances = means.iter().zip(0..).filter_map(|(mean, class)| Some((distance(mean.as_ref()?), class)));
    distances.min_by(|(a, _), (b, _)| a.total_cmp(b)).map_or(0, |(_, class)| class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_mean_is_that_of_the_class() {
        let values = [[0.0, 0.0], [0.0, 2.0], [9.0, 9.0]];
        let rows: Vec<Row<'_>> = [0, 0, 2]
            .into_iter()
            .enumerate()
            .map(|(row, label)| Row { values: &values[row], label, row })
            .collect();
        let (means, counts) = means(&rows, 3, 2);
        assert_eq!((means[0].as_deref(), &counts[..]), (Some(&[0.0, 1.0][..]), &[2, 0, 1][..]));
        assert_eq!((nearest(&[1.0, 1.0], &means), nearest(&[8.0, 8.0], &means)), (0, 2));
    }
}
