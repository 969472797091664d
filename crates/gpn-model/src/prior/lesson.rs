//! Learning through the posterior: the gradient of embeddings for tasks of training classes, answered as a fitted prior answers tasks
//! of new ones.

use gpn_taxonomy::{Node, Taxonomy};
use rayon::prelude::*;

use super::field::KnownClasses;
use super::hiding::hide;
use super::model::PriorModel;
use super::posterior::{ClassPrior, Posterior};
use crate::distance::{DistancePass, distance_loss};
use crate::error::Result;

/// Parts that the training classes are divided into: the classes of a part are hidden together.
const PARTS: usize = 3;
/// The stream that divides them, away from those of fit and choice.
const ROUND: u64 = 1 << 24;

/// The prior of each training class, as if it and a third of the others had no samples.
pub struct Lesson {
    priors: Vec<ClassPrior>,
}

impl Lesson {
    /// Solves for all training classes of a fitted model; `graph` is the one it was fitted on.
    pub fn new(model: &PriorModel, graph: &Taxonomy, seed: u64) -> Self {
        let classes: Vec<Node> = (0..model.statistics().len() as Node).collect();
        let mut priors = vec![model.prior().of_unknown_place(); classes.len()];
        let order = hide(&classes, classes.len(), seed, ROUND);
        for part in order.chunks(classes.len().div_ceil(PARTS).max(1)) {
            let known = KnownClasses::without(graph, model.statistics(), part);
            let solved: Vec<ClassPrior> =
                part.par_iter().map(|&class| model.prior().of(&known, class)).collect();
            for (&class, prior) in part.iter().zip(solved) {
                priors[class as usize] = prior;
            }
        }
        Self { priors }
    }

    /// Loss and gradients of a task whose first answers are `classes`; one more, "other", has no place in the graph. `support` are the
    /// embeddings of each answer's samples, `queries` those of the queries, whose answers are `labels`.
    pub fn learn(
        &self,
        model: &PriorModel,
        classes: &[Node],
        support: &[&[f32]],
        queries: &[f32],
        labels: &[usize],
    ) -> Result<LessonPass> {
        let (metric, dim) = (model.metric(), model.metric().dim());
        let elsewhere = model.prior().of_unknown_place();
        let prior =
            |answer: usize| classes.get(answer).map_or(&elsewhere, |&class| &self.priors[class as usize]);
        let posteriors: Vec<Posterior> = support
            .iter()
            .enumerate()
            .map(|(answer, samples)| model.posterior(prior(answer), samples))
            .collect::<Result<_>>()?;
        // Both ends of a distance are stretched by the root of its scale.
        let root = model.temperature().sqrt();
        let stretched = |values: &[f32]| values.iter().map(|value| root * value).collect::<Vec<f32>>();
        let prototypes: Vec<f32> = posteriors.iter().flat_map(|of| stretched(&of.prototype)).collect();
        let DistancePass { loss, logits, mut grad_queries, mut grad_prototypes } =
            distance_loss(&stretched(&metric.apply(queries)?), &prototypes, labels, dim)?;
        grad_queries.iter_mut().chain(&mut grad_prototypes).for_each(|grad| *grad *= root);
        let mut grad_support = Vec::new();
        for ((posterior, samples), grad) in
            posteriors.iter().zip(support).zip(grad_prototypes.chunks_exact(dim))
        {
            let of_sample = posterior.backward(grad)?;
            grad_support.extend(metric.backward(samples, &of_sample.repeat(posterior.shots))?);
        }
        Ok(LessonPass { loss, logits, grad_support, grad_queries: metric.backward(queries, &grad_queries)? })
    }
}

/// What came of a task.
pub struct LessonPass {
    /// Mean loss over the queries.
    pub loss: f32,
    /// Negative scaled distances, `[queries, answers]`.
    pub logits: Vec<f32>,
    /// Gradient of the labelled samples' embeddings.
    pub grad_support: Vec<f32>,
    /// Gradient of the queries' embeddings.
    pub grad_queries: Vec<f32>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prior::sample::{graph_of, noise};
    use crate::prior::{MetricName, PriorConfig, TrainingSamples};

