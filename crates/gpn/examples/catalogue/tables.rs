//! Results as Markdown, beside those of scikit-learn.

use std::error::Error;
use std::fmt::Write;
use std::path::Path;

use gpn_train::Estimate;
use serde::{Deserialize, Serialize};

use crate::SHOTS;
use crate::answers::Accuracy;

/// Accuracy among all leaves in one division.
#[derive(Serialize)]
pub(crate) struct CatalogueRow {
    pub(crate) method: String,
    pub(crate) k: usize,
    pub(crate) division: usize,
    #[serde(flatten)]
    pub(crate) accuracy: Accuracy,
}

/// Accuracies of all tasks.
#[derive(Serialize)]
pub(crate) struct TaskRow {
    pub(crate) method: &'static str,
    pub(crate) k: usize,
    pub(crate) accuracies: Vec<f64>,
}

#[derive(Default, Serialize)]
pub(crate) struct Results {
    pub(crate) tasks: Vec<TaskRow>,
    pub(crate) catalogue: Vec<CatalogueRow>,
}

/// What is read of scikit-learn's results.
#[derive(Deserialize)]
struct Sklearn {
    catalogue: Vec<SklearnRow>,
}

#[derive(Deserialize)]
struct SklearnRow {
    method: String,
    input: String,
    k: usize,
    division: usize,
    new: f64,
    known: f64,
    all: f64,
    harmonic: f64,
}

pub(crate) fn markdown(
    results: &Results,
    sklearn: Option<&Path>,
    divisions: usize,
) -> Result<String, Box<dyn Error>> {
    let mut rows: Vec<(String, usize, usize, Accuracy)> =
        results.catalogue.iter().map(|row| (row.method.clone(), row.k, row.division, row.accuracy)).collect();
    if let Some(file) = sklearn {
        let file: Sklearn = serde_json::from_slice(&std::fs::read(file)?)?;
        for row in file.catalogue.into_iter().filter(|row| row.division < divisions) {
            let SklearnRow { method, input, k, division, new, known, all, harmonic } = row;
            let accuracy = Accuracy { new, known, all, harmonic };
            rows.push((format!("{method}, {input}"), k, division, accuracy));
        }
    }
    let mut text = String::new();
    tasks(&mut text, results)?;
    catalogue(&mut text, &rows)?;
    Ok(text)
}

fn tasks(text: &mut String, results: &Results) -> std::fmt::Result {
    let of = |method: &str, k: usize| {
        results
            .tasks
            .iter()
            .find(|row| row.method == method && row.k == k)
            .map_or(&[][..], |row| &row.accuracies)
    };
    let mut methods: Vec<&str> = Vec::new();
    for row in &results.tasks {
        if !methods.contains(&row.method) {
            methods.push(row.method);
        }
    }
    writeln!(text, "Tasks of 5 new leaves ({} tasks), accuracy in %:\n", of("prior", 1).len())?;
    writeln!(text, "| | {} |", SHOTS.map(|k| format!("K={k}")).join(" | "))?;
    writeln!(text, "|---{}|", "|---".repeat(SHOTS.len()))?;
    for method in methods {
        writeln!(
            text,
            "| {method} | {} |",
            SHOTS.map(|k| Estimate::of(of(method, k)).to_string()).join(" | ")
        )?;
    }
    for other in ["nearest mean, unit", "nearest mean, raw", "nearest mean, metric of the prior"] {
        let cells = SHOTS.map(|k| {
            let difference = Estimate::of_difference(of("prior", k), of(other, k));
            format!("{:+.2}+-{:.2}", difference.mean, difference.half_width)
        });
        writeln!(text, "| prior over {other}, paired | {} |", cells.join(" | "))?;
    }
    writeln!(text)
}

fn catalogue(text: &mut String, rows: &[(String, usize, usize, Accuracy)]) -> std::fmt::Result {
    writeln!(
        text,
        "All leaves at once, accuracy in %; in brackets the spread chosen less this row, paired over the divisions that both have:\n"
    )?;
    writeln!(
        text,
        "| method | K | divisions | new | known | all | harmonic |\n|---|---|---|---|---|---|---|"
    )?;
    let mut keys: Vec<(usize, &str)> = Vec::new();
    for (method, k, ..) in rows {
        if !keys.contains(&(*k, method)) {
            keys.push((*k, method));
        }
    }
    keys.sort_by_key(|&(k, _)| k);
    let of = |method: &str, k: usize| -> Vec<(usize, Accuracy)> {
        let is_it = |row: &&(String, usize, usize, Accuracy)| row.0 == method && row.1 == k;
        rows.iter().filter(is_it).map(|row| (row.2, row.3)).collect()
    };
    for (k, method) in keys {
        let (own, chosen) = (of(method, k), of("prior, spread chosen", k));
        let cell = |column: fn(&Accuracy) -> f64| {
            let values: Vec<f64> = own.iter().map(|(_, accuracy)| column(accuracy)).collect();
            let difference: Vec<f64> = own
                .iter()
                .filter_map(|(division, accuracy)| {
                    let (_, other) = chosen.iter().find(|(other, _)| other == division)?;
                    Some(column(other) - column(accuracy))
                })
                .collect();
            let (mean, difference) = (Estimate::of(&values), Estimate::of(&difference));
            let paired = format!(" ({:+.1}+-{:.1})", difference.mean, difference.half_width);
            format!(
                "{:.1}+-{:.1}{}",
                mean.mean,
                mean.half_width,
                if method == "prior, spread chosen" { "" } else { &paired }
            )
        };
        let cells = [cell(|a| a.new), cell(|a| a.known), cell(|a| a.all), cell(|a| a.harmonic)];
        writeln!(text, "| {method} | {k} | {} | {} |", own.len(), cells.join(" | "))?;
    }
    Ok(())
}
