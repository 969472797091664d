//! Evaluation on few-shot tasks: the tasks, the accuracies, and the comparison with another run on the same tasks.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use gpn_data::benchmark::{Benchmark, DataSet, Part, Split};
use gpn_data::task::{LeftOut, Sampling, Task, TaskConfig, TaskSampler, fingerprint_of_list, read_tasks};
use gpn_model::methods::{Method, MethodKind};
use gpn_train::{
    Embeddings, Estimate, Fitting, Hierarchy, INTERVAL, TaskResult, Trained, TrainedModel, evaluate,
    fit_method, probabilities,
};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::texts::ClassTexts;
use crate::watch::Watch;

/// Which tasks a model is evaluated on, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EvaluationRequest {
    /// Which test classes. Default Close.
    pub split: Split,
    /// How the classes of a task are chosen. Default at random.
    pub sampling: Sampling,
    /// What is known of the classes' place in the graph. Default all.
    pub hierarchy: Hierarchy,
    /// Classes of a task. Default 5.
    pub way: usize,
    /// Labelled samples of each class. Default 1.
    pub shot: usize,
    /// Queries of each class. Default 15.
    pub queries: usize,
    /// Labelled samples of one more answer, "other"; 0 for no such answer. Default 0.
    pub rest: usize,
    /// Number of tasks. Default 600.
    pub tasks: u64,
    /// Seed of the tasks. Default 0.
    pub seed: u64,
    /// A file of fixed tasks to take instead of drawing them.
    pub tasks_file: Option<PathBuf>,
    /// Weight of the prototype before propagation in the mixed result; by default the best on the validation tasks.
    pub lambda: Option<f32>,
    /// Another method than the one that the model was trained with, on the same network.
    pub method: Option<String>,
    /// A table of embeddings of class texts, for methods that use them.
    pub names: Option<PathBuf>,
}

impl Default for EvaluationRequest {
    fn default() -> Self {
        Self {
            split: Split::Close,
            sampling: Sampling::Random,
            hierarchy: Hierarchy::Known,
            way: 5,
            shot: 1,
            queries: 15,
            rest: 0,
            tasks: 600,
            seed: 0,
            tasks_file: None,
            lambda: None,
            method: None,
            names: None,
        }
    }
}

/// Test tasks of a benchmark.
pub struct TestTasks {
    /// The tasks.
    pub tasks: Vec<Task>,
    /// The classes they are about.
    pub data_set: DataSet,
    /// Which task each is, over benchmark, split, classes and samples.
    pub fingerprints: Vec<String>,
    /// Classes with too few samples, which no task has.
    pub left_out: Vec<LeftOut>,
}

impl TestTasks {
    /// Draws the tasks of a request, or reads them from its file.
    pub fn of(benchmark: &Benchmark, request: &EvaluationRequest) -> Result<Self> {
        let split = request.split;
        let data_set = benchmark.data_set(split);
        let (tasks, left_out) = if let Some(file) = &request.tasks_file {
            (fixed_tasks(file, data_set.rows.len() as u32)?, Vec::new())
        } else {
            let EvaluationRequest { way, shot, queries, rest, sampling, .. } = *request;
            let config = TaskConfig { way, shot, queries, sampling, rest, ..TaskConfig::default() };
            let sampler = TaskSampler::new(&benchmark.task_pool(split, Part::Test), config, request.seed)?;
            let tasks = (0..request.tasks).map(|index| Ok(sampler.task(index)?)).collect::<Result<_>>()?;
            (tasks, sampler.left_out().to_vec())
        };
        let name = format!("{} {}", benchmark.manifest().fingerprint(), split.name());
        let fingerprints = tasks.iter().map(|task| task.fingerprint(&name)).collect();
        Ok(Self { tasks, data_set, fingerprints, left_out })
    }

