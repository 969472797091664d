//! From a source and a taxonomy to a benchmark directory.

use std::path::{Path, PathBuf};

use gpn_taxonomy::Taxonomy;
use serde::{Deserialize, Serialize};

use super::assign::AssignConfig;
use super::directory::UnfinishedDirectory;
use super::ingredients::TaxonomyCut;
use super::manifest::{Manifest, StoreInfo};
use super::plan::Plan;
use super::split::SplitConfig;
use crate::error::DataError;
use crate::format::npy::RowWriter;
use crate::progress::{Progress, Watch};
use crate::source::Source;
use crate::synthetic::SyntheticConfig;

/// How a benchmark is made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent switch")]
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
    /// Leaves of the source that have another id in the taxonomy: (source, taxonomy).
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
    /// The settings for the built-in data set. Its graph is smaller than ImageNet's, so Far begins at four hops and fewer
    /// classes are for training.
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

/// Builds the benchmark directory `out` from the samples of `source` and the classes of `taxonomy`, whose description
/// for the manifest is `taxonomy_spec`.
///
/// The directory appears when everything is written; a build that fails, is stopped by `progress` or is killed leaves
/// nothing at `out`.
pub fn build(
    source: &dyn Source,
    taxonomy: &Taxonomy,
    taxonomy_spec: &str,
    config: &BuildConfig,
    out: &Path,
    progress: &dyn Progress,
) -> Result<BuildReport, DataError> {
    let watch = Watch::new(progress, source.samples().len());
    let directory = UnfinishedDirectory::create(out, config.replace)?;
    let store = StoreInfo::of(source, config);
    let mut array = match store.array() {
        Some((name, element, row)) => Some(RowWriter::create(&directory.path().join(name), element, &row)?),
        None => None,
    };
    let mut write_rows = |rows: &[u8]| match &mut array {
        Some(array) => array.write(rows),
        None => Ok(()),
    };
    let plan = Plan::make(source, taxonomy, taxonomy_spec, config, store, &mut write_rows, &watch)?;
    if let Some(array) = array {
        watch.check()?;
        array.finish()?;
    }
    let manifest = directory.finish(&plan, &watch)?;
    Ok(plan.report(manifest))
}
