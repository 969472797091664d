//! Where experiments are carried out: runs that are trained once, results that are measured once.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use gpn_data::benchmark::{Benchmark, Split};
use gpn_data::task::Sampling;
use gpn_model::Device;
use gpn_train::{Config, Hierarchy, TrainedModel};

use super::LabRequest;
use super::scale::Scale;
use crate::build::build_synthetic;
use crate::error::{Error, Result};
use crate::evaluation::{EvaluationRequest, TestTasks, evaluate_model, read_accuracies};
use crate::output;
use crate::run::{Run, StartRequest};
use crate::watch::Watch;

/// Classes and labelled samples of a task, written as 5w1s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Classes.
    pub way: usize,
    /// Labelled samples of each.
    pub shot: usize,
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
pub(crate) struct Lab<'a> {
    watch: &'a Watch<'a>,
    out: PathBuf,
    data: PathBuf,
    built_in: bool,
    config: Config,
    tasks: u64,
    seed: u64,
}

impl<'a> Lab<'a> {
    /// Opens the directory; the built-in data are drawn into it where no others are named.
    pub(crate) fn open(arguments: &LabRequest, watch: &'a Watch<'a>) -> Result<Self> {
        let mut config = arguments.scale.config(arguments.episodes)?;
        config.train.seed = arguments.seed;
        for setting in &arguments.set {
            config = config.with_setting(setting)?;
        }
        let out = arguments.out.clone();
        let (data, built_in) = match &arguments.data {
            Some(data) => (data.clone(), false),
            None if arguments.scale == Scale::Quick => (out.join("data"), true),
            None => return Err(Error::BenchmarkMissing),
        };
        output::may_fill(&out, &["runs", "results", "data"], "experiment")?;
        output::create_folder(&out)?;
        if built_in && !data.join("benchmark.toml").is_file() {
            watch.step("Drawing the built-in data");
            build_synthetic(&data, 0, watch)?;
        }
        let tasks = arguments.tasks.unwrap_or_else(|| arguments.scale.tasks());
        Ok(Self { watch, out, data, built_in, config, tasks, seed: arguments.seed })
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

    pub(crate) fn benchmark(&self) -> Result<Benchmark> {
        Ok(Benchmark::open(&self.data)?)
    }

    /// The settings of a run.
    pub(crate) fn run_config(&self, method: &str, shape: Shape, settings: &[&str]) -> Result<Config> {
        let mut config = self.config.with_method(method)?;
        config.task.way = shape.way;
        config.task.shot = shape.shot;
        for setting in settings {
            config = config.with_setting(setting)?;
        }
        Ok(config)
    }

    /// The run of a name, trained to its end; one that was stopped goes on.
    pub(crate) fn trained(&self, name: &str, config: &Config) -> Result<PathBuf> {
        let run = self.out.join("runs").join(name);
        if !run.join("model.safetensors").is_file() {
            self.watch.step(&format!("Training {name}"));
        }
        let device = Device::cpu();
        let request = StartRequest { data: &self.data, ..StartRequest::new(config, &device) };
        if Run::complete(&run, &request, self.watch)? { Ok(run) } else { Err(Error::interrupted()) }
    }

    /// Accuracies in percent of a run on the tasks of each setting, measured now unless they are there.
    pub(crate) fn measured(&self, name: &str, run: &Path, settings: &[Setting]) -> Result<Vec<Vec<f64>>> {
        let folder = self.out.join("results").join(name);
        let file = |setting: &Setting| folder.join(setting.file_name(self.tasks));
        let missing: Vec<&Setting> = settings.iter().filter(|setting| !file(setting).is_file()).collect();
        if !missing.is_empty() {
            self.watch.step(&format!("Testing {name}"));
            let model = TrainedModel::read(&run.join("model.safetensors"), &Device::cpu())?;
            let benchmark = self.benchmark()?;
            for setting in missing {
                let request = self.request(setting);
                let tasks = TestTasks::of(&benchmark, &request)?;
                let evaluation = evaluate_model(&model, &benchmark, &tasks, &request, self.watch)?;
                gpn_report::write_file(file(setting), evaluation.csv(&tasks))?;
            }
        }
        let accuracies = |setting: &Setting| -> Result<Vec<f64>> {
            let lines = read_accuracies(&file(setting))?;
            Ok(lines.into_iter().map(|line| line.accuracy).collect())
        };
        settings.iter().map(accuracies).collect()
    }

    /// The test tasks of a setting: the same for every run.
    pub(crate) fn request(&self, setting: &Setting) -> EvaluationRequest {
        let Setting { split, sampling, hierarchy, shape: Shape { way, shot } } = *setting;
        let (tasks, seed) = (self.tasks, self.seed);
        EvaluationRequest {
            split,
            sampling,
            hierarchy,
            way,
            shot,
            tasks,
            seed,
            ..EvaluationRequest::default()
        }
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
