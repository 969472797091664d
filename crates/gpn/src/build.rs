//! Building benchmark directories from what people have.

use std::path::{Path, PathBuf};

use gpn_data::benchmark::{Benchmark, BuildConfig, BuildReport, Generator, Preset, Split, SplitConfig};
use gpn_data::source::{self, Source, SourceKind, SourceSpec, SyntheticSource};
use gpn_data::synthetic::SyntheticConfig;
use gpn_taxonomy::{Checked, TaxonomyKind, TaxonomySpec, Warning};
use std::ops::RangeInclusive;

use crate::error::{Error, Result};
use crate::run::first_few;
use crate::watch::{Event, Watch};

/// What a benchmark is built from and how. What is left out is that of the preset, of the source, or the default.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct BuildRequest {
    /// Samples, as `KIND:PATH` or as a path whose kind is guessed.
    pub source: String,
    /// The class graph, as `KIND:PATH` or as a path whose kind is guessed; not needed where the source brings its own.
    pub taxonomy: Option<String>,
    /// A published benchmark to rebuild with its own settings.
    pub preset: Option<Preset>,
    /// Seed of the choice of classes and samples.
    pub seed: Option<u64>,
    /// Height and width at which images are stored.
    pub size: Option<u32>,
    /// Samples of each leaf below a class.
    pub images_per_leaf: Option<usize>,
    /// Share of classes to train on.
    pub train_share: Option<f64>,
    /// Share of each training class's samples kept for validation.
    pub val_share: Option<f64>,
    /// Fewest hops between a drawn training class and a drawn held-out class.
    pub min_distance: Option<u32>,
    /// Hops to the nearest training class that make a class Close.
    pub close: Option<RangeInclusive<u32>>,
    /// Hops to the nearest training class that make a class Far.
    pub far: Option<RangeInclusive<u32>>,
    /// Who draws the classes.
    pub generator: Option<Generator>,
    /// A CSV file that says which samples each class gets.
    pub assignments: Option<PathBuf>,
    /// Merge classes that have the same leaves below them.
    pub collapse_chains: bool,
    /// Divide the classes and count, but store no samples.
    pub classes_only: bool,
    /// Fail on the first image that cannot be read, instead of leaving it out.
    pub strict: bool,
    /// Replace a benchmark already at the target.
    pub replace: bool,
}

/// Builds the benchmark directory `out`. `watch` gets a warning for everything that a user should know.
pub fn build(request: &BuildRequest, out: &Path, watch: &Watch<'_>) -> Result<Benchmark> {
    let spec: SourceSpec = request.source.parse()?;
    let mut config = request.config(spec.kind);
    let SplitConfig { close, far, .. } = &config.split;
    if close.end() >= far.start() {
        let hops = |range: &RangeInclusive<u32>| format!("{} to {} hops", range.start(), range.end());
        return Err(Error::HopsOverlap { close: hops(close), far: hops(far) });
    }
    let source: Box<dyn Source> = match spec.kind {
        // Drawn at the size at which it is stored.
        SourceKind::Synthetic => Box::new(SyntheticSource::new(SyntheticConfig {
            size: config.size,
            seed: config.assign.seed,
            ..SyntheticConfig::default()
        })),
        _ => source::open(&spec)?,
    };
    let (checked, taxonomy_spec) = request.taxonomy(source.as_ref())?;
    if taxonomy_spec.starts_with(TaxonomyKind::WordNet.as_str()) {
        // ImageNet and data sets like it give the top class of WordNet this id.
        config.root_id = Some("root".into());
    }
    for note in source.notes() {
        watch.warn(&note.to_string());
    }
    warn_of_taxonomy(&checked.warnings, watch);
    let report = build_from(source.as_ref(), &checked, &taxonomy_spec, &config, out, watch)?;
    warn_of_build(&report, &taxonomy_spec, watch);
    let benchmark = Benchmark::open(out)?;
    warn_of_empty_sides(&benchmark, watch);
    Ok(benchmark)
}

/// Draws the built-in data into a benchmark directory, in place of one that is there.
pub fn build_synthetic(out: &Path, seed: u64, watch: &Watch<'_>) -> Result<Benchmark> {
    let request = BuildRequest {
        source: "synthetic".into(),
        seed: Some(seed),
        replace: true,
        ..BuildRequest::default()
    };
    build(&request, out, watch)
}

fn build_from(
    source: &dyn Source,
    checked: &Checked,
    taxonomy_spec: &str,
    config: &BuildConfig,
    out: &Path,
    watch: &Watch<'_>,
) -> Result<BuildReport> {
    let tell = |done, total| watch.tell(&Event::Stored { done, total });
    let report = gpn_data::benchmark::build(source, &checked.taxonomy, taxonomy_spec, config, out, &tell)?;
    Ok(report)
}

