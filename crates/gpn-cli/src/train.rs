//! `gpn train`.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use anyhow::{Context as _, bail, ensure};
use gpn_data::benchmark::{Benchmark, Check};
use gpn_model::{Device, Weights};
use gpn_train::{
    Config, Host, ModelInfo, Origin, Progress, RunDirectory, RunModel, Shipped, TimeSplit, Trainer,
};

use crate::args::TrainArguments;
use crate::terminal;

pub(crate) fn run(arguments: &TrainArguments) -> anyhow::Result<()> {
    let device = Device::open(arguments.device.parse()?)?;
    if let Some(folder) = &arguments.resume {
        let (run, trainer) =
            resume(folder, arguments.data.as_deref(), arguments.episodes, arguments.check(), &device)?;
        carry_out(&run, folder, trainer)?;
    } else {
        start(arguments, &device)?;
    }
    Ok(())
}

/// Trains anew with `config`, in place of a run at `out` if `replace` allows it; whether the run came to its end.
pub(crate) fn run_new(
    config: &Config,
    benchmark: Benchmark,
    data: &Path,
    out: &Path,
    replace: bool,
) -> anyhow::Result<bool> {
    begin(Trainer::new(config, benchmark, &Device::cpu())?, data, out, replace)
}

/// Makes the directory of a new run and trains; whether it came to its end.
fn begin(trainer: Trainer, data: &Path, out: &Path, replace: bool) -> anyhow::Result<bool> {
    let origin = Origin {
        program: format!("gpn {}", env!("CARGO_PKG_VERSION")),
        commit: Some(env!("GPN_COMMIT").to_owned()).filter(|commit| !commit.is_empty()),
        data: std::path::absolute(data)?,
        benchmark: trainer.benchmark().manifest().fingerprint(),
        seed: trainer.config().train.seed,
        host: Host::here(),
    };
    let run = RunDirectory::create(out, trainer.config(), &origin, replace)?;
    let outcome = carry_out(&run, out, trainer);
    if outcome.is_err() && run.newest_checkpoint()?.is_none() {
        // There is nothing to go on from, and it would be in the way of the corrected command.
        run.discard()?;
    }
    outcome
}

/// Brings the run at `out` to its end, whether it is new, begun or done already; false if it was interrupted.
pub(crate) fn complete(config: &Config, data: &Path, out: &Path) -> anyhow::Result<bool> {
    let benchmark = Benchmark::open(data)?;
    if !out.join("config.toml").is_file() {
        return run_new(config, benchmark, data, out, false);
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
    if matches!(run.newest_model(&found)?, Some(RunModel::Finished(_))) {
        return Ok(true);
    }
    let (run, trainer) = resume(out, Some(data), None, Check::Sampled, &device)?;
    carry_out(&run, out, trainer)
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
    if !spent.total().is_zero() {
        terminal::say(&format!("time: {:.0} s: {}", spent.total().as_secs_f64(), parts.join(", ")));
    }
    if trainer.position().episode < trainer.episodes() {
        terminal::say(&format!(
            "stopped after episode {}; go on with `gpn train --resume {}`",
            trainer.position().episode,
            folder.display()
        ));
        return Ok(false);
    }
    tell_of(run, &trainer.ship(run)?);
    Ok(true)
}

/// Says which models a run has made.
fn tell_of(run: &RunDirectory, shipped: &Shipped) {
    let Shipped { model, last } = shipped;
    let file = run.model();
    if model.validation.is_none() {
        terminal::say(&format!("trained: {}, after the last episode", file.display()));
        return;
    }
    let episode = |info: &ModelInfo| info.episode.unwrap_or(info.config.train.episodes);
    terminal::say(&format!(
        "trained: {}, the best on validation tasks, after episode {}: {}",
        file.display(),
        episode(model),
        reached(model)
    ));
    terminal::say(&format!(
        "beside it: {}, after the last episode, {}: {}",
        run.last_model().display(),
        episode(last),
        reached(last)
    ));
}

/// The accuracy of a model on the validation tasks, in words.
fn reached(info: &ModelInfo) -> String {
    match &info.validation {
        Some(result) if info.method().tunes_lambda => format!(
            "{} before propagation, {} after, {} mixed with lambda {}",
            result.base(),
            result.method(),
            result.reached(info.method()),
            info.lambda()
        ),
        Some(result) => result.method().to_string(),
        None => "not evaluated".into(),
    }
}

fn start(arguments: &TrainArguments, device: &Device) -> anyhow::Result<bool> {
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
    if let Some(episodes) = arguments.episodes {
        config.train.episodes = episodes;
    }
    let benchmark = Benchmark::open_with(data, arguments.check())?;
    let mut trainer = Trainer::new(&config, benchmark, device)?;
    if let Some(file) = &arguments.init {
        let weights = Weights::read(file).with_context(|| {
            format!(
                "{}: --init takes weights as safetensors; save a PyTorch state dict with safetensors.torch.save_file",
                file.display()
            )
        })?;
        weights.load(&mut trainer.network().embedder)?;
        if !weights.has_checksum() {
            terminal::say(&format!(
                "note: {} has no checksum; whether it is intact cannot be told",
                file.display()
            ));
        }
    }
    begin(trainer, data, out, arguments.force)
}

/// Opens a run to go on with, for `episodes` in all if that is given.
fn resume(
    folder: &Path,
    data: Option<&Path>,
    episodes: Option<u64>,
    check: Check,
    device: &Device,
) -> anyhow::Result<(RunDirectory, Trainer)> {
    let (run, mut config, origin) = RunDirectory::open(folder)?;
    let run = run.locked()?;
    let taught = run.taught();
    ensure!(
        taught.is_empty(),
        "{}: it has been taught classes since it was trained ({}), and going on would write it anew; move it elsewhere first",
        run.model().display(),
        terminal::first_few(taught.iter())
    );
    let data = data.unwrap_or(&origin.data);
    let benchmark = Benchmark::open_with(data, check)?;
    if benchmark.manifest().fingerprint() != origin.benchmark {
        bail!(
            "{}: it is not the benchmark that {} was started on; name that one with --data",
            data.display(),
            folder.display()
        );
    }
    let length = config.train.episodes;
    config.train.episodes = episodes.unwrap_or(length);
    let mut trainer = Trainer::new(&config, benchmark, device)?;
    for warning in trainer.resume(&run.checkpoints())?.warnings {
        terminal::warn(&warning);
    }
    let done = trainer.position().episode;
    ensure!(
        config.train.episodes == length || config.train.episodes > done,
        "--episodes {}: {} has {done} episodes behind it; give the number in all, more than that",
        config.train.episodes,
        folder.display()
    );
    if config.train.episodes != length {
        run.write_config(trainer.config())?;
    }
    run.cut_metrics(done)?;
    if done < trainer.episodes() {
        terminal::say(&format!("going on after episode {done} of {}", trainer.episodes()));
    } else {
        terminal::say(&format!("all {done} episodes are done; --episodes N makes the run longer"));
    }
    Ok((run, trainer))
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
            terminal::say("finishing the episode and saving; interrupt again to stop at once");
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
