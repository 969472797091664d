//! Times the benchmark workloads on the path that training takes: embedder, loss, gradients, Adam.
//!
//! Prints one JSON line per workload: engine, workload, `step_ms`, `peak_mb`, and with `--peak` the share of
//! the processor's peak. `bench/torch_step.py` is the counterpart in PyTorch, `bench/run.py` interleaves the
//! two.

use std::time::Duration;

use gpn_model::bench::{Workload, measured_peak_gflops, time};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut names = Vec::new();
    let (mut seconds, mut engine, mut with_peak) = (3.0, "gpn".to_owned(), false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--seconds" => seconds = arguments.next().ok_or("--seconds needs a number")?.parse()?,
            "--peak" => with_peak = true,
            "--engine" => engine = arguments.next().ok_or("--engine needs a name")?,
            _ => names.push(argument),
        }
    }
    if names.is_empty() {
        names = Workload::ALL.iter().map(|workload| workload.name.to_owned()).collect();
    }
    for name in names {
        let workload = Workload::ALL.iter().find(|workload| workload.name == name);
        let workload = workload.ok_or_else(|| format!("unknown workload `{name}` (known: W1 to W9)"))?;
        let times = time(&mut workload.prepare()?, Duration::from_secs_f64(seconds))?;
        let times: Vec<f64> = times.iter().map(|time| (time.as_secs_f64() * 1e7).round() / 1e4).collect();
        let mut line =
            serde_json::json!({"engine": engine, "workload": name, "step_ms": times, "peak_mb": peak_mb()});
        if with_peak {
            let peak = measured_peak_gflops(rayon::current_num_threads());
            line["share_of_peak"] = (workload.flops()? / peak / 1e6 / median(&times)).into();
        }
        println!("{line}");
    }
    Ok(())
}

fn median(times: &[f64]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Most memory this process has had, where the system tells.
fn peak_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()? / 1024.0)
}
