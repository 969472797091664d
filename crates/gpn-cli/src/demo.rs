//! `gpn demo`: so far, the built-in data set.

use std::fmt::Write as _;
use std::time::Instant;

use anyhow::Context as _;
use gpn_data::benchmark::{Benchmark, BuildConfig, Part, Split, build};
use gpn_data::source::{Source as _, SyntheticSource};
use gpn_data::synthetic::SyntheticConfig;
use gpn_data::task::{Sampling, TaskConfig, TaskSampler};

use crate::args::DemoArguments;
use crate::terminal::{self, Progress};

pub(crate) fn run(arguments: &DemoArguments) -> anyhow::Result<()> {
    let started = Instant::now();
    let out = arguments.out.join("data");
    std::fs::create_dir_all(&arguments.out)
        .with_context(|| format!("{}: cannot create the directory", arguments.out.display()))?;
    let seed = arguments.seed;
    let source = SyntheticSource::new(SyntheticConfig { seed, ..SyntheticConfig::default() });
    // invariant: the built-in data set brings its class graph.
    let taxonomy = source.taxonomy().unwrap()?.taxonomy;
    let config = BuildConfig { replace: true, ..BuildConfig::synthetic(seed) };
    {
        let progress = Progress::new("drawing samples");
        build(&source, &taxonomy, "built in", &config, &out, &|done, total| progress.update(done, total))?;
    }
    let benchmark = Benchmark::open(&out)?;
    let mut text = crate::data_info::summary(&benchmark);
    text.push_str("\nFew-shot tasks on test classes near the training classes, one sample per class:\n");
    for sampling in [Sampling::Random, Sampling::Snowball] {
        let config = TaskConfig { sampling, queries: 15, ..TaskConfig::default() };
        let sampler = TaskSampler::new(&benchmark.task_pool(Split::Close, Part::Test), config, seed)?;
        let data_set = benchmark.data_set(Split::Close);
        for index in 0..3 {
            let names: Vec<&str> = sampler
                .task(index)?
                .classes
                .iter()
                .map(|&class| benchmark.classes()[data_set.rows[class as usize]].name.as_str())
                .collect();
            let kind = if sampling == Sampling::Random { "random" } else { "snowball" };
            writeln!(text, "  {kind:<9} {}", names.join(" | "))?;
        }
    }
    terminal::print_result(&text)?;
    eprintln!(
        "built {} in {:.1} s; training is not part of the demo yet",
        out.display(),
        started.elapsed().as_secs_f64()
    );
    Ok(())
}
