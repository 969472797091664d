//! Queries answered by the nearest posterior mean, and by the nearest mean.

use std::error::Error;

use gpn_model::prior::Posterior;
use rayon::prelude::*;
use serde::Serialize;

use crate::catalogue::{Catalogue, Fitted, Rows, Task};
use crate::tables::TaskRow;
use crate::{SHARES, SHOTS};

/// Accuracies in percent.
#[derive(Clone, Copy, Serialize)]
pub(crate) struct Accuracy {
    pub(crate) new: f64,
    pub(crate) known: f64,
    pub(crate) all: f64,
    pub(crate) harmonic: f64,
}

/// Accuracy among all leaves of `own`, which have these samples, for each share of the spread.
pub(crate) fn accuracies(
    catalogue: &Catalogue,
    fitted: &Fitted,
    own: &Rows,
    queries: &[(usize, &str)],
    new: &[String],
) -> Result<Vec<Accuracy>, Box<dyn Error>> {
    let leaves: Vec<&str> = own.keys().map(String::as_str).collect();
    let known = fitted.known();
    let mut posteriors = Vec::new();
    for (leaf, rows) in own {
        let prior = fitted.prior_of(catalogue, &known, leaf)?;
        posteriors.push(fitted.model.posterior(&prior, &catalogue.gather(rows))?);
    }
    let rows: Vec<usize> = queries.iter().map(|&(row, _)| row).collect();
    let embedded = fitted.model.metric().apply(&catalogue.gather(&rows))?;
    // The answer of each query for each share.
    let answers: Vec<Vec<&str>> = embedded
        .par_chunks_exact(catalogue.dim)
        .map(|query| {
            let distances: Vec<f32> = posteriors.iter().map(|p| squared(query, &p.prototype)).collect();
            let of_share = |&share: &f32| {
                leaves[nearest(posteriors.iter().zip(&distances).map(|(p, d)| d - share * p.spread()))]
            };
            SHARES.iter().map(of_share).collect()
        })
        .collect();
    let of_share = |share: usize| {
        let mut counts = [[0_usize; 2]; 2];
        for (answers, &(_, label)) in answers.iter().zip(queries) {
            let is_new = new.iter().any(|leaf| leaf == label);
            counts[usize::from(is_new)][usize::from(answers[share] == label)] += 1;
        }
        let percent = |[wrong, right]: [usize; 2]| 100.0 * right as f64 / (wrong + right).max(1) as f64;
        let (known, new) = (percent(counts[0]), percent(counts[1]));
        let all = percent([counts[0][0] + counts[1][0], counts[0][1] + counts[1][1]]);
        Accuracy { new, known, all, harmonic: 2.0 * new * known / (new + known).max(1e-9) }
    };
    Ok((0..SHARES.len()).map(of_share).collect())
}

/// Accuracy of each task, by method and K.
pub(crate) fn task_accuracies(
    catalogue: &Catalogue,
    fitted: &Fitted,
    train: &[usize],
    tasks: &[Task],
) -> Result<Vec<TaskRow>, Box<dyn Error>> {
    let centre = mean(catalogue.dim, &catalogue.gather(train));
    let unit = |rows: &[usize]| -> Vec<f32> {
        let mut rows = catalogue.gather(rows);
        for row in rows.chunks_exact_mut(catalogue.dim) {
            row.iter_mut().zip(&centre).for_each(|(x, centre)| *x -= centre);
            let length = row.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt() as f32;
            for x in row {
                *x /= length;
            }
        }
        rows
    };
    let raw = |rows: &[usize]| catalogue.gather(rows);
    let metric = |rows: &[usize]| fitted.model.metric().apply(&catalogue.gather(rows));
    let known = fitted.known();
    let mut results = Vec::new();
    for k in SHOTS {
        let of_task = |task: &Task| -> Result<[f64; 4], String> {
            let words = |error: Box<dyn Error>| error.to_string();
            let mut posteriors: Vec<Posterior> = Vec::new();
            for (leaf, support) in task.classes.iter().zip(&task.support) {
                let prior = fitted.prior_of(catalogue, &known, leaf).map_err(words)?;
                let own = catalogue.gather(&support[..k]);
                posteriors.push(fitted.model.posterior(&prior, &own).map_err(|error| error.to_string())?);
            }
            let posteriors: Vec<Vec<f32>> = posteriors.into_iter().map(|p| p.prototype).collect();
            let transformed = |rows: &[usize]| metric(rows).map_err(|error| error.to_string());
            let queries: Vec<Vec<f32>> =
                task.query.iter().map(|rows| transformed(rows)).collect::<Result<_, _>>()?;
            let means: Vec<Vec<f32>> = task
                .support
                .iter()
                .map(|rows| transformed(&rows[..k]).map(|rows| mean(catalogue.dim, &rows)))
                .collect::<Result<_, _>>()?;
            let by_mean = |space: &dyn Fn(&[usize]) -> Vec<f32>| {
                let means: Vec<_> =
                    task.support.iter().map(|rows| mean(catalogue.dim, &space(&rows[..k]))).collect();
                let queries: Vec<_> = task.query.iter().map(|rows| space(rows)).collect();
                share_right(catalogue.dim, &means, &queries)
            };
            Ok([
                share_right(catalogue.dim, &posteriors, &queries),
                share_right(catalogue.dim, &means, &queries),
                by_mean(&unit),
                by_mean(&raw),
            ])
        };
        let of_tasks: Vec<[f64; 4]> = tasks.par_iter().map(of_task).collect::<Result<_, _>>()?;
        let names = ["prior", "nearest mean, metric of the prior", "nearest mean, unit", "nearest mean, raw"];
        for (at, name) in names.into_iter().enumerate() {
            let accuracies = of_tasks.iter().map(|task| task[at]).collect();
            results.push(TaskRow { method: name, k, accuracies });
        }
    }
    Ok(results)
}

/// Percentage of queries whose nearest prototype is that of their class.
fn share_right(dim: usize, prototypes: &[Vec<f32>], queries: &[Vec<f32>]) -> f64 {
    let (mut right, mut count) = (0_usize, 0_usize);
    for (class, queries) in queries.iter().enumerate() {
        for query in queries.chunks_exact(dim) {
            let answer = nearest(prototypes.iter().map(|prototype| squared(query, prototype)));
            right += usize::from(answer == class);
            count += 1;
        }
    }
    100.0 * right as f64 / count.max(1) as f64
}

fn nearest(distances: impl Iterator<Item = f32>) -> usize {
    let closer = |best: (usize, f32), next: (usize, f32)| if next.1 < best.1 { next } else { best };
    distances.enumerate().fold((0, f32::INFINITY), closer).0
}

fn mean(dim: usize, rows: &[f32]) -> Vec<f32> {
    let mut sums = vec![0.0; dim];
    for row in rows.chunks_exact(dim) {
        sums.iter_mut().zip(row).for_each(|(sum, &x)| *sum += f64::from(x));
    }
    sums.iter().map(|sum| (sum * dim as f64 / rows.len() as f64) as f32).collect()
}

fn squared(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0_f32; 16];
    let (a, b) = (a.chunks(16), b.chunks(16));
    for (a, b) in a.zip(b) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += (a - b) * (a - b);
        }
    }
    sums.iter().sum()
}
