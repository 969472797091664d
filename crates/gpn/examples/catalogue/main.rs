//! A catalogue with new classes: the graph prior on frozen embeddings, on the very rows that `bench/catalogue.py` measured
//! scikit-learn on.
//!
//! ```text
//! cargo run --release -p gpn --example catalogue -- EMBEDDINGS.npz|npy TAXONOMY.csv DIVISIONS.json [--sklearn FILE.json]
//!     [--texts FILE.npz] [--count N] [--metric NAME] [--shrinkage S,S,..]
//!     [--inner-samples] [--scale C] [--json OUT.json]
//! ```
//!
//! For each division the prior is fitted to the known leaves. Classes above them have no samples of their own: with
//! `--inner-samples` they have those of the known leaves below, which a hidden leaf then shines through. Then all queries are answered among all leaves, known ones with all their samples and new ones with K, and
//! tasks of five new leaves with K samples each. Shrinkage and how much of the spread is taken off distances are chosen
//! on known leaves that are hidden, never on queries.

mod answers;
mod catalogue;
mod choice;
mod tables;

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use answers::{accuracies, task_accuracies};
use catalogue::{Catalogue, Division, Fitted};
use gpn_model::prior::{MetricName, PriorConfig};
use tables::{CatalogueRow, Results};

pub(crate) const SHOTS: [usize; 5] = [1, 2, 5, 10, 20];
/// Shares of the spread that are tried; below zero they favour known classes. Of equals the first is chosen.
pub(crate) const SHARES: [f32; 6] = [0.0, 0.25, -0.25, 0.5, -0.5, 1.0];

struct Arguments {
    files: Vec<PathBuf>,
    sklearn: Option<PathBuf>,
    json: Option<PathBuf>,
    texts: Option<PathBuf>,
    count: usize,
    config: PriorConfig,
    is_inner_sampled: bool,
    /// Shrinkages to choose from.
    shrinkages: Vec<f64>,
}

fn arguments() -> Result<Arguments, Box<dyn Error>> {
    let mut parsed = Arguments {
        files: Vec::new(),
        sklearn: None,
        json: None,
        texts: None,
        count: usize::MAX,
        config: PriorConfig::default(),
        is_inner_sampled: false,
        shrinkages: vec![0.5],
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("`{word}` needs a value"));
        match word.as_str() {
            "--sklearn" => parsed.sklearn = Some(value()?.into()),
            "--json" => parsed.json = Some(value()?.into()),
            "--texts" => parsed.texts = Some(value()?.into()),
            "--count" => parsed.count = value()?.parse()?,
            "--metric" => {
                parsed.config.metric = serde_json::from_value::<MetricName>(value()?.into())?;
            }
            "--shrinkage" => {
                parsed.shrinkages = value()?.split(',').map(str::parse).collect::<Result<_, _>>()?;
            }
            "--inner-samples" => parsed.is_inner_sampled = true,
            "--scale" => parsed.config.scale = value()?.parse()?,
            other if other.starts_with("--") => return Err(format!("no option is called `{other}`").into()),
            file => parsed.files.push(file.into()),
        }
    }
    Ok(parsed)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = arguments()?;
    let [embeddings, taxonomy, divisions] = &arguments.files[..] else {
        return Err("give EMBEDDINGS, TAXONOMY.csv and DIVISIONS.json".into());
    };
    let mut catalogue = Catalogue::read(embeddings, taxonomy, arguments.texts.as_deref())?;
    catalogue.is_inner_sampled = arguments.is_inner_sampled;
    let mut divisions: Vec<Division> = serde_json::from_slice(&std::fs::read(divisions)?)?;
    divisions.truncate(arguments.count);
    let mut results = Results::default();
    for (number, division) in divisions.iter().enumerate() {
        let start = Instant::now();
        let train = catalogue.rows_by_leaf(&division.known, &division.train)?;
        let chosen =
            choice::choose(&catalogue, &train, &arguments.config, &arguments.shrinkages, number as u64)?;
        let chosen_in = start.elapsed().as_secs_f64();
        let config = PriorConfig { shrinkage: chosen.shrinkage, ..arguments.config.clone() };
        let fitted = Fitted::new(&catalogue, &train, &config)?;
        eprintln!(
            "division {number}: {:?}, scale {}, temperature {:.3}, spread {}; chosen in {chosen_in:.1} s, fitted in {:.1} s",
            fitted.model.metric().config(),
            fitted.model.prior().scale(),
            fitted.model.temperature(),
            chosen.spread,
            start.elapsed().as_secs_f64() - chosen_in,
        );
        let queries = catalogue.labelled(&division.query);
        for k in SHOTS {
            let mut own = train.clone();
            own.extend(division.support.iter().map(|(leaf, rows)| (leaf.clone(), rows[..k].to_vec())));
            let of_shares = accuracies(&catalogue, &fitted, &own, &queries, &division.new)?;
            for (&share, accuracy) in SHARES.iter().zip(of_shares) {
                let mut push = |method: String| {
                    results.catalogue.push(CatalogueRow { method, k, division: number, accuracy });
                };
                push(format!("prior, spread {share}"));
                if share.to_bits() == chosen.spread.to_bits() {
                    push("prior, spread chosen".into());
                }
            }
        }
        for new in task_accuracies(&catalogue, &fitted, &division.train, &division.tasks)? {
            match results.tasks.iter_mut().find(|row| row.method == new.method && row.k == new.k) {
                Some(row) => row.accuracies.extend(new.accuracies),
                None => results.tasks.push(new),
            }
        }
    }
    print!("{}", tables::markdown(&results, arguments.sklearn.as_deref(), divisions.len())?);
    if let Some(out) = arguments.json {
        std::fs::write(out, serde_json::to_vec(&results)?)?;
    }
    Ok(())
}
