//! `gpn bench`.

use std::time::Duration;

use anyhow::Context as _;
use gpn::model::bench::{Workload, measured_peak_gflops, simd_name, time};
use serde::Serialize;

use crate::args::BenchArguments;
use crate::table::Table;
use crate::terminal;

#[derive(Serialize)]
struct Report {
    threads: usize,
    /// Instruction set of the kernels.
    simd: &'static str,
    /// What the processor does at best, on these threads.
    peak_gflops: f64,
    workloads: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    name: &'static str,
    title: &'static str,
    /// Median time of a step.
    step_ms: f64,
    steps_per_second: f64,
    images_per_second: f64,
    /// Direct convolution's operations per second; Winograd does fewer, so this may exceed the peak.
    gflops: f64,
    share_of_peak: f64,
}

pub(crate) fn run(arguments: &BenchArguments) -> anyhow::Result<()> {
    let seconds = Duration::try_from_secs_f64(arguments.seconds)
        .with_context(|| format!("--seconds {}: give a time of zero or more", arguments.seconds))?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = std::env::var("RAYON_NUM_THREADS").ok().and_then(|n| n.parse().ok()).unwrap_or(threads);
    let mut report = Report {
        threads,
        simd: simd_name(),
        peak_gflops: measured_peak_gflops(threads),
        workloads: Vec::new(),
    };
    for workload in &Workload::ALL {
        terminal::say(&format!("{} {}", workload.name, workload.title));
        let mut times = time(&mut workload.prepare()?, seconds)?;
        times.sort();
        let median = times[times.len() / 2].as_secs_f64();
        let gflops = workload.flops()? / median / 1e9;
        report.workloads.push(Line {
            name: workload.name,
            title: workload.title,
            step_ms: 1e3 * median,
            steps_per_second: 1.0 / median,
            images_per_second: workload.images as f64 / median,
            gflops,
            share_of_peak: gflops / report.peak_gflops,
        });
    }
    if arguments.json {
        return terminal::print_json(&format!("{}\n", serde_json::to_string_pretty(&report)?));
    }
    terminal::print_text(&page(&report))
}

/// The report as a page of text.
fn page(report: &Report) -> String {
    let Report { threads, simd, peak_gflops, .. } = report;
    let mut table = Table::new(["workload", "ms per step", "steps/s", "images/s", "GFLOP/s", "of peak"]);
    for line in &report.workloads {
        table.row([
            format!("{} {}", line.name, line.title),
            format!("{:.1}", line.step_ms),
            format!("{:.1}", line.steps_per_second),
            format!("{:.0}", line.images_per_second),
            format!("{:.0}", line.gflops),
            format!("{:.0}%", 100.0 * line.share_of_peak),
        ]);
    }
    format!(
        "{threads} threads, {simd}, measured peak {peak_gflops:.0} GFLOP/s\n\n{table}\nGFLOP/s count the convolutions as the \
         direct method does them; Winograd needs fewer.\n"
    )
}
