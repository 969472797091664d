//! `gpn data build`.

use std::time::Instant;

use gpn::{BuildRequest, build};

use crate::args::BuildArguments;
use crate::terminal;
use crate::watching::watched;

pub(crate) fn run(arguments: &BuildArguments) -> anyhow::Result<()> {
    let started = Instant::now();
    let request = BuildRequest {
        source: arguments.source.clone(),
        taxonomy: arguments.taxonomy.clone(),
        preset: arguments.preset.map(Into::into),
        seed: arguments.seed,
        size: arguments.size,
        images_per_leaf: arguments.images_per_leaf.map(|count| count as usize),
        train_share: arguments.train_share,
        val_share: arguments.val_share,
        min_distance: arguments.min_distance,
        close: arguments.close.as_ref().map(|hops| hops.0.clone()),
        far: arguments.far.as_ref().map(|hops| hops.0.clone()),
        generator: arguments.generator.map(Into::into),
        assignments: arguments.assignments.clone(),
        collapse_chains: arguments.collapse_chains,
        classes_only: arguments.classes_only,
        strict: arguments.strict,
        replace: arguments.force,
    };
    let benchmark = watched(|watch| build(&request, &arguments.out, watch))??;
    terminal::print_text(&crate::data_info::summary(&benchmark))?;
    terminal::say(&format!("built {} in {:.1} s", arguments.out.display(), started.elapsed().as_secs_f64()));
    Ok(())
}
