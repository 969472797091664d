//! From a source and a taxonomy to a benchmark directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gpn_taxonomy::{Node, Taxonomy, TaxonomyError};
use serde::{Deserialize, Serialize};

use super::assign::{AssignConfig, Claimant, Part, Row, Shortage, assign_samples};
use super::directory::UnfinishedDirectory;
use super::given::given_assignments;
use super::ingredients::{Ingredients, TaxonomyCut};
use super::manifest::{Counts, FORMAT, Manifest};
use super::open::{ASSIGNMENTS, AssignmentRow, CLASSES, Class, SAMPLES, SampleRow, TAXONOMY};
use super::pack::{Packed, pack};
use super::split::{Split, SplitConfig, Splits, split_classes};
use crate::error::DataError;
use crate::source::Source;
use crate::synthetic::SyntheticConfig;

/// How a benchmark is made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct BuildConfig {
    /// How classes are divided.
    pub split: SplitConfig,
    /// How samples are assigned.
    pub assign: AssignConfig,
    /// Height and width at which images are packed.
    pub size: u32,
    /// Keep only part of the taxonomy by a named rule.
    pub cut: Option<TaxonomyCut>,
    /// Another id for the top class.
    pub root_id: Option<String>,
    /// A CSV file (class, sample and perhaps part) that says which samples each class gets, instead of drawing them.
    pub assignments: Option<PathBuf>,
    /// Merge classes with the same leaves.
    pub collapse_chains: bool,
    /// Leaves of the source that stand under another id in the taxonomy: (source, taxonomy).
    pub renamed_leaves: Vec<(String, String)>,
    /// Divide classes and count, but store no samples.
    pub classes_only: bool,
    /// Fail on the first image that cannot be read, instead of leaving it out.
    pub strict: bool,
    /// Replace a benchmark already at the target.
    pub replace: bool,
    /// The preset these settings come from, for the manifest.
    pub preset: Option<String>,
}

impl Default for BuildConfig {
    fn default() -> Self {
        Self {
            split: SplitConfig::default(),
            assign: AssignConfig::default(),
            size: 64,
            cut: None,
            root_id: None,
            assignments: None,
            collapse_chains: false,
            renamed_leaves: Vec::new(),
            classes_only: false,
            strict: false,
            replace: false,
            preset: None,
        }
    }
}

impl BuildConfig {
    /// The settings for the built-in data set. Its graph is small: classes that far apart as in ImageNet's do not exist,
    /// so Far begins at four hops, and fewer classes are for training.
    pub fn synthetic(seed: u64) -> Self {
        Self {
            split: SplitConfig {
                seed,
                train_share: 0.7,
                close: 1..=3,
                far: 4..=10,
                ..SplitConfig::default()
            },
            assign: AssignConfig { seed, ..AssignConfig::default() },
            size: SyntheticConfig::default().size,
            ..Self::default()
        }
    }
}

/// What came of a build.
#[derive(Debug)]
pub struct BuildReport {
    /// The manifest as written.
    pub manifest: Manifest,
    /// What a user should know about the taxonomy and the samples, one sentence each.
    pub warnings: Vec<String>,
    /// Ids of the taxonomy's classes that have no samples below them and are left out, sorted.
    pub without_samples: Vec<String>,
    /// What is wrong with each image that was left out, naming it.
    pub broken: Vec<String>,
}

