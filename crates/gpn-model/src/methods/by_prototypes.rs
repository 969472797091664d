//! The loss that methods with prototypes have in common: queries against prototypes, worked on or not.

use super::{Episode, EpisodePass, MethodSettings};
use crate::distance::{DistancePass, distance_loss};
use crate::error::Result;
use crate::memory::{accuracy, class_means, mix};
use crate::neighbourhood::Neighbourhood;
use crate::propagation::PropagationGraph;
use crate::propagator::Propagator;

/// How the loss is taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct ByPrototypes {
    /// Whether it moves the embeddings of labelled samples too.
    through_prototypes: bool,
    /// What squared distances are multiplied with before the softmax.
    distance_scale: f32,
}

impl From<&MethodSettings> for ByPrototypes {
    fn from(settings: &MethodSettings) -> Self {
        let MethodSettings { through_prototypes, distance_scale, .. } = *settings;
        Self { through_prototypes, distance_scale }
    }
}

impl ByPrototypes {
    /// Loss and gradients of a Prototypical Network.
    pub(super) fn learn(self, episode: &Episode<'_>) -> Result<EpisodePass> {
        let first = prototypes(episode);
        let pass = self.loss(episode, &first)?;
        Ok(self.spread(episode, &pass.grad_prototypes, &pass))
    }

    /// The same with prototypes of the classes propagated over `graph(nodes)`, where there is a neighbourhood.
    pub(super) fn learn_propagated(
        self,
        episode: &Episode<'_>,
        propagator: &mut Propagator,
        graph: impl FnOnce(&Neighbourhood, &[f32]) -> PropagationGraph,
    ) -> Result<EpisodePass> {
        let Some(neighbourhood) = episode.neighbourhood else { return self.learn(episode) };
        let first = prototypes(episode);
        let (lambda, targets) = (episode.shape.lambda, episode.shape.way * episode.dim);
        let nodes = episode.memory.with_targets(neighbourhood, &first[..targets]);
        let graph = graph(neighbourhood, &nodes);
        let tape = propagator.forward(&graph, &nodes);
        let mut mixed = first.clone();
        mixed[..targets].copy_from_slice(&mix(lambda, &first[..targets], tape.result(&graph)));

        let pass = self.loss(episode, &mixed)?;
        let mut grads = pass.grad_prototypes.clone();
        let last_grads: Vec<f32> = grads[..targets].iter().map(|grad| (1.0 - lambda) * grad).collect();
        let through = propagator.backward(&graph, &tape, &last_grads);
        for (grad, through) in grads[..targets].iter_mut().zip(through) {
            *grad = lambda * *grad + through;
        }
        Ok(self.spread(episode, &grads, &pass))
    }

    /// Cross entropy of scaled squared distances: both ends of a distance are stretched by the root of the scale.
    fn loss(self, episode: &Episode<'_>, prototypes: &[f32]) -> Result<DistancePass> {
        let root = self.distance_scale.sqrt();
        let [queries, prototypes] = [episode.queries, prototypes]
            .map(|values| values.iter().map(|value| root * value).collect::<Vec<f32>>());
        let mut pass = distance_loss(&queries, &prototypes, episode.labels, episode.dim)?;
        for grad in pass.grad_queries.iter_mut().chain(&mut pass.grad_prototypes) {
            *grad *= root;
        }
        Ok(pass)
    }

    /// The gradients of prototypes, spread over the samples that they are the means of.
    fn spread(self, episode: &Episode<'_>, prototype_grads: &[f32], pass: &DistancePass) -> EpisodePass {
        let (dim, shape) = (episode.dim, episode.shape);
        let mut grad_support = vec![0.0; episode.support.len()];
        if self.through_prototypes {
            for (sample, grad) in grad_support.chunks_exact_mut(dim).enumerate() {
                let (answer, count) = if sample < shape.way * shape.shot {
                    (sample / shape.shot, shape.shot)
                } else {
                    (shape.way, shape.rest)
                };
                let of_answer = &prototype_grads[answer * dim..][..dim];
                grad.iter_mut().zip(of_answer).for_each(|(grad, of)| *grad = of / count as f32);
            }
        }
        EpisodePass {
            loss: pass.loss,
            accuracy: accuracy(&pass.logits, episode.labels),
            grad_support,
            grad_queries: pass.grad_queries.clone(),
        }
    }
}

/// The mean of each answer's labelled samples, `[answers, dim]`.
fn prototypes(episode: &Episode<'_>) -> Vec<f32> {
    let (shape, dim) = (episode.shape, episode.dim);
    let (of_classes, of_rest) = episode.support.split_at(shape.way * shape.shot * dim);
    let mut first = class_means(of_classes, shape.shot, dim);
    first.extend(class_means(of_rest, shape.rest.max(1), dim));
    first
}