    const DIM: usize = 3;

    /// Eight classes below two groups, ten samples each, and their rows.
    fn fitted(metric: MetricName) -> (PriorModel, Taxonomy, Vec<Vec<f32>>) {
        let graph = graph_of("a>b a>c a>d a>e f>g f>h f>i f>j a>f");
        let mut values = noise(4);
        let mut row = |class: usize| -> Vec<f32> {
            let group = if class < 5 { 1.0 } else { -1.0 };
            (0..DIM).map(|d| group * (d as f32 + 1.0) + 0.3 * class as f32 + values()).collect()
        };
        let rows: Vec<Vec<f32>> =
            (0..graph.len()).map(|class| (0..10).flat_map(|_| row(class)).collect()).collect();
        let training =
            TrainingSamples { dim: DIM, rows: &rows, held_out: &[], graph: &graph, texts: None, seed: 1 };
        let config = PriorConfig { metric, ..PriorConfig::default() };
        let model = PriorModel::fit(&training, &config).unwrap();
        (model, graph, rows)
    }

    #[test]
    fn gradients_are_those_of_finite_differences() {
        for metric in [MetricName::Raw, MetricName::UnitWhitened, MetricName::WhitenedCosine] {
            let (model, graph, rows) = fitted(metric);
            let lesson = Lesson::new(&model, &graph, 1);
            let classes = [1, 6];
            // Two samples of one class, one of the other, and three of "other".
            let samples = [&rows[1][..2 * DIM], &rows[6][..DIM], &rows[3][..3 * DIM]].concat();
            let queries = [&rows[1][6 * DIM..7 * DIM], &rows[6][6 * DIM..8 * DIM]].concat();
            let run = |samples: &[f32], queries: &[f32]| {
                let support = [&samples[..2 * DIM], &samples[2 * DIM..3 * DIM], &samples[3 * DIM..]];
                lesson.learn(&model, &classes, &support, queries, &[0, 1, 1]).unwrap()
            };
            let pass = run(&samples, &queries);
            assert!(pass.grad_support.iter().chain(&pass.grad_queries).any(|grad| grad.abs() > 1e-2));
            let differences = |values: &[f32], loss: &dyn Fn(&[f32]) -> f32| -> Vec<f32> {
                let at = |i: usize, by: f32| {
                    let mut moved = values.to_vec();
                    moved[i] += by;
                    loss(&moved)
                };
                (0..values.len()).map(|i| (at(i, 0.01) - at(i, -0.01)) / 0.02).collect()
            };
            let of_samples = differences(&samples, &|samples| run(samples, &queries).loss);
            let of_queries = differences(&queries, &|queries| run(&samples, queries).loss);
            for (got, expected) in [(&pass.grad_support, of_samples), (&pass.grad_queries, of_queries)] {
                assert_eq!(got.len(), expected.len());
                let all = got.iter().zip(&expected);
                assert!(all.clone().all(|(got, expected)| (got - expected).abs() < 2e-3), "{metric:?}");
            }
        }
    }

    #[test]
    fn what_a_class_is_expected_to_be_does_not_know_its_own_samples() {
        let (model, graph, _) = fitted(MetricName::Raw);
        let lesson = Lesson::new(&model, &graph, 1);
        let all_known = model.known(&graph);
        for class in graph.nodes() {
            let (hidden, known) = (&lesson.priors[class as usize], model.prior().of(&all_known, class));
            // Fewer relatives never make a prior surer; own samples would.
            assert!(hidden.variance[0] >= known.variance[0] - 1e-12, "{class}");
        }
        assert!(graph.nodes().any(|class| {
            lesson.priors[class as usize].variance[0] > 1.01 * model.prior().of(&all_known, class).variance[0]
        }));
    }
}