impl BuildRequest {
    /// The settings: those of the preset, of the source or the defaults, changed by what was given.
    fn config(&self, source: SourceKind) -> BuildConfig {
        let mut config = match (self.preset, source) {
            (Some(preset), _) => preset.config(),
            (None, SourceKind::Synthetic) => BuildConfig::synthetic(0),
            (None, _) => BuildConfig::default(),
        };
        if let Some(seed) = self.seed {
            config.split.seed = seed;
            config.assign.seed = seed;
        }
        let BuildConfig { split, assign, size, .. } = &mut config;
        *size = self.size.unwrap_or(*size);
        assign.per_leaf = self.images_per_leaf.unwrap_or(assign.per_leaf);
        assign.val_share = self.val_share.unwrap_or(assign.val_share);
        split.train_share = self.train_share.unwrap_or(split.train_share);
        split.min_distance = self.min_distance.unwrap_or(split.min_distance);
        split.generator = self.generator.unwrap_or(split.generator);
        if let Some(hops) = &self.close {
            split.close = hops.clone();
        }
        if let Some(hops) = &self.far {
            split.far = hops.clone();
        }
        config.assignments.clone_from(&self.assignments);
        config.collapse_chains = self.collapse_chains;
        config.classes_only = self.classes_only;
        config.strict = self.strict;
        config.replace = self.replace;
        config
    }

    /// The taxonomy that was named, or the one the source brings, and its name for the manifest.
    fn taxonomy(&self, source: &dyn Source) -> Result<(Checked, String)> {
        if let Some(text) = &self.taxonomy {
            let spec: TaxonomySpec = text.parse()?;
            return Ok((gpn_taxonomy::read(&spec)?, spec.to_string()));
        }
        match source.taxonomy() {
            Some(taxonomy) => Ok((taxonomy?, "built in".into())),
            None => Err(Error::TaxonomyMissing { source_spec: self.source.clone() }),
        }
    }
}

/// One warning of all edges that are stated twice, and those of other kinds.
fn warn_of_taxonomy(warnings: &[Warning], watch: &Watch<'_>) {
    let (again, others): (Vec<&Warning>, Vec<&Warning>) =
        warnings.iter().partition(|warning| matches!(warning, Warning::DuplicateEdge { .. }));
    match again[..] {
        [] => {}
        [only] => watch.warn(&only.to_string()),
        [first, ..] => {
            watch.warn(&format!(
                "{} edges are stated again; each counts once. The first: {first}",
                again.len()
            ));
        }
    }
    for warning in others {
        watch.warn(&warning.to_string());
    }
}

/// What came of a build, where a user should know it.
fn warn_of_build(report: &BuildReport, taxonomy_spec: &str, watch: &Watch<'_>) {
    match &report.broken[..] {
        [] => {}
        [broken] => watch.warn(&format!("left out {broken}")),
        broken => watch.warn(&format!(
            "{} images could not be read and were left out: {}",
            broken.len(),
            first_few(broken)
        )),
    }
    for warning in &report.warnings {
        watch.warn(warning);
    }
    let ids = &report.without_samples;
    if !is_general(taxonomy_spec) && !ids.is_empty() {
        let (classes, them, are) =
            if ids.len() == 1 { ("class", "it", "is") } else { ("classes", "them", "are") };
        watch.warn(&format!(
            "{} {classes} of the taxonomy without samples below {them} {are} left out: {}",
            ids.len(),
            first_few(ids)
        ));
    }
}

/// Whether a taxonomy covers far more than any data set, so that classes without samples are nothing to speak of.
fn is_general(taxonomy_spec: &str) -> bool {
    [TaxonomyKind::WordNet, TaxonomyKind::ImageNetXml]
        .iter()
        .any(|kind| taxonomy_spec.split(':').next() == Some(kind.as_str()))
}

/// Says where nothing is left to test on.
fn warn_of_empty_sides(benchmark: &Benchmark, watch: &Watch<'_>) {
    let split = &benchmark.manifest().split;
    if split.train_share >= 1.0 {
        return;
    }
    for (side, title, hops) in [(Split::Close, "Close", &split.close), (Split::Far, "Far", &split.far)] {
        if benchmark.rows_of(side).is_empty() {
            watch.warn(&format!(
                "there are no {title} classes: none is {} to {} hops from the nearest training class; change the hops that make a class {title}, \
                 or lower the share of training classes",
                hops.start(),
                hops.end()
            ));
        }
    }
}
