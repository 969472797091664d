//! How good a fitted prior is: tasks of hidden training classes, of samples that the network was not trained on where there are
//! any.

use gpn_taxonomy::Node;
use rayon::prelude::*;

use super::field::KnownClasses;
use super::fit::GraphPrior;
use super::hiding::hide;
use super::model::{PriorModel, TrainingSamples};
use super::posterior::Posterior;
use crate::error::Result;

/// Tasks that decide.
const TASKS: u64 = 400;
/// Classes of a task.
const WAY: usize = 5;
/// Labelled samples of each class, in turn.
const SHOTS: [usize; 2] = [1, 5];
/// Queries of each class, at most.
const QUERIES: usize = 5;
/// Streams of tasks begin here, away from those of the fit.
const FIRST_ROUND: u64 = 1 << 20;

/// One query: the distance to each answer, and the right answer.
type Answered = (Vec<f32>, usize);

/// What came of the tasks.
pub(super) struct Judged {
    answered: Vec<Answered>,
    /// Share of queries answered correctly.
    accuracy: f64,
}

impl Judged {
    /// Whether more queries were answered correctly; of equals the first stays.
    pub(super) fn is_better_than(&self, other: &Self) -> bool {
        self.accuracy > other.accuracy + 1e-9
    }

    /// What squared distances are multiplied with for the least log loss.
    pub(super) fn temperature(&self) -> f32 {
        if self.answered.is_empty() { 1.0 } else { best_temperature(&self.answered) }
    }
}

/// A task of hidden training classes.
struct Task {
    /// Other classes that count as not known, and the classes of the task.
    hidden: Vec<Node>,
    classes: Vec<TaskClass>,
}

struct TaskClass {
    class: Node,
    /// Rows of the class that are labelled, and those that are asked for.
    support: Vec<Node>,
    queries: Vec<Node>,
}

/// Tasks of hidden training classes, the same ones for every metric and scale.
pub(super) struct Tasks<'a> {
    training: &'a TrainingSamples<'a>,
    samples: &'a [Vec<f32>],
    drawn: Vec<Task>,
    /// The rows of each class that occur in tasks, ascending.
    used: Vec<Vec<Node>>,
}

impl<'a> Tasks<'a> {
    /// Draws the tasks. There are none where fewer than two classes have samples enough.
    pub(super) fn draw(training: &'a TrainingSamples<'a>) -> Self {
        let least = (SHOTS[0] + 1) * training.dim;
        let from_held_out = training.held_out.iter().filter(|rows| rows.len() >= least).count() >= 2 * WAY;
        let samples = if from_held_out { training.held_out } else { training.rows };
        let usable: Vec<Node> =
            (0..samples.len() as Node).filter(|&class| samples[class as usize].len() >= least).collect();
        let count = if usable.len() < 2 { 0 } else { TASKS };
        let drawn: Vec<Task> =
            (0..count).into_par_iter().map(|task| draw_task(training, samples, &usable, task)).collect();
        let mut used = vec![Vec::new(); samples.len()];
        for class in drawn.iter().flat_map(|task| &task.classes) {
            used[class.class as usize].extend(class.support.iter().chain(&class.queries));
        }
        for rows in &mut used {
            rows.sort_unstable();
            rows.dedup();
        }
        Self { training, samples, drawn, used }
    }

    /// Answers the tasks with a model at each of some scales of its prior.
    pub(super) fn judge(&self, model: &PriorModel, scales: &[f64]) -> Result<Vec<Judged>> {
        let dim = self.training.dim;
        let embed = |(rows, used): (&Vec<f32>, &Vec<Node>)| {
            let chosen: Vec<f32> =
                used.iter().flat_map(|&row| &rows[row as usize * dim..][..dim]).copied().collect();
            model.metric().apply(&chosen)
        };
        let embedded: Vec<Vec<f32>> =
            self.samples.par_iter().zip(&self.used).map(embed).collect::<Result<_>>()?;
        let priors: Vec<GraphPrior> =
            scales.iter().map(|&scale| model.prior().clone().with_scale(scale)).collect::<Result<_>>()?;
        let answered: Vec<Vec<Vec<Answered>>> = self
            .drawn
            .par_iter()
            .map(|task| self.answer(model, &priors, task, &embedded))
            .collect::<Result<_>>()?;
        let mut judged: Vec<Judged> =
            scales.iter().map(|_| Judged { answered: Vec::new(), accuracy: 0.0 }).collect();
        for task in answered {
            judged.iter_mut().zip(task).for_each(|(judged, answers)| judged.answered.extend(answers));
        }
        for judged in &mut judged {
            let is_right = |(distances, label): &&Answered| nearest(distances) == *label;
            let right = judged.answered.iter().filter(is_right).count();
            judged.accuracy = right as f64 / judged.answered.len().max(1) as f64;
        }
        Ok(judged)
    }

