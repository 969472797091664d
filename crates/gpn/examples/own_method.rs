//! A few-shot method of one's own, in one file outside of the workspace's crates: prototypes that are medians of the labelled
//! samples, not means, so that one odd sample among several moves them less.
//!
//! It is registered by name, trained with the settings `train.method = "median"`, and evaluated beside Prototypical Networks on
//! the same tasks:
//!
//! ```sh
//! cargo run --release -p gpn --example own_method
//! ```

use std::path::Path;

use gpn::data::source::{Source as _, SyntheticSource};
use gpn::data::synthetic::SyntheticConfig;
use gpn::model::methods::{Episode, EpisodePass, Method, MethodKind, Needs, TestTask};
use gpn::model::{ModelError, accuracy, distance_loss};
use gpn::{Benchmark, BuildConfig, Config, Device, Evaluation, EvaluationRequest, Run, StartRequest, Watch};

/// What the rest of the program knows of the method.
const MEDIAN: MethodKind = MethodKind {
    name: "median",
    title: "Median prototypes",
    about: "nearest median of embeddings, coordinate by coordinate; no class graph",
    tunes_lambda: false,
    needs: Needs::NOTHING,
    // Nothing is learned but the backbone.
    values: |_, _| Some(0),
    make: |_, _, _| Ok(Box::new(Median)),
};

struct Median;

impl Method for Median {
    fn learn(&mut self, episode: &Episode<'_>) -> Result<EpisodePass, ModelError> {
        let mut shots = vec![episode.shape.shot; episode.shape.way];
        shots.extend((episode.shape.rest > 0).then_some(episode.shape.rest));
        let middle = middle(episode.support, &shots, episode.dim);
        let prototypes = medians(episode.support, &middle);
        let pass = distance_loss(episode.queries, &prototypes, episode.labels, episode.dim)?;
        // A median moves only with the values in the middle.
        let mut grad_support = vec![0.0; episode.support.len()];
        for (places, grad) in middle.iter().zip(&pass.grad_prototypes) {
            for &place in places {
                grad_support[place] += grad / 2.0;
            }
        }
        let accuracy = accuracy(&pass.logits, episode.labels);
        Ok(EpisodePass { loss: pass.loss, accuracy, grad_support, grad_queries: pass.grad_queries })
    }

    /// Classes that are taught keep the mean of their samples, which is no prototype of this method.
    fn answers_by_prototypes(&self) -> bool {
        false
    }

    fn answer(&self, task: &TestTask<'_>, lambdas: &[f32]) -> Result<Vec<Vec<usize>>, ModelError> {
        let middle = middle(&task.support, &task.shots, task.dim);
        Ok(vec![task.nearest(&medians(&task.support, &middle)); lambdas.len()])
    }
}

/// For each class and each coordinate, the two places in `samples: [sum of shots, dim]` whose mean is the median; with an odd
/// number of samples they are the same.
fn middle(samples: &[f32], shots: &[usize], dim: usize) -> Vec<[usize; 2]> {
    let mut found = Vec::with_capacity(shots.len() * dim);
    let mut first = 0;
    for &shot in shots {
        for coordinate in 0..dim {
            let mut places: Vec<usize> = (first..first + shot).map(|row| row * dim + coordinate).collect();
            places.sort_by(|&a, &b| samples[a].total_cmp(&samples[b]));
            found.push([places[(shot - 1) / 2], places[shot / 2]]);
        }
        first += shot;
    }
    found
}

/// The prototypes `[classes, dim]`.
fn medians(samples: &[f32], middle: &[[usize; 2]]) -> Vec<f32> {
    middle.iter().map(|&[a, b]| f32::midpoint(samples[a], samples[b])).collect()
}

/// Trains median and mean prototypes alike on drawn images in memory, and evaluates both on the same tasks of new classes.
pub(crate) fn compare(folder: &Path, episodes: u64, tasks: u64) -> Result<[Evaluation; 2], gpn::Error> {
    MEDIAN.register()?;
    let source = SyntheticSource::new(SyntheticConfig { per_leaf: 40, ..SyntheticConfig::default() });
    // invariant: the built-in data set brings its class graph.
    let taxonomy = source.taxonomy().unwrap()?.taxonomy;
    let mut build = BuildConfig { size: 32, ..BuildConfig::default() };
    build.assign.per_leaf = 4;

    let (device, watch) = (Device::cpu(), Watch::default());
    let request = EvaluationRequest { shot: 5, queries: 5, tasks, ..EvaluationRequest::default() };
    let train = |method: &str| {
        let (benchmark, _) = Benchmark::from_source(&source, &taxonomy, &build, &())?;
        let mut config = Config::default();
        let episodes = format!("train.episodes={episodes}");
        let method_setting = format!("train.method={method}");
        for setting in
            [&episodes, &method_setting, "task.shot=5", "schedule.auxiliary=false", "validation.tasks=0"]
        {
            config = config.with_setting(setting)?;
        }
        let mut run =
            Run::start(&folder.join(method), benchmark, &StartRequest::new(&config, &device), &watch)?;
        run.train(&watch)?;
        run.evaluate(&request, &watch)
    };
    Ok([train("median")?, train("protonet")?])
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    for evaluation in compare(folder.path(), 200, 200)? {
        println!("{:<22}{} on {} tasks", evaluation.title, evaluation.method, evaluation.tasks);
    }
    Ok(())
}
