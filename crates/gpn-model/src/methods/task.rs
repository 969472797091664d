//! Tasks as methods see them: embeddings of labelled samples and queries.

use super::{Method, Refined, refined};
use crate::distance::squared_distance;
use crate::memory::{Memory, class_means};
use crate::neighbourhood::Neighbourhood;
use crate::prior::KnownClasses;

/// The shape of a few-shot step.
#[derive(Clone, Copy, Debug)]
pub struct EpisodeShape {
    /// Target classes.
    pub way: usize,
    /// Labelled samples of each.
    pub shot: usize,
    /// Labelled samples of the answer "other"; 0 without that answer.
    pub rest: usize,
    /// Weight of the prototype before propagation.
    pub lambda: f32,
}

/// A few-shot task to learn from, as embeddings.
#[derive(Clone, Copy)]
pub struct Episode<'a> {
    /// Labelled samples, class by class, then those of "other": `[way * shot + rest, dim]`.
    pub support: &'a [f32],
    /// Queries, answer by answer, as many for each: `[queries, dim]`.
    pub queries: &'a [f32],
    /// The answer of each query.
    pub labels: &'a [usize],
    /// Classes and samples.
    pub shape: EpisodeShape,
    /// Length of an embedding.
    pub dim: usize,
    /// The classes around the targets, for methods that use the graph.
    pub neighbourhood: Option<&'a Neighbourhood>,
    /// Prototypes of the training classes.
    pub memory: &'a Memory,
}

impl Episode<'_> {
    /// Number of answers: the classes, and "other" where it is one.
    pub fn answers(&self) -> usize {
        self.shape.way + usize::from(self.shape.rest > 0)
    }

    /// The answer of each labelled sample.
    pub fn support_labels(&self) -> Vec<usize> {
        let EpisodeShape { way, shot, rest, .. } = self.shape;
        let of_classes = (0..way).flat_map(|answer| std::iter::repeat_n(answer, shot));
        of_classes.chain(std::iter::repeat_n(way, rest)).collect()
    }
}

/// What came of learning from an episode.
#[derive(Clone, Debug)]
pub struct EpisodePass {
    /// Mean loss over the queries.
    pub loss: f32,
    /// Share of the queries looked at that were answered correctly.
    pub accuracy: f32,
    /// Gradient of the labelled samples' embeddings.
    pub grad_support: Vec<f32>,
    /// Gradient of the queries' embeddings.
    pub grad_queries: Vec<f32>,
}

/// A few-shot task to answer, as embeddings.
pub struct TestTask<'a> {
    /// Labelled samples, answer by answer, `[samples, dim]`.
    pub support: Vec<f32>,
    /// Number of labelled samples of each answer.
    pub shots: Vec<usize>,
    /// Queries, `[queries, dim]`.
    pub queries: Vec<f32>,
    /// Length of an embedding.
    pub dim: usize,
    /// Answers that are classes; one more, "other", has no place in the graph.
    pub way: usize,
    /// The classes around the targets, for methods that use the graph.
    pub neighbourhood: Option<Neighbourhood>,
    /// Prototypes of the training classes.
    pub memory: &'a Memory,
    /// The classes of the task as nodes of the graph that `known` is about.
    pub classes: Vec<u32>,
    /// The training classes on that graph, where the place of the task's classes is known and the method asks for it.
    pub known: Option<&'a KnownClasses<'a>>,
    /// Embeddings of the classes' texts, where there are any.
    pub texts: Vec<Option<Vec<f32>>>,
}

impl TestTask<'_> {
    /// Squared distances of each query to each of `prototypes`, `[queries, prototypes]`.
    pub fn distances(&self, prototypes: &[f32]) -> Vec<f32> {
        let to_all = |query| {
            prototypes.chunks_exact(self.dim).map(move |prototype| squared_distance(query, prototype))
        };
        self.queries.chunks_exact(self.dim).flat_map(to_all).collect()
    }

    /// The mean embedding of each answer's labelled samples, `[answers, dim]`.
    pub fn prototypes(&self) -> Vec<f32> {
        let mut rest = &self.support[..];
        let mut prototypes = Vec::with_capacity(self.shots.len() * self.dim);
        for &shot in &self.shots {
            let (own, others) = rest.split_at(shot * self.dim);
            prototypes.extend(class_means(own, shot, self.dim));
            rest = others;
        }
        prototypes
    }

    /// The answer of each labelled sample.
    pub fn support_labels(&self) -> Vec<usize> {
        let of = |(answer, &shot): (usize, &usize)| std::iter::repeat_n(answer, shot);
        self.shots.iter().enumerate().flat_map(of).collect()
    }

    /// The answer with the nearest prototype for each query; of equally near ones the first.
    pub fn nearest(&self, prototypes: &[f32]) -> Vec<usize> {
        let nearest = |query: &[f32]| {
            let mut best = (0, f32::INFINITY);
            for (answer, prototype) in prototypes.chunks_exact(self.dim).enumerate() {
                let distance = squared_distance(query, prototype);
                if distance < best.1 {
                    best = (answer, distance);
                }
            }
            best.0
        };
        self.queries.chunks_exact(self.dim).map(nearest).collect()
    }

    /// The prototypes of all answers after the method has worked on them, and who shaped whom.
    pub fn refined(&self, method: &dyn Method, first: &[f32]) -> Refined {
        refined(method, self.neighbourhood.as_ref(), self.memory, first, self.way)
    }
}