/// Called with the number of samples stored so far and the number of all.
pub type OnProgress<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// Builds the benchmark directory `out` from the samples of `source` and the classes of `taxonomy`, whose description
/// for the manifest is `taxonomy_spec`.
///
/// The directory appears when everything is written; a build that fails or is killed leaves nothing at `out`.
pub fn build(
    source: &dyn Source,
    taxonomy: &Taxonomy,
    taxonomy_spec: &str,
    config: &BuildConfig,
    out: &Path,
    on_progress: OnProgress<'_>,
) -> Result<BuildReport, DataError> {
    let directory = UnfinishedDirectory::create(out, config.replace)?;
    if source.samples().is_empty() && !config.classes_only {
        let reason =
            "it lists classes but holds no samples; pass --classes-only to work on the classes alone";
        return Err(DataError::malformed(source.describe(), reason));
    }
    let ingredients =
        Ingredients::prepare(source.leaves(), taxonomy, config).map_err(|error| match error {
            DataError::Taxonomy(cause @ TaxonomyError::UnknownClasses(_)) => DataError::UnknownLeaves {
                samples: source.describe(),
                taxonomy: taxonomy_spec.to_owned(),
                cause,
            },
            other => other,
        })?;
    let order = ingredients.sorted();
    let splits = split_classes(&ingredients.taxonomy, ingredients.root, &order, &config.split);
    let rows = row_order(&order, ingredients.root, &splits);
    let below = ingredients.leaves_below();

    let packed = if config.classes_only {
        Packed::nothing()
    } else {
        pack(source, directory.path(), config.size, config.strict, on_progress)?
    };
    let claimants: Vec<Claimant> = rows
        .iter()
        .map(|&node| Claimant {
            split: splits.split[node as usize],
            is_root: node == ingredients.root,
            leaves: below[node as usize].clone(),
        })
        .collect();
    let graph = ingredients.taxonomy.induced(&rows);
    let (assigned, shortages) = match &config.assignments {
        _ if config.classes_only => (Vec::new(), Vec::new()),
        None => assign_samples(&claimants, &packed.rows_of_leaf(source), &config.assign),
        Some(file) => {
            let count = packed.origin.len();
            (given_assignments(file, &graph, &claimants, count, config.assign.val_share)?, Vec::new())
        }
    };
    let classes = class_rows(&graph, &rows, &splits, &claimants, &ingredients, &assigned, config);
    gpn_taxonomy::write_csv(&graph, &directory.path().join(TAXONOMY))?;
    directory.write_csv(CLASSES, &classes)?;
    if !config.classes_only {
        write_samples(&directory, source, &ingredients, &packed.origin)?;
        directory.write_csv(
            ASSIGNMENTS,
            assigned.iter().map(|&(class, sample, part)| AssignmentRow {
                class: &classes[class as usize].id,
                sample,
                part,
            }),
        )?;
    }

    let mut warnings: Vec<String> = ingredients.warnings.iter().map(ToString::to_string).collect();
    warnings.extend(shortages.first().map(|first| shortage_warning(first, shortages.len(), source, config)));
    let manifest = directory.finish(Manifest {
        format: FORMAT,
        built_by: format!("gpn {}", env!("CARGO_PKG_VERSION")),
        source: source.describe(),
        taxonomy: taxonomy_spec.to_owned(),
        preset: config.preset.clone(),
        root: ingredients.taxonomy.id(ingredients.root).to_owned(),
        chains_collapsed: config.collapse_chains,
        store: packed.info,
        counts: Counts {
            classes: graph.len(),
            edges: graph.edge_count(),
            samples: packed.origin.len(),
            broken: packed.broken.len(),
        },
        split: config.split.clone(),
        assign: config.assign.clone(),
        hashes: BTreeMap::new(),
    })?;
    Ok(BuildReport {
        manifest,
        warnings,
        without_samples: ingredients.without_samples,
        broken: packed.broken,
    })
}

/// Training classes first with the root at the top, then Close, Far and unused, each sorted by id.
fn row_order(sorted: &[Node], root: Node, splits: &Splits) -> Vec<Node> {
    let mut rows = sorted.to_vec();
    rows.sort_by_key(|&node| (splits.split[node as usize], node != root));
    rows
}

fn class_rows(
    graph: &Taxonomy,
    rows: &[Node],
    splits: &Splits,
    claimants: &[Claimant],
    ingredients: &Ingredients,
    assigned: &[Row],
    config: &BuildConfig,
) -> Vec<Class> {
    let mut samples = vec![0; rows.len()];
    for &(class, _, part) in assigned {
        if !(claimants[class as usize].is_root && part == Part::Test) {
            samples[class as usize] += 1;
        }
    }
    if config.classes_only {
        for (count, claimant) in samples.iter_mut().zip(claimants) {
            if claimant.split != Split::Unused {
                *count = config.assign.per_leaf * claimant.leaves.len();
            }
        }
    }
    let mut is_leaf = vec![false; rows.len()];
    for &node in &ingredients.leaf_nodes {
        is_leaf[node as usize] = true;
    }
    rows.iter()
        .zip(samples)
        .zip(graph.nodes())
        .map(|((&node, samples), row)| Class {
            id: graph.id(row).to_owned(),
            name: graph.name(row).to_owned(),
            split: splits.split[node as usize],
            leaf: is_leaf[node as usize],
            samples,
            distance: splits.distance[node as usize],
        })
        .collect()
}

fn write_samples(
    directory: &UnfinishedDirectory,
    source: &dyn Source,
    ingredients: &Ingredients,
    origin: &[u32],
) -> Result<(), DataError> {
    let rows = origin.iter().zip(0..).map(|(&sample, index)| {
        let sample = &source.samples()[sample as usize];
        let node = ingredients.leaf_nodes[sample.leaf as usize];
        SampleRow { index, leaf: ingredients.taxonomy.id(node).to_owned(), file: sample.file.clone() }
    });
    directory.write_csv(SAMPLES, rows)
}

fn shortage_warning(first: &Shortage, leaves: usize, source: &dyn Source, config: &BuildConfig) -> String {
    let others = match leaves {
        1 => String::new(),
        more => format!(" (and {} more such leaves)", more - 1),
    };
    format!(
        "leaf {} has {} samples for the {} classes that draw from it: each gets {} instead of {}{others}",
        source.leaves()[first.leaf as usize].id,
        first.samples,
        first.classes,
        first.given,
        config.assign.per_leaf,
    )
}