    /// The answers of one task, by the scale of the prior.
    fn answer(
        &self,
        model: &PriorModel,
        priors: &[GraphPrior],
        task: &Task,
        embedded: &[Vec<f32>],
    ) -> Result<Vec<Vec<Answered>>> {
        let dim = self.training.dim;
        let known = KnownClasses::without(self.training.graph, model.statistics(), &task.hidden);
        let row = |class: Node, row: Node| {
            // invariant: the rows of all tasks are among those used.
            let place = self.used[class as usize].binary_search(&row).unwrap();
            &embedded[class as usize][place * dim..][..dim]
        };
        let support_of = |class: &TaskClass| -> Vec<f32> {
            class.support.iter().flat_map(|&at| row(class.class, at)).copied().collect()
        };
        let support: Vec<Vec<f32>> = task.classes.iter().map(support_of).collect();
        let support: Vec<&[f32]> = support.iter().map(Vec::as_slice).collect();
        let classes: Vec<Node> = task.classes.iter().map(|class| class.class).collect();
        // As test tasks are answered: the classes of a task go together where they can.
        let joint = model.prior().of_all(&known, &classes);
        let posteriors: Result<Vec<Vec<Posterior>>> = if let Some(joint) = joint {
            priors.iter().map(|prior| prior.posteriors(&joint, &support)).collect()
        } else {
            let alone = |prior: &GraphPrior| {
                let of =
                    |(&class, samples): (&Node, &&[f32])| prior.posterior(&prior.of(&known, class), samples);
                classes.iter().zip(&support).map(of).collect::<Result<_>>()
            };
            priors.iter().map(alone).collect()
        };
        let posteriors = posteriors?;
        let mut answered = vec![Vec::new(); priors.len()];
        for (answer, class) in task.classes.iter().enumerate() {
            for query in class.queries.iter().map(|&at| row(class.class, at)) {
                for (posteriors, answered) in posteriors.iter().zip(&mut answered) {
                    let distances = posteriors.iter().map(|posterior| model.distance(query, posterior));
                    answered.push((distances.collect(), answer));
                }
            }
        }
        Ok(answered)
    }
}

fn draw_task(training: &TrainingSamples<'_>, samples: &[Vec<f32>], usable: &[Node], task: u64) -> Task {
    let draw = |from: &[Node], count: usize, stream: u64| {
        hide(from, count, training.seed, FIRST_ROUND + 3 * task + stream)
    };
    let classes = draw(usable, WAY, 0);
    // The task's classes and others are hidden, as test classes are.
    let hidden = draw(usable, usable.len() / 3, 1).into_iter().chain(classes.iter().copied()).collect();
    let shots = SHOTS[task as usize % SHOTS.len()];
    let class = |&class: &Node| {
        let count = samples[class as usize].len() / training.dim;
        let shots = shots.min(count - 1);
        let mut order = draw(&(0..count as Node).collect::<Vec<_>>(), shots + QUERIES, 2);
        let queries = order.split_off(shots);
        TaskClass { class, support: order, queries }
    };
    Task { hidden, classes: classes.iter().map(class).collect() }
}

fn nearest(distances: &[f32]) -> usize {
    let mut best = 0;
    for (answer, distance) in distances.iter().enumerate() {
        if *distance < distances[best] {
            best = answer;
        }
    }
    best
}

