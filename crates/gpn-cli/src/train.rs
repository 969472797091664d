//! `gpn train`.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use anyhow::{Context as _, bail};
use gpn_data::benchmark::{Benchmark, Check};
use gpn_model::{Device, Weights};
use gpn_train::{Config, Host, Origin, Progress, RunDirectory, TimeSplit, Trainer, model_card};

use crate::args::TrainArguments;
use crate::terminal;

pub(crate) fn run(arguments: &TrainArguments) -> anyhow::Result<()> {
    let device = Device::open(arguments.device.parse()?)?;
    let (run, folder, trainer) = match &arguments.resume {
        Some(folder) => resume(folder, arguments.data.as_deref(), arguments.check(), &device)?,
        None => start(arguments, &device)?,
    };
    carry_out(&run, &folder, trainer)?;
    Ok(())
}

/// Trains anew with `config`; whether the run came to its end.
pub(crate) fn run_new(
    config: &Config,
    benchmark: Benchmark,
    data: &Path,
    out: &Path,
) -> anyhow::Result<bool> {
    let trainer = Trainer::new(config, benchmark, &Device::cpu())?;
    let run = create(out, &trainer, data)?;
    carry_out(&run, out, trainer)
}

/// Brings the run at `out` to its end, whether it is new, begun or done already; false if it was interrupted.
pub(crate) fn complete(config: &Config, data: &Path, out: &Path) -> anyhow::Result<bool> {
    let benchmark = Benchmark::open(data)?;
    if !out.join("config.toml").is_file() {
        return run_new(config, benchmark, data, out);
    }
    let device = Device::cpu();
    let (run, found, origin) = RunDirectory::open(out)?;
    let wanted = Trainer::new(config, benchmark, &device)?;
    if found != *wanted.config() || wanted.benchmark().manifest().fingerprint() != origin.benchmark {
        bail!(
            "{}: it was trained with other settings or on other data; choose another directory, or remove this one",
            out.display()
        );
    }
    if run.model().is_file() {
        return Ok(true);
    }
    let (run, folder, trainer) = resume(out, Some(data), Check::Sampled, &device)?;
    carry_out(&run, &folder, trainer)
}

