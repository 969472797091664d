//! Predictions: the likeliest classes of samples, and why.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Classifier;
use super::candidates::{Among, Candidates, ClassName, Judged, Ranked, Share};
use crate::error::{Error, Result};
use crate::sample::Sample;
use crate::watch::Watch;

/// The level at which answers are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// The classes to choose from, each by itself.
    #[default]
    Answers,
    /// Their ancestors at this depth, 1 being right below the root; a class that is not as deep counts as itself.
    Depth(usize),
    /// Every class at or above one to choose from; probabilities of classes add up along each way down.
    All,
}

/// What is asked of a prediction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PredictRequest {
    /// The classes to choose from. Default all.
    pub among: Among,
    /// Likeliest classes to give. Default 5.
    pub top: usize,
    /// The level at which they are given. Default the classes to choose from.
    pub level: Level,
    /// How sure the answer must be, 0 to 1: the deepest class that is as likely is given besides. Default none.
    pub confidence: Option<f64>,
    /// Whether to say what shaped the prototype of the likeliest class. Default false.
    pub explain: bool,
    /// Weight of the prototypes before propagation; by default the best on the model's validation tasks.
    pub lambda: Option<f32>,
}

impl Default for PredictRequest {
    fn default() -> Self {
        Self {
            among: Among::All,
            top: 5,
            level: Level::Answers,
            confidence: None,
            explain: false,
            lambda: None,
        }
    }
}

/// A class that a sample may belong to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Likely {
    /// Its id.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// How likely it is; over all classes to choose from this adds up to 1.
    pub probability: f64,
    /// Squared distance to its prototype; for a class above others, that of the nearest below it.
    pub distance: f32,
    /// The way to it from below the root, itself last.
    #[serde(default)]
    pub path: Vec<ClassName>,
}

/// The deepest class that is as sure as asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sure {
    /// Its id.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// How likely it is.
    pub probability: f64,
    /// The way to it from below the root, itself last; empty for the root, which says nothing.
    pub path: Vec<ClassName>,
}

/// How strange a sample is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Strange {
    /// More is stranger.
    pub score: f64,
    /// Whether it belongs to none of the classes, by a threshold that one of twenty samples of known classes passes.
    pub is_unknown: bool,
}

/// What a sample is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// The sample, as it was called.
    pub file: String,
    /// The likeliest classes, the likeliest first.
    pub classes: Vec<Likely>,
    /// The deepest class that is as sure as asked for, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sure: Option<Sure>,
    /// How strange the sample is, where the model was fitted to a catalogue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<Strange>,
    /// What shaped the prototype of the likeliest class, where that was asked for: the largest shares first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shaped_by: Option<Vec<Share>>,
}

/// A classifier with the classes to choose from, made once for any number of samples. What is taught meanwhile does not
/// change its answers.
pub struct Predictor {
    classifier: Classifier,
    candidates: Arc<Candidates>,
    request: PredictRequest,
}

impl Classifier {
    /// Prepares to predict.
    pub fn predictor(&self, request: &PredictRequest) -> Result<Predictor> {
        if let Some(confidence) = request.confidence.filter(|confidence| !(0.0..=1.0).contains(confidence)) {
            return Err(Error::input("the confidence", format!("{confidence} is not between 0 and 1")));
        }
        let lambda = request.lambda.unwrap_or_else(|| self.default_lambda());
        let candidates = self.version().shared_candidates(&self.model, &request.among, lambda)?;
        Ok(Predictor { classifier: self.fork(), candidates, request: request.clone() })
    }

    /// Predicts the classes of samples. A sample that cannot be read is an error in its place.
    pub fn predict(
        &self,
        samples: &[Sample],
        request: &PredictRequest,
        watch: &Watch<'_>,
    ) -> Result<Vec<Result<Prediction>>> {
        self.predictor(request)?.predict(samples, watch)
    }
}

impl Predictor {
    /// The classes to choose from.
    pub fn candidates(&self) -> &Candidates {
        &self.candidates
    }

