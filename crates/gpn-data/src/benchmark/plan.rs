//! What a benchmark consists of, worked out in memory: the same for a directory and for a benchmark without one.

use std::collections::BTreeMap;
use std::io::{self, Write};

use gpn_taxonomy::{Node, Taxonomy, TaxonomyError};

use super::assign::{Claimant, Part, Row, Shortage, assign_samples};
use super::build::{BuildConfig, BuildReport};
use super::given::given_assignments;
use super::ingredients::Ingredients;
use super::manifest::{Counts, FORMAT, Manifest, StoreInfo};
use super::open::{ASSIGNMENTS, AssignmentRow, CLASSES, Class, SAMPLES, SampleRow, TAXONOMY};
use super::pack::{Packed, WriteRows, pack};
use super::split::{Split, Splits, split_classes};
use crate::error::DataError;
use crate::progress::Watch;
use crate::source::Source;

/// A benchmark before it has a place: its tables and its manifest, which has no hashes yet.
pub(super) struct Plan {
    /// All classes; node i is class i.
    pub(super) graph: Taxonomy,
    pub(super) root: Node,
    pub(super) classes: Vec<Class>,
    pub(super) samples: Vec<SampleRow>,
    pub(super) assigned: Vec<Row>,
    pub(super) manifest: Manifest,
    warnings: Vec<String>,
    without_samples: Vec<String>,
    broken: Vec<String>,
}

impl Plan {
    /// Divides the classes of `taxonomy`, hands the samples of `source` to `write_rows` in the form of `store`, and
    /// assigns them to classes.
    pub(super) fn make(
        source: &dyn Source,
        taxonomy: &Taxonomy,
        taxonomy_spec: &str,
        config: &BuildConfig,
        store: StoreInfo,
        write_rows: &mut WriteRows<'_>,
        watch: &Watch<'_>,
    ) -> Result<Self, DataError> {
        if source.samples().is_empty() && !config.classes_only {
            return Err(DataError::NoSamples { source_name: source.describe() });
        }
        watch.reach(0)?;
        let ingredients =
            Ingredients::prepare(source.leaves(), taxonomy, config).map_err(|error| match error {
                DataError::Taxonomy(cause @ (TaxonomyError::UnknownClasses(_) | TaxonomyError::Unfit(_))) => {
                    DataError::UnknownLeaves {
                        samples: source.describe(),
                        taxonomy: taxonomy_spec.to_owned(),
                        cause,
                    }
                }
                other => other,
            })?;
        let order = ingredients.sorted();
        let splits = split_classes(&ingredients.taxonomy, ingredients.root, &order, &config.split);
        let rows = row_order(&order, ingredients.root, &splits);
        let below = ingredients.leaves_below();
        watch.check()?;

        let packed = pack(source, &store, config.strict, write_rows, watch)?;
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
        watch.check()?;
        let mut warnings: Vec<String> = ingredients.warnings.iter().map(ToString::to_string).collect();
        warnings
            .extend(shortages.first().map(|first| shortage_warning(first, shortages.len(), source, config)));
        let manifest = Manifest {
            format: FORMAT,
            built_by: format!("gpn {}", env!("CARGO_PKG_VERSION")),
            source: source.describe(),
            taxonomy: taxonomy_spec.to_owned(),
            preset: config.preset.clone(),
            root: ingredients.taxonomy.id(ingredients.root).to_owned(),
            chains_collapsed: config.collapse_chains,
            store,
            counts: Counts {
                classes: graph.len(),
                edges: graph.edge_count(),
                samples: packed.origin.len(),
                broken: packed.broken.len(),
            },
            split: config.split.clone(),
            assign: config.assign.clone(),
            hashes: BTreeMap::new(),
        };
        Ok(Self {
            // invariant: `rows` are all classes, the root among them.
            root: rows.iter().position(|&node| node == ingredients.root).unwrap() as Node,
            classes: class_rows(&graph, &rows, &splits, &claimants, &ingredients, &assigned, config),
            samples: sample_rows(source, &ingredients, &packed),
            assigned,
            graph,
            manifest,
            warnings,
            without_samples: ingredients.without_samples,
            broken: packed.broken,
        })
    }

    /// The names of the tables.
    pub(super) fn tables(&self) -> &'static [&'static str] {
        match self.manifest.store {
            StoreInfo::ClassesOnly => &[TAXONOMY, CLASSES],
            _ => &[TAXONOMY, CLASSES, SAMPLES, ASSIGNMENTS],
        }
    }

    /// Writes the table called `name` as CSV with a header.
    pub(super) fn write_table(&self, name: &str, out: &mut dyn Write) -> io::Result<()> {
        match name {
            TAXONOMY => gpn_taxonomy::write_csv_to(&self.graph, out),
            // Every row has the column or none has: without descriptions the table is as it always was.
            CLASSES if self.classes.iter().any(|class| class.description.is_some()) => {
                let whole = |class: &Class| Class {
                    description: Some(class.description.clone().unwrap_or_default()),
                    ..class.clone()
                };
                write_rows(out, self.classes.iter().map(whole))
            }
            CLASSES => write_rows(out, &self.classes),
            SAMPLES => write_rows(out, &self.samples),
            _ => write_rows(
                out,
                self.assigned.iter().map(|&(class, sample, part)| AssignmentRow {
                    class: &self.classes[class as usize].id,
                    sample,
                    part,
                }),
            ),
        }
    }

    /// What the caller of a build is told.
    pub(super) fn report(self, manifest: Manifest) -> BuildReport {
        let Self { warnings, without_samples, broken, .. } = self;
        BuildReport { manifest, warnings, without_samples, broken }
    }
}

/// Writes rows as CSV with a header.
pub(super) fn write_rows<T: serde::Serialize>(
    out: &mut dyn Write,
    rows: impl IntoIterator<Item = T>,
) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    for row in rows {
        writer.serialize(row).map_err(io::Error::from)?;
    }
    writer.flush()
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
            description: graph.description(row).map(str::to_owned),
        })
        .collect()
}

fn sample_rows(source: &dyn Source, ingredients: &Ingredients, packed: &Packed) -> Vec<SampleRow> {
    let row = |(&sample, index): (&u32, u32)| {
        let sample = &source.samples()[sample as usize];
        let node = ingredients.leaf_nodes[sample.leaf as usize];
        SampleRow { index, leaf: ingredients.taxonomy.id(node).to_owned(), file: sample.file.clone() }
    };
    packed.origin.iter().zip(0..).map(row).collect()
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
