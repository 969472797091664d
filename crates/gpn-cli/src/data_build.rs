//! `gpn data build`.

use std::time::Instant;

use anyhow::{Context as _, ensure};
use gpn_data::benchmark::{Benchmark, BuildConfig, Preset, Split, SplitConfig, build};
use gpn_data::source::{self, Source, SourceKind, SourceSpec, SyntheticSource};
use gpn_data::synthetic::SyntheticConfig;
use gpn_taxonomy::{Checked, TaxonomyKind, TaxonomySpec, Warning};

use crate::args::BuildArguments;
use crate::data_info::title;
use crate::terminal::{self, Progress, grouped};

pub(crate) fn run(arguments: &BuildArguments) -> anyhow::Result<()> {
    let started = Instant::now();
    let spec: SourceSpec = arguments.source.parse()?;
    let mut config = config(arguments, spec.kind);
    let SplitConfig { close, far, .. } = &config.split;
    ensure!(
        close.end() < far.start(),
        "Close ({} to {} hops) must end before Far ({} to {} hops) begins; change --close or --far",
        close.start(),
        close.end(),
        far.start(),
        far.end()
    );
    let source: Box<dyn Source> = match spec.kind {
        // Drawn at the size at which it is stored.
        SourceKind::Synthetic => Box::new(SyntheticSource::new(SyntheticConfig {
            size: config.size,
            seed: config.assign.seed,
            ..SyntheticConfig::default()
        })),
        _ => source::open(&spec)?,
    };
    let (checked, taxonomy_spec) = taxonomy(arguments, source.as_ref())?;
    if taxonomy_spec.starts_with(TaxonomyKind::WordNet.as_str()) {
        // ImageNet and its kin call the top of WordNet so.
        config.root_id = Some("root".into());
    }
    warn_of_taxonomy(&checked.warnings);
    let report = {
        let progress = Progress::new("storing samples");
        build(source.as_ref(), &checked.taxonomy, &taxonomy_spec, &config, &arguments.out, &|done, total| {
            progress.update(done, total);
        })?
    };
    match &report.broken[..] {
        [] => {}
        [broken] => terminal::warn(&format!("left out {broken}")),
        broken => terminal::warn(&format!(
            "{} images could not be read and were left out: {}",
            grouped(broken.len()),
            terminal::first_few(broken.iter())
        )),
    }
    for warning in &report.warnings {
        terminal::warn(warning);
    }
    if !is_general(&taxonomy_spec) && !report.without_samples.is_empty() {
        terminal::warn(&without_samples(&report.without_samples));
    }
    let benchmark = Benchmark::open(&arguments.out)?;
    for warning in empty_sides(&benchmark) {
        terminal::warn(&warning);
    }
    terminal::print_text(&crate::data_info::summary(&benchmark))?;
    terminal::say(&format!("built {} in {:.1} s", arguments.out.display(), started.elapsed().as_secs_f64()));
    Ok(())
}

/// One warning of all edges that are stated twice, and those of other kinds.
fn warn_of_taxonomy(warnings: &[Warning]) {
    let (again, others): (Vec<&Warning>, Vec<&Warning>) =
        warnings.iter().partition(|warning| matches!(warning, Warning::DuplicateEdge { .. }));
    match again[..] {
        [] => {}
        [only] => terminal::warn(&only.to_string()),
        [first, ..] => terminal::warn(&format!(
            "{} edges are stated again; each counts once. The first: {first}",
            grouped(again.len())
        )),
    }
    for warning in others {
        terminal::warn(&warning.to_string());
    }
}

/// What to say where nothing is left to test on.
fn empty_sides(benchmark: &Benchmark) -> Vec<String> {
    let split = &benchmark.manifest().split;
    let sides = [(Split::Close, &split.close, "--close"), (Split::Far, &split.far, "--far")];
    let told = if split.train_share < 1.0 { &sides[..] } else { &[] };
    told.iter()
        .filter(|(side, ..)| benchmark.rows_of(*side).is_empty())
        .map(|(side, hops, option)| {
            format!(
                "there are no {} classes: none is {} to {} hops from the nearest training class; change {option} or lower \
                 --train-share",
                title(*side),
                hops.start(),
                hops.end()
            )
        })
        .collect()
}

/// Whether a taxonomy covers far more than any data set, so that classes without samples are nothing to speak of.
fn is_general(taxonomy_spec: &str) -> bool {
    [TaxonomyKind::WordNet, TaxonomyKind::ImageNetXml]
        .iter()
        .any(|kind| taxonomy_spec.split(':').next() == Some(kind.as_str()))
}

fn without_samples(ids: &[String]) -> String {
    let (classes, them, are) =
        if ids.len() == 1 { ("class", "it", "is") } else { ("classes", "them", "are") };
    format!(
        "{} {classes} of the taxonomy without samples below {them} {are} left out: {}",
        grouped(ids.len()),
        terminal::first_few(ids.iter())
    )
}

/// The settings: those of the preset, of the source or the defaults, changed by what was given.
fn config(arguments: &BuildArguments, source: SourceKind) -> BuildConfig {
    let mut config = match (arguments.preset, source) {
        (Some(preset), _) => Preset::from(preset).config(),
        (None, SourceKind::Synthetic) => BuildConfig::synthetic(0),
        (None, _) => BuildConfig::default(),
    };
    if let Some(seed) = arguments.seed {
        config.split.seed = seed;
        config.assign.seed = seed;
    }
    if let Some(size) = arguments.size {
        config.size = size;
    }
    if let Some(per_leaf) = arguments.images_per_leaf {
        config.assign.per_leaf = per_leaf as usize;
    }
    if let Some(share) = arguments.train_share {
        config.split.train_share = share;
    }
    if let Some(share) = arguments.val_share {
        config.assign.val_share = share;
    }
    if let Some(hops) = arguments.min_distance {
        config.split.min_distance = hops;
    }
    if let Some(hops) = &arguments.close {
        config.split.close = hops.0.clone();
    }
    if let Some(hops) = &arguments.far {
        config.split.far = hops.0.clone();
    }
    if let Some(generator) = arguments.generator {
        config.split.generator = generator.into();
    }
    config.assignments.clone_from(&arguments.assignments);
    config.collapse_chains = arguments.collapse_chains;
    config.classes_only = arguments.classes_only;
    config.strict = arguments.strict;
    config.replace = arguments.force;
    config
}

/// The taxonomy that was named, or the one the source brings, and its name for the manifest.
fn taxonomy(arguments: &BuildArguments, source: &dyn Source) -> anyhow::Result<(Checked, String)> {
    if let Some(text) = &arguments.taxonomy {
        let spec: TaxonomySpec = text.parse()?;
        return Ok((gpn_taxonomy::read(&spec)?, text.clone()));
    }
    let taxonomy = source.taxonomy().with_context(|| {
        format!(
            "{} brings no class graph of its own: name one with --taxonomy KIND:PATH (edges, wordnet, imagenet-xml, \
             json or obo)",
            arguments.source
        )
    })?;
    Ok((taxonomy?, "built in".into()))
}
