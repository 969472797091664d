//! `gpn train`.

use anyhow::{Context as _, bail};
use gpn::data::benchmark::Benchmark;
use gpn::train::{ModelInfo, RunDirectory, Shipped};
use gpn::{Config, Device, ResumeRequest, Run, StartRequest, Trained, Watch, reached};

use crate::args::TrainArguments;
use crate::watching::watched;
use crate::{distributed, terminal};

pub(crate) fn run(arguments: &TrainArguments) -> anyhow::Result<()> {
    let device = Device::open(arguments.device.parse()?)?;
    if arguments.distributed {
        return distributed::run(arguments, &device);
    }
    watched(|watch| carry_out(open(arguments, &device, watch)?, watch))?
}

/// Starts or resumes a run.
pub(crate) fn open(arguments: &TrainArguments, device: &Device, watch: &Watch<'_>) -> anyhow::Result<Run> {
    match &arguments.resume {
        Some(_) => resume(arguments, device, watch),
        None => start(arguments, device, watch),
    }
}

/// Trains a run and says what came of it.
pub(crate) fn carry_out(mut run: Run, watch: &Watch<'_>) -> anyhow::Result<()> {
    if run.lacks_validation() {
        terminal::warn(
            "the benchmark has too few validation samples for tasks of this shape, so there is no validation; build it \
             with a larger --val-share or train with a lower task.way or task.shot",
        );
    }
    match run.train(watch)? {
        Trained::Finished(shipped) => say_models(run.directory(), &shipped),
        Trained::Stopped { episode } => say_stopped(run.folder(), episode),
    }
    Ok(())
}

/// Says how to go on with a run that was stopped.
pub(crate) fn say_stopped(folder: &std::path::Path, episode: u64) {
    terminal::say(&format!(
        "stopped after episode {episode}; go on with `gpn train --resume {}`",
        folder.display()
    ));
}

fn start(arguments: &TrainArguments, device: &Device, watch: &Watch<'_>) -> anyhow::Result<Run> {
    // invariant: the command line demands both unless a run is resumed.
    let (Some(data), Some(out)) = (&arguments.data, &arguments.out) else {
        bail!("--data and --out are missing")
    };
    let config = config(arguments)?;
    let benchmark = Benchmark::open_with(data, arguments.check())?;
    let request = StartRequest {
        data,
        init: arguments.init.as_deref(),
        replace: arguments.force,
        commit: Some(env!("GPN_COMMIT").to_owned()).filter(|commit| !commit.is_empty()),
        ..StartRequest::new(&config, device)
    };
    Ok(Run::start(out, benchmark, &request, watch)?)
}

fn config(arguments: &TrainArguments) -> anyhow::Result<Config> {
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
    Ok(config)
}

fn resume(arguments: &TrainArguments, device: &Device, watch: &Watch<'_>) -> anyhow::Result<Run> {
    let Some(folder) = &arguments.resume else { bail!("--resume is missing") };
    let request = ResumeRequest {
        data: arguments.data.as_deref(),
        episodes: arguments.episodes,
        check: arguments.check(),
        device,
    };
    let run = Run::resume(folder, &request, watch)?;
    match run.episodes() {
        (done, total) if done < total => terminal::say(&format!("going on after episode {done} of {total}")),
        (done, _) => {
            terminal::say(&format!("all {done} episodes are done; --episodes N makes the run longer"));
        }
    }
    Ok(run)
}

/// Says which models a run has made.
fn say_models(run: &RunDirectory, shipped: &Shipped) {
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