/// Trains until the end, which gives true, or an interrupt.
fn carry_out(run: &RunDirectory, folder: &Path, mut trainer: Trainer) -> anyhow::Result<bool> {
    if trainer.config().validation.tasks > 0 && !trainer.validates() {
        terminal::warn(
            "the benchmark has too few validation samples for tasks of this shape, so there is no validation; build it \
             with a larger --val-share or train with a lower task.way or task.shot",
        );
    }
    let signals = watch_signals()?;
    let bar = terminal::Progress::new("training");
    let mut failed = None;
    let mut spent = TimeSplit::default();
    let episodes = trainer.episodes() as usize;
    trainer.run(&run.checkpoints(), |done, report| {
        bar.update(done as usize, episodes);
        if let Some(report) = report {
            spent = report.time;
            bar.note(&summary(report));
            bar.say(&line(report));
            if let Err(error) = run.log(report) {
                failed = Some(error);
                return ControlFlow::Break(());
            }
        }
        if signals.load(Ordering::Relaxed) > 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    drop(bar);
    if let Some(error) = failed {
        return Err(error.into());
    }
    let parts: Vec<String> = shares(&spent).map(|(name, share)| format!("{name} {share:.0}%")).collect();
    eprintln!("time: {:.0} s: {}", spent.total().as_secs_f64(), parts.join(", "));
    if trainer.position().episode < trainer.episodes() {
        eprintln!(
            "stopped after episode {}; go on with `gpn train --resume {}`",
            trainer.position().episode,
            folder.display()
        );
        return Ok(false);
    }
    trainer.save_model(&run.model())?;
    let info = trainer.info();
    run.write_card(&model_card(&info, trainer.benchmark()))?;
    if let Some(result) = &info.validation {
        if info.method().tunes_lambda {
            eprintln!(
                "validation tasks: {} before propagation, {} after; best with lambda {}",
                result.base(),
                result.method(),
                info.lambda()
            );
        } else {
            eprintln!("validation tasks: {}", result.method());
        }
    }
    eprintln!("trained: {}", run.model().display());
    Ok(true)
}

fn start(arguments: &TrainArguments, device: &Device) -> anyhow::Result<(RunDirectory, PathBuf, Trainer)> {
    // invariant: the command line demands both unless a run is resumed.
    let (Some(data), Some(out)) = (&arguments.data, &arguments.out) else {
        bail!("--data and --out are missing")
    };
    let mut config = Config::preset(&arguments.preset)?;
    if let Some(file) = &arguments.config {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("{}: cannot read", file.display()))?;
        config = config.with_toml(&text, file)?;
    }
    if let Some(method) = &arguments.method {
        config = config.with_method(method)?;
    }
    for setting in &arguments.set {
        config = config.with_setting(setting)?;
    }
    let benchmark = Benchmark::open_with(data, arguments.check())?;
    let mut trainer = Trainer::new(&config, benchmark, device)?;
    if let Some(file) = &arguments.init {
        let weights = Weights::read(file)?;
        weights.load(&mut trainer.network().embedder)?;
        if !weights.has_checksum() {
            eprintln!("note: {} has no checksum; whether it is intact cannot be told", file.display());
        }
    }
    Ok((create(out, &trainer, data)?, out.clone(), trainer))
}

/// Makes the directory of a new run.
fn create(out: &Path, trainer: &Trainer, data: &Path) -> anyhow::Result<RunDirectory> {
    let origin = Origin {
        program: format!("gpn {}", env!("CARGO_PKG_VERSION")),
        commit: Some(env!("GPN_COMMIT").to_owned()).filter(|commit| !commit.is_empty()),
        data: std::path::absolute(data)?,
        benchmark: trainer.benchmark().manifest().fingerprint(),
        seed: trainer.config().train.seed,
        host: Host::here(),
    };
    Ok(RunDirectory::create(out, trainer.config(), &origin)?)
}

fn resume(
    folder: &Path,
    data: Option<&Path>,
    check: Check,
    device: &Device,
) -> anyhow::Result<(RunDirectory, PathBuf, Trainer)> {
    let (run, config, origin) = RunDirectory::open(folder)?;
    let run = run.locked()?;
    let data = data.unwrap_or(&origin.data);
    let benchmark = Benchmark::open_with(data, check)?;
    if benchmark.manifest().fingerprint() != origin.benchmark {
        bail!(
            "{}: it is not the benchmark that {} was started on; name that one with --data",
            data.display(),
            folder.display()
        );
    }
    let mut trainer = Trainer::new(&config, benchmark, device)?;
    for warning in trainer.resume(&run.checkpoints())?.warnings {
        terminal::warn(&warning);
    }
    run.cut_metrics(trainer.position().episode)?;
    eprintln!("going on after episode {}", trainer.position().episode);
    Ok((run, folder.to_owned(), trainer))
}

/// Counts interrupts: the first lets the episode finish, the second ends the process at once.
fn watch_signals() -> anyhow::Result<&'static AtomicU32> {
    static SIGNALS: AtomicU32 = AtomicU32::new(0);
    static WATCHED: AtomicBool = AtomicBool::new(false);
    // A process that trains several runs, one after the other, watches once.
    if !WATCHED.swap(true, Ordering::Relaxed) {
        ctrlc::set_handler(|| {
            if SIGNALS.fetch_add(1, Ordering::Relaxed) > 0 {
                std::process::exit(130);
            }
            eprintln!("finishing the episode and saving; interrupt again to stop at once");
        })?;
    }
    Ok(&SIGNALS)
}

/// A report in a few words, for the bar.
fn summary(progress: &Progress) -> String {
    let result = progress.few_shot.as_ref().or(progress.auxiliary.as_ref());
    let result = result.map_or(String::new(), |result| {
        format!("loss {:.3} accuracy {:.1}% ", result.loss, 100.0 * result.accuracy)
    });
    let parts: Vec<String> = shares(&progress.time)
        .filter(|(name, _)| ["data", "backbone", "propagation", "memory"].contains(name))
        .map(|(name, share)| format!("{name} {share:.0}%"))
        .collect();
    format!("{result}[{}]", parts.join(" "))
}

/// A report as a line of text.
fn line(progress: &Progress) -> String {
    let result = |name: &str, result: &Option<gpn_train::StepResult>| {
        result.as_ref().map_or(String::new(), |result| {
            format!("  {name} loss {:.3} accuracy {:4.1}%", result.loss, 100.0 * result.accuracy)
        })
    };
    let validation = progress.validation.as_ref().map_or(String::new(), |result| {
        format!("  validation {:.1}% -> {:.1}%", result.base().mean, result.method().mean)
    });
    format!(
        "episode {}{}{}{validation}  lambda {:.2}  rate {:.1e}",
        progress.episode,
        result("tasks", &progress.few_shot),
        result("auxiliary", &progress.auxiliary),
        progress.lambda,
        progress.rate,
    )
}

/// Where the time went, in percent of all of it.
fn shares(time: &TimeSplit) -> impl Iterator<Item = (&'static str, f64)> {
    let total = time.total().as_secs_f64().max(1e-9);
    let parts = [
        ("data", time.data),
        ("backbone", time.steps.backbone),
        ("propagation", time.steps.method),
        ("optimiser", time.steps.other),
        ("memory", time.memory),
        ("validation and checkpoints", time.upkeep),
    ];
    parts.into_iter().map(move |(name, part)| (name, 100.0 * part.as_secs_f64() / total))
}