    /// Embeds every sample of the tasks.
    pub fn embed(
        &self,
        embedder: &gpn_model::Embedder,
        benchmark: &Benchmark,
        watch: &Watch<'_>,
    ) -> Result<Embeddings> {
        Ok(Embeddings::of_tasks(embedder, benchmark.store(), &self.tasks, watch.stop())?)
    }
}

fn fixed_tasks(file: &Path, classes: u32) -> Result<Vec<Task>> {
    let tasks = read_tasks(file)?;
    for (number, task) in tasks.iter().enumerate() {
        if let Some(class) = task.classes.iter().find(|&&class| class >= classes) {
            let reason = format!(
                "task {number} asks for class {class}, but the benchmark has {classes} classes of this split"
            );
            return Err(Error::input(file.display(), reason));
        }
    }
    Ok(tasks)
}

/// The accuracy of a model on test tasks, in percent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Name of the method.
    pub name: String,
    /// Its name in tables.
    pub title: String,
    /// Episodes the model was trained for, where it says so.
    pub episode: Option<u64>,
    /// Number of tasks.
    pub tasks: usize,
    /// Which tasks they are: the same for every model evaluated on them.
    pub fingerprint: String,
    /// What was known of the classes' place in the graph.
    pub hierarchy: Hierarchy,
    /// Weight of the prototype before propagation in `mixed`.
    pub lambda: f32,
    /// What an interval is.
    pub interval: String,
    /// Accuracy of the nearest mean of embeddings.
    pub base: Estimate,
    /// Accuracy of the method.
    pub method: Estimate,
    /// Accuracy with prototypes before and after propagation mixed by lambda.
    pub mixed: Estimate,
    /// The method less the nearest mean, task by task.
    pub gain: Estimate,
    /// Expected calibration error in percent, for methods that answer by prototypes.
    pub calibration_error: Option<f64>,
    /// `mixed` less that of another run on the same tasks, task by task.
    pub against: Option<Estimate>,
    /// The accuracies of every task.
    pub per_task: Vec<TaskResult>,
}

/// Evaluates a model on the tasks of a request.
pub fn evaluate_model(
    model: &TrainedModel,
    benchmark: &Benchmark,
    tasks: &TestTasks,
    request: &EvaluationRequest,
    watch: &Watch<'_>,
) -> Result<Evaluation> {
    if benchmark.manifest().fingerprint() != model.info.benchmark {
        return Err(Error::input(
            benchmark.folder().map_or_else(|| "the benchmark".into(), |folder| folder.display().to_string()),
            "the model was trained on another benchmark; its classes do not fit this one",
        ));
    }
    let embeddings = tasks.embed(&model.network.embedder, benchmark, watch)?;
    let answering = Answering::of(model, benchmark, tasks, request, watch)?;
    answering.evaluate(model, tasks, &embeddings, request, watch)
}

/// The same with the model's own method, for samples that are embedded already.
pub fn evaluate_embeddings(
    model: &TrainedModel,
    tasks: &TestTasks,
    embeddings: &Embeddings,
    request: &EvaluationRequest,
    watch: &Watch<'_>,
) -> Result<Evaluation> {
    Answering { other: None, texts: Vec::new() }.evaluate(model, tasks, embeddings, request, watch)
}