/// The temperature of the least log loss, by golden section over its logarithm: the loss is convex in the temperature.
fn best_temperature(answered: &[Answered]) -> f32 {
    let loss = |log: f64| -> f64 {
        let scale = libm::exp(log);
        answered.iter().map(|(distances, label)| log_loss(distances, *label, scale)).sum()
    };
    let golden = 0.618_033_988_749_895;
    let (mut low, mut high) = (-12.0_f64, 8.0_f64);
    for _ in 0..40 {
        let (left, right) = (high - golden * (high - low), low + golden * (high - low));
        if loss(left) < loss(right) { high = right } else { low = left }
    }
    libm::exp(f64::midpoint(low, high)) as f32
}

fn log_loss(distances: &[f32], label: usize, scale: f64) -> f64 {
    let least = f64::from(distances[nearest(distances)]);
    let total: f64 = distances.iter().map(|&distance| libm::exp(scale * (least - f64::from(distance)))).sum();
    libm::log(total) - scale * (least - f64::from(distances[label]))
}

#[cfg(test)]
mod tests {
    use super::super::model::{MetricName, PriorConfig};
    use super::*;
    use crate::prior::sample::{graph_of, noise};

    /// Groups of classes in which one direction tells nothing and scatters more than all others.
    fn rows(dim: usize, graph: &gpn_taxonomy::Taxonomy) -> Vec<Vec<f32>> {
        let mut values = noise(11);
        let class = |_| -> Vec<f32> {
            let mean: Vec<f32> = (0..dim).map(|_| values()).collect();
            let row = |_| -> Vec<f32> {
                let width = |d: usize| if d == 0 { 30.0 } else { 0.5 };
                mean.iter().enumerate().map(|(d, mean)| mean + width(d) * values()).collect()
            };
            (0..8).flat_map(row).collect()
        };
        graph.nodes().map(class).collect()
    }

    fn with_training<T>(run: impl Fn(&TrainingSamples<'_>) -> T) -> T {
        let edges: Vec<String> = (0..24).map(|class| format!("g{}>l{class}", class / 6)).collect();
        let graph = graph_of(&edges.join(" "));
        let rows = rows(6, &graph);
        run(&TrainingSamples { dim: 6, rows: &rows, held_out: &[], graph: &graph, texts: None, seed: 3 })
    }

    #[test]
    fn scales_judged_together_are_those_judged_alone() {
        with_training(|training| {
            let config = PriorConfig { metric: MetricName::Whitened, scale: 1.0, ..PriorConfig::default() };
            let (tasks, model) = (Tasks::draw(training), PriorModel::fit(training, &config).unwrap());
            let together = tasks.judge(&model, &[0.5, 2.0]).unwrap();
            for (judged, scale) in together.iter().zip([0.5, 2.0]) {
                let alone = &tasks.judge(&model, &[scale]).unwrap()[0];
                assert_eq!(judged.answered, alone.answered);
            }
        });
    }

    #[test]
    fn no_metric_beats_the_chosen_one_with_any_number_of_threads() {
        let fitted = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                with_training(|training| PriorModel::fit(training, &PriorConfig::default()).unwrap())
            })
        };
        let model = fitted(1);
        assert_eq!(model, fitted(3));
        with_training(|training| {
            let judged = |model: &PriorModel, scale| Tasks::draw(training).judge(model, &[scale]).unwrap();
            let chosen = judged(&model, model.prior().scale());
            for metric in [MetricName::Raw, MetricName::Unit, MetricName::UnitWhitened] {
                let other =
                    PriorModel::fit(training, &PriorConfig { metric, ..PriorConfig::default() }).unwrap();
                assert!(!judged(&other, other.prior().scale())[0].is_better_than(&chosen[0]), "{metric:?}");
            }
        });
    }

    #[test]
    fn without_samples_to_ask_for_nothing_is_judged() {
        with_training(|training| {
            let one: Vec<Vec<f32>> = training.rows.iter().map(|rows| rows[..training.dim].to_vec()).collect();
            let few = TrainingSamples { rows: &one, ..*training };
            let model = PriorModel::fit(training, &PriorConfig::default()).unwrap();
            let judged = &Tasks::draw(&few).judge(&model, &[1.0]).unwrap()[0];
            assert!(judged.answered.is_empty() && (judged.temperature() - 1.0).abs() < 1e-9);
        });
    }
}
