//! What is chosen on known leaves that are hidden: shrinkage, and how much of the spread is taken off distances.

use std::collections::BTreeSet;
use std::error::Error;

use gpn_model::prior::{MetricName, PriorConfig};

use crate::answers::accuracies;
use crate::catalogue::{Catalogue, Fitted, Rows, without};
use crate::{SHARES, SHOTS};

/// One of so many known leaves is hidden.
const HIDDEN: usize = 3;
/// One of so many rows of each leaf is a query.
const HELD_OUT: usize = 5;

pub(crate) struct Choice {
    pub(crate) shrinkage: f64,
    /// The share of the spread.
    pub(crate) spread: f32,
}

/// The shrinkage and the share with the best accuracy over all queries of hidden and known leaves, on average over K. The prior is fitted anew
/// without the hidden leaves and the queries.
pub(crate) fn choose(
    catalogue: &Catalogue,
    train: &Rows,
    config: &PriorConfig,
    shrinkages: &[f64],
    seed: u64,
) -> Result<Choice, Box<dyn Error>> {
    let order = shuffle(&(0..train.len()).collect::<Vec<_>>(), seed);
    let names: Vec<&str> = train.keys().map(String::as_str).collect();
    let hidden: BTreeSet<&str> = order.iter().step_by(HIDDEN).map(|&at| names[at]).collect();
    let new: Vec<String> = hidden.iter().map(|&leaf| leaf.to_owned()).collect();
    let (mut own, mut queries) = (Rows::new(), Vec::new());
    for (leaf, rows) in train {
        let rows = shuffle(rows, seed);
        let (asked, rest) = rows.split_at((rows.len() / HELD_OUT).max(1));
        queries.extend(asked);
        own.insert(leaf.clone(), rest.to_vec());
    }
    let queries = catalogue.labelled(&queries);
    let mut best: Option<(f64, Choice)> = None;
    for &shrinkage in shrinkages {
        // All answers at once choose here; the tasks of the fit have nothing to add.
        let metric = if config.metric == MetricName::Auto { MetricName::UnitWhitened } else { config.metric };
        let config = PriorConfig { metric, shrinkage, ..config.clone() };
        let fitted = Fitted::new(catalogue, &without(&own, &hidden), &config)?;
        let mut totals = vec![0.0; SHARES.len()];
        for k in SHOTS {
            let mut own = own.clone();
            for leaf in &new {
                own.entry(leaf.clone()).and_modify(|rows| rows.truncate(k));
            }
            let of_shares = accuracies(catalogue, &fitted, &own, &queries, &new)?;
            totals.iter_mut().zip(of_shares).for_each(|(total, accuracy)| *total += accuracy.all);
        }
        for (&spread, total) in SHARES.iter().zip(totals) {
            if best.as_ref().is_none_or(|(so_far, _)| total > so_far + 1e-9) {
                best = Some((total, Choice { shrinkage, spread }));
            }
        }
    }
    Ok(best.ok_or("there is no shrinkage to choose from")?.1)
}

/// The values in another order that depends on the seed alone. Neighbouring rows are often photographs of one visit.
fn shuffle(values: &[usize], seed: u64) -> Vec<usize> {
    let key = |value: usize| {
        let mut x = (value as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        x ^= seed.wrapping_mul(0xd6e8_feb8_6659_fd93);
        for _ in 0..2 {
            x ^= x >> 32;
            x = x.wrapping_mul(0xd6e8_feb8_6659_fd93);
        }
        x ^ (x >> 32)
    };
    let mut values = values.to_vec();
    values.sort_by_key(|&value| (key(value), value));
    values
}