/// The method that answers.
pub(crate) struct Answering {
    /// Another than the model's own.
    other: Option<(&'static MethodKind, Box<dyn Method>)>,
    /// The texts of the test classes.
    pub(crate) texts: Vec<Option<Vec<f32>>>,
}

impl Answering {
    pub(crate) fn of(
        model: &TrainedModel,
        benchmark: &Benchmark,
        tasks: &TestTasks,
        request: &EvaluationRequest,
        watch: &Watch<'_>,
    ) -> Result<Self> {
        let texts = request.names.as_deref().map(ClassTexts::read).transpose()?;
        let own = model.info.method();
        let kind = request.method.as_deref().map_or(Ok(own), MethodKind::named)?;
        // Texts are fitted together with the method.
        if kind.name == own.name && texts.is_none() {
            return Ok(Self { other: None, texts: Vec::new() });
        }
        let (dim, classes) = (model.network.embedder.embedding_len(), model.info.classes.len());
        let mut method = (kind.make)(&model.info.config.method_settings(), dim, classes)?;
        if kind.name != own.name && !method.state().is_empty() {
            let reason = format!(
                "it has parameters that a model of {} does not hold; train a model with it",
                own.name
            );
            return Err(Error::input(format!("method {}", kind.name), reason));
        }
        let training = benchmark.data_set(Split::Train);
        let rows = texts.as_ref().map(|texts| texts.of_training(benchmark, &training)).transpose()?;
        let fitting = Fitting {
            embedder: &model.network.embedder,
            benchmark,
            texts: rows.as_ref(),
            seed: model.info.config.train.seed,
        };
        fit_method(method.as_mut(), &fitting, watch.stop())?;
        let texts = texts.map_or_else(Vec::new, |texts| texts.of(benchmark, &tasks.data_set));
        Ok(Self { other: Some((kind, method)), texts })
    }

    /// What answers, and what it is.
    pub(crate) fn method<'a>(&'a self, model: &'a TrainedModel) -> (&'static MethodKind, &'a dyn Method) {
        match &self.other {
            None => (model.info.method(), model.trained().method),
            Some((kind, method)) => (*kind, method.as_ref()),
        }
    }

    pub(crate) fn evaluate(
        &self,
        model: &TrainedModel,
        tasks: &TestTasks,
        embeddings: &Embeddings,
        request: &EvaluationRequest,
        watch: &Watch<'_>,
    ) -> Result<Evaluation> {
        let hierarchy = request.hierarchy;
        let own = model.trained();
        let (kind, method) = self.method(model);
        let default = if self.other.is_none() { model.info.lambda() } else { 0.0 };
        let lambda = request.lambda.unwrap_or(default);
        let TestTasks { tasks, data_set, fingerprints, .. } = tasks;
        let trained = Trained { method, texts: &self.texts, ..own };
        let stop = watch.stop();
        let per_task = evaluate(trained, data_set, embeddings, tasks, hierarchy, lambda, stop)?;
        let calibration_error = if method.answers_by_prototypes() {
            let probabilities = probabilities(trained, data_set, embeddings, tasks, hierarchy, stop)?;
            Some(calibration_error(tasks, &probabilities))
        } else {
            None
        };
        let column = |of: fn(&TaskResult) -> f64| Estimate::of(&per_task.iter().map(of).collect::<Vec<_>>());
        Ok(Evaluation {
            name: kind.name.to_owned(),
            title: kind.title.to_owned(),
            episode: model.info.episode,
            tasks: per_task.len(),
            fingerprint: fingerprint_of_list(fingerprints.iter().map(String::as_str)),
            hierarchy,
            lambda,
            interval: INTERVAL.to_owned(),
            base: column(|result| result.base),
            method: column(|result| result.method),
            mixed: column(|result| result.mixed),
            gain: column(|result| result.method - result.base),
            calibration_error,
            against: None,
            per_task,
        })
    }
}

/// Expected calibration error in percent: how far the probability of the likeliest answer is from the share of right answers,
/// over fifteen bins of that probability.
fn calibration_error(tasks: &[Task], probabilities: &[Vec<f64>]) -> f64 {
    const BINS: usize = 15;
    let mut bins = [(0.0, 0.0, 0.0); BINS];
    for (task, of_task) in tasks.iter().zip(probabilities) {
        let labels =
            task.query.iter().enumerate().flat_map(|(answer, of)| std::iter::repeat_n(answer, of.len()));
        for (row, label) in of_task.chunks_exact(task.query.len()).zip(labels) {
            let mut best = 0;
            for (answer, probability) in row.iter().enumerate() {
                if *probability > row[best] {
                    best = answer;
                }
            }
            let bin = &mut bins[((row[best] * BINS as f64) as usize).min(BINS - 1)];
            bin.0 += 1.0;
            bin.1 += row[best];
            bin.2 += f64::from(u8::from(best == label));
        }
    }
    let total: f64 = bins.iter().map(|bin| bin.0).sum();
    let gap: f64 = bins.iter().map(|(_, claimed, right): &(f64, f64, f64)| (claimed - right).abs()).sum();
    100.0 * gap / f64::max(total, 1.0)
}