    /// Predicts the classes of samples. A sample that cannot be read is an error in its place.
    pub fn predict(&self, samples: &[Sample], watch: &Watch<'_>) -> Result<Vec<Result<Prediction>>> {
        let embeddings = self.classifier.embed(samples, watch)?;
        let rows: Vec<f32> = embeddings.iter().flatten().flatten().copied().collect();
        let mut judged = self.judge(&rows)?.into_iter();
        let answer = |(sample, embedding): (&Sample, Result<Vec<f32>>)| {
            // invariant: there is an answer for each embedding.
            embedding.map(|_| self.told(&sample.name, &judged.next().unwrap()))
        };
        Ok(samples.iter().zip(embeddings).map(answer).collect())
    }

    /// The same for an embedding of the model's own backbone.
    pub fn of_embedding(&self, name: &str, embedding: &[f32]) -> Result<Prediction> {
        let mut judged = self.judge(embedding)?;
        match judged.pop().filter(|_| judged.is_empty()) {
            Some(judged) => Ok(self.told(name, &judged)),
            None => Err(Error::input(name, "it is not one embedding of the model's length")),
        }
    }

    fn judge(&self, embeddings: &[f32]) -> Result<Vec<Judged>> {
        // Classes above others add up all those below them.
        let top = if self.request.level == Level::Answers { self.request.top } else { usize::MAX };
        let top = if self.request.explain { top.max(1) } else { top };
        self.candidates.judge(embeddings, top, self.request.confidence.is_some())
    }

    fn told(&self, name: &str, judged: &Judged) -> Prediction {
        let (candidates, request) = (&self.candidates, &self.request);
        let shaped_by =
            judged.ranked.first().filter(|_| request.explain).map(|best| candidates.explain(best.class));
        let sure = request.confidence.map(|confidence| {
            let deep = candidates.deepest(&judged.cautious, confidence);
            let class = deep.class.map_or_else(|| candidates.root(), |class| candidates.named(class));
            let path = deep.class.map_or_else(Vec::new, |class| candidates.path_of(class));
            Sure { id: class.id, name: class.name, probability: deep.probability, path }
        });
        let unknown =
            judged.unknown.map(|(score, threshold)| Strange { score, is_unknown: score >= threshold });
        Prediction { file: name.to_owned(), classes: self.likely(judged), sure, unknown, shaped_by }
    }

    /// The likeliest classes at the level asked for.
    fn likely(&self, judged: &Judged) -> Vec<Likely> {
        let candidates = &self.candidates;
        let likely = |class: ClassName, probability, distance, path| Likely {
            id: class.id,
            name: class.name,
            probability,
            distance,
            path,
        };
        if self.request.level == Level::Answers {
            let of = |ranked: &Ranked| {
                let class = candidates.classes()[ranked.class].clone();
                likely(class, ranked.probability, ranked.distance, candidates.path(ranked.class))
            };
            return judged.ranked.iter().take(self.request.top).map(of).collect();
        }
        // The nearest answer below comes first, so that its distance is kept.
        let mut classes: Vec<(u32, f64, f32)> = Vec::new();
        for ranked in &judged.ranked {
            let levels = candidates.levels();
            let at = |class: u32, classes: &mut Vec<(u32, f64, f32)>| match classes
                .iter_mut()
                .find(|c| c.0 == class)
            {
                Some(found) => found.1 += ranked.probability,
                None => classes.push((class, ranked.probability, ranked.distance)),
            };
            match self.request.level {
                Level::Depth(depth) => {
                    let path = levels.path(ranked.class);
                    at(path[depth.clamp(1, path.len()) - 1], &mut classes);
                }
                _ => levels.above(ranked.class).iter().for_each(|&class| at(class, &mut classes)),
            }
        }
        classes.sort_by(|a, b| b.1.total_cmp(&a.1));
        classes.truncate(self.request.top);
        let of = |(class, probability, distance): (u32, f64, f32)| {
            likely(candidates.named(class), probability, distance, candidates.path_of(class))
        };
        classes.into_iter().map(of).collect()
    }
}
