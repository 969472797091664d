//! Where experiments are carried out: runs that are trained once, results that are measured once.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context as _;
use gpn_data::benchmark::{Benchmark, Part, Split};
use gpn_data::task::{Sampling, Task, TaskConfig, TaskSampler};
use gpn_model::Device;
use gpn_train::{Config, Embeddings, Hierarchy, TrainedModel, evaluate};

use super::LabArguments;
use super::scale::ScaleName;
use crate::{demo, eval, output, terminal, train};

/// Queries of each class in a test task.
const QUERIES: usize = 15;

/// The user stopped the experiment.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// Classes and labelled samples of a task, written as 5w1s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) way: usize,
    pub(crate) shot: usize,
}

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text
            .strip_suffix('s')
            .and_then(|text| text.split_once('w'))
            .and_then(|(way, shot)| Some(Self { way: way.parse().ok()?, shot: shot.parse().ok()? }));
        parsed
            .filter(|shape| shape.way >= 2 && shape.shot >= 1)
            .ok_or_else(|| "write it as 5w1s: five classes, one labelled sample of each".into())
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}w{}s", self.way, self.shot)
    }
}

/// Which test tasks, and what is known of their classes.
#[derive(Clone, Copy)]
pub(crate) struct Setting {
    pub(crate) split: Split,
    pub(crate) sampling: Sampling,
    pub(crate) shape: Shape,
    pub(crate) hierarchy: Hierarchy,
}

impl Setting {
    fn file_name(self, tasks: u64) -> String {
        let sampling = if self.sampling == Sampling::Random { "random" } else { "snowball" };
        let hierarchy = if self.hierarchy == Hierarchy::Known { "known" } else { "unknown" };
        format!("{}-{sampling}-{}-{hierarchy}-{tasks}.csv", self.split.name(), self.shape)
    }
}

/// A directory of runs and results.
pub(crate) struct Lab {
    out: PathBuf,
    data: PathBuf,
    built_in: bool,
    config: Config,
    tasks: u64,
    seed: u64,
}

impl Lab {
    /// Opens the directory; the built-in data are drawn into it where no others are named.
    pub(crate) fn open(arguments: &LabArguments) -> anyhow::Result<Self> {
        let mut config = arguments.scale.config(arguments.episodes)?;
        config.train.seed = arguments.seed;
        for setting in &arguments.set {
            config = config.with_setting(setting)?;
        }
        let out = arguments.out.clone();
        let (data, built_in) = match &arguments.data {
            Some(data) => (data.clone(), false),
            None if arguments.scale == ScaleName::Quick => (out.join("data"), true),
            None => anyhow::bail!(
                "--data is missing: only the quick scale has built-in data; make a benchmark with `gpn data build`"
            ),
        };
        output::may_fill(&out, &["runs", "results", "data"], "experiment")?;
        std::fs::create_dir_all(&out)
            .with_context(|| format!("{}: cannot create the directory", out.display()))?;
        if built_in && !data.join("benchmark.toml").is_file() {
            terminal::step("Drawing the built-in data");
            demo::drawn(&data, 0)?;
        }
        let tasks = arguments.tasks.unwrap_or_else(|| arguments.scale.tasks());
        Ok(Self { out, data, built_in, config, tasks, seed: arguments.seed })
    }

    /// The directory.
    pub(crate) fn out(&self) -> &Path {
        &self.out
    }

    /// The settings that all runs have in common.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Test tasks behind every figure.
    pub(crate) fn tasks(&self) -> u64 {
        self.tasks
    }

    /// What the data are, for people.
    pub(crate) fn data_name(&self) -> String {
        if self.built_in {
            "built-in drawings".into()
        } else {
            self.data
                .file_name()
                .map_or_else(|| "benchmark".into(), |name| name.to_string_lossy().into_owned())
        }
    }

    pub(crate) fn benchmark(&self) -> anyhow::Result<Benchmark> {
        Ok(Benchmark::open(&self.data)?)
    }

    /// The settings of a run.
    pub(crate) fn run_config(&self, method: &str, shape: Shape, settings: &[&str]) -> anyhow::Result<Config> {
        let mut config = self.config.with_method(method)?;
        config.task.way = shape.way;
        config.task.shot = shape.shot;
        for setting in settings {
            config = config.with_setting(setting)?;
        }
        Ok(config)
    }

    /// The run of a name, trained to its end; one that was stopped goes on.
    pub(crate) fn trained(&self, name: &str, config: &Config) -> anyhow::Result<PathBuf> {
        let run = self.out.join("runs").join(name);
        if !run.join("model.safetensors").is_file() {
            terminal::step(&format!("Training {name}"));
        }
        if train::complete(config, &self.data, &run)? { Ok(run) } else { Err(Interrupted.into()) }
    }

    /// Accuracies in percent of a run on the tasks of each setting, measured now unless they are there.
    pub(crate) fn measured(
        &self,
        name: &str,
        run: &Path,
        settings: &[Setting],
    ) -> anyhow::Result<Vec<Vec<f64>>> {
        let folder = self.out.join("results").join(name);
        let file = |setting: &Setting| folder.join(setting.file_name(self.tasks));
        let missing: Vec<&Setting> = settings.iter().filter(|setting| !file(setting).is_file()).collect();
        if !missing.is_empty() {
            terminal::step(&format!("Testing {name}"));
            let mut model = TrainedModel::read(&run.join("model.safetensors"), &Device::cpu())?;
            let benchmark = self.benchmark()?;
            for setting in missing {
                let tasks = self.tasks_of(&benchmark, setting)?;
                let embeddings =
                    Embeddings::of_tasks(&mut model.network.embedder, benchmark.store(), &tasks)?;
                let data_set = benchmark.data_set(setting.split);
                let lambda = model.info.lambda();
                let results =
                    evaluate(model.trained(), &data_set, &embeddings, &tasks, setting.hierarchy, lambda)?;
                let fingerprints = eval::fingerprints(&benchmark, setting.split, &tasks);
                gpn_report::write_file(file(setting), eval::csv(&results, &fingerprints))?;
            }
        }
        let accuracies = |setting: &Setting| -> anyhow::Result<Vec<f64>> {
            let lines = eval::read_accuracies(&file(setting))?;
            Ok(lines.into_iter().map(|line| line.accuracy).collect())
        };
        settings.iter().map(accuracies).collect()
    }

    /// The test tasks of a setting: the same for every run.
    pub(crate) fn tasks_of(&self, benchmark: &Benchmark, setting: &Setting) -> anyhow::Result<Vec<Task>> {
        let Shape { way, shot } = setting.shape;
        let config =
            TaskConfig { way, shot, queries: QUERIES, sampling: setting.sampling, ..TaskConfig::default() };
        let sampler = TaskSampler::new(&benchmark.task_pool(setting.split, Part::Test), config, self.seed)?;
        (0..self.tasks).map(|index| Ok(sampler.task(index)?)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_read_as_they_are_written() {
        let shape: Shape = "10w5s".parse().unwrap();
        assert_eq!((shape.way, shape.shot), (10, 5));
        assert_eq!(shape.to_string(), "10w5s");
        for wrong in ["5", "5w", "w1s", "1w1s", "5w0s", "5w1"] {
            assert!(wrong.parse::<Shape>().is_err(), "{wrong}");
        }
    }
}
