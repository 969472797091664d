//! `gpn data info`.

use std::fmt::Write as _;

use gpn::data::benchmark::{Benchmark, Generator, Split, Statistics, StoreInfo};

use crate::args::InfoArguments;
use crate::printable;
use crate::table::Table;
use crate::terminal::{self, grouped};

pub(crate) fn run(arguments: &InfoArguments) -> anyhow::Result<()> {
    let benchmark = Benchmark::open_with(&arguments.folder, arguments.check())?;
    if arguments.verify {
        terminal::say("all files are as built");
    }
    if arguments.json {
        let report = serde_json::json!({
            "manifest": benchmark.manifest(),
            "fingerprint": benchmark.manifest().fingerprint(),
            "statistics": Statistics::of(&benchmark),
        });
        return terminal::print_json(&format!("{report:#}\n"));
    }
    terminal::print_text(&summary(&benchmark))
}

/// The statistics as a page of text.
pub(crate) fn summary(benchmark: &Benchmark) -> String {
    let manifest = benchmark.manifest();
    let statistics = Statistics::of(benchmark);
    let samples = match manifest.store {
        StoreInfo::Images { size } => format!("{} images of {size}x{size}", grouped(manifest.counts.samples)),
        StoreInfo::Embeddings { dim } => {
            format!("{} embeddings of length {dim}", grouped(manifest.counts.samples))
        }
        StoreInfo::ClassesOnly => "none stored (classes only)".into(),
    };
    let mut text = String::new();
    let mut line = |label: &str, value: String| {
        // invariant: writing to a string does not fail.
        writeln!(text, "{label:<10}{}", printable::one_line(&value)).unwrap();
    };
    line("source", manifest.source.clone());
    line("taxonomy", manifest.taxonomy.clone());
    line("samples", samples);
    line(
        "graph",
        format!(
            "{} classes, {} edges, {} with several parents, root {}",
            grouped(manifest.counts.classes),
            grouped(statistics.edges),
            grouped(statistics.several_parents),
            manifest.root
        ),
    );
    let chains = match statistics.chains {
        0 => "none: no two classes have the same leaves".into(),
        chains => format!(
            "{} classes in {} groups share all their leaves with another class of the group",
            grouped(statistics.classes_in_chains),
            grouped(chains)
        ),
    };
    line("chains", chains);
    let split = &manifest.split;
    line(
        "split",
        format!(
            "Close {} to {} hops from the nearest training class, Far {} to {}",
            split.close.start(),
            split.close.end(),
            split.far.start(),
            split.far.end(),
        ),
    );
    let generator = match split.generator {
        Generator::Gpn => "own generator",
        Generator::Reference => "CPython's generator",
    };
    line(
        "drawn",
        format!(
            "share {} for training, {} or more hops from those held out (seed {}, {generator})",
            split.train_share, split.min_distance, split.seed
        ),
    );
    if statistics.unused_classes > 0 {
        line("unused", format!("{} classes are neither Close nor Far", grouped(statistics.unused_classes)));
    }

    let mut table = Table::new([
        "",
        "classes",
        "leaves",
        "samples",
        "for validation",
        "fewest",
        "distance",
        "edges",
        "levels",
    ]);
    for side in &statistics.data_sets {
        let distance = match (side.distances.keys().next(), side.distances.keys().next_back()) {
            (Some(nearest), Some(farthest)) if nearest != farthest => format!("{nearest} to {farthest}"),
            (Some(only), _) => only.to_string(),
            _ => "-".into(),
        };
        table.row([
            title(side.split).into(),
            grouped(side.classes),
            grouped(side.leaf_classes),
            grouped(side.samples),
            grouped(side.val_samples),
            grouped(side.fewest_samples),
            distance,
            grouped(side.edges),
            side.levels.to_string(),
        ]);
    }
    format!("{text}\n{table}\nEvery row counts the root. Fewest: samples of the smallest class.\n")
}

pub(crate) fn title(split: Split) -> &'static str {
    match split {
        Split::Train => "Train",
        Split::Close => "Close",
        Split::Far => "Far",
        Split::Unused => "Unused",
    }
}