impl Evaluation {
    /// What the method is used with, task by task: prototypes mixed by lambda.
    pub fn accuracies(&self) -> Vec<f64> {
        self.per_task.iter().map(|task| task.mixed).collect()
    }

    /// Compares with another run on the same tasks, by the table that [`csv`](Self::csv) made of it.
    pub fn compare(&mut self, file: &Path, tasks: &TestTasks) -> Result<()> {
        let theirs = read_accuracies(file)?;
        let differ = |reason: String| Error::input(file.display(), reason);
        if theirs.len() != tasks.fingerprints.len() {
            return Err(differ(format!(
                "it holds {} tasks, but {} are evaluated here; evaluate both runs on the same tasks",
                theirs.len(),
                tasks.fingerprints.len()
            )));
        }
        for (number, (line, fingerprint)) in theirs.iter().zip(&tasks.fingerprints).enumerate() {
            let Some(other) = &line.fingerprint else {
                return Err(differ(
                    "it does not say which tasks it holds; write it anew with this version".into(),
                ));
            };
            if other != fingerprint {
                return Err(differ(format!(
                    "its task {number} is not the one that is evaluated here; evaluate both runs on the same tasks (the same \
                     benchmark, split, sampling, way, shot, queries and seed, or the same file of tasks)"
                )));
            }
        }
        let theirs: Vec<f64> = theirs.iter().map(|line| line.accuracy).collect();
        self.against = Some(Estimate::of_difference(&self.accuracies(), &theirs));
        Ok(())
    }

    /// The accuracies of every task as CSV.
    pub fn csv(&self, tasks: &TestTasks) -> String {
        let mut text = format!("task,{FINGERPRINT},base,method,{ACCURACY}\n");
        for (number, (result, fingerprint)) in self.per_task.iter().zip(&tasks.fingerprints).enumerate() {
            let TaskResult { base, method, mixed } = result;
            // invariant: writing to a string does not fail.
            writeln!(text, "{number},{fingerprint},{base:.4},{method:.4},{mixed:.4}").unwrap();
        }
        text
    }
}

const FINGERPRINT: &str = "fingerprint";
/// The column of what the method is used with.
const ACCURACY: &str = "mixed";

/// A line of a table of accuracies.
pub(crate) struct AccuracyLine {
    /// Which task it is; files of the first version do not say.
    fingerprint: Option<String>,
    /// What the method is used with.
    pub(crate) accuracy: f64,
}

/// Reads a table of accuracies.
pub(crate) fn read_accuracies(file: &Path) -> Result<Vec<AccuracyLine>> {
    let text = std::fs::read_to_string(file).map_err(|source| Error::Io {
        action: "read",
        path: file.to_owned(),
        source,
    })?;
    let place =
        |name: &str| text.lines().next().unwrap_or_default().split(',').position(|title| title == name);
    let (fingerprint, accuracy) = (place(FINGERPRINT), place(ACCURACY));
    text.lines()
        .enumerate()
        .skip(1)
        .map(|(number, line)| {
            let cells: Vec<&str> = line.split(',').collect();
            let cell = |place: Option<usize>| place.and_then(|place| cells.get(place).copied());
            let accuracy: Option<f64> = cell(accuracy).and_then(|cell| cell.parse().ok());
            let accuracy = accuracy.filter(|accuracy| accuracy.is_finite()).ok_or_else(|| {
                let what = format!("{}, line {}", file.display(), number + 1);
                Error::input(what, "no accuracy; give a table that an evaluation wrote")
            })?;
            Ok(AccuracyLine { fingerprint: cell(fingerprint).map(str::to_owned), accuracy })
        })
        .collect()
}
