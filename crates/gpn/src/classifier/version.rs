//! One version of what a model has been taught.

use std::sync::{Arc, OnceLock};

use gpn_model::PrototypeIndex;
use gpn_taxonomy::Node;
use gpn_train::{Changes, ModelInfo, Placement, TaughtClass, TrainedModel};
use serde::{Deserialize, Serialize};

use super::candidates::{Among, Candidates, Target};
use super::class_graph::{ClassGraph, ClassKind};
use crate::error::{Error, Result};

/// A class as [`Classifier::classes`] lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassEntry {
    /// Its id.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// What the model has of it.
    pub kind: ClassKind,
    /// Samples it was trained with or taught.
    pub samples: usize,
    /// Ids of its parents.
    pub parents: Vec<String>,
    /// Ids of the training classes it is linked to, where its place is not known.
    pub nearest: Vec<String>,
}

/// The taught classes, sorted by id, and the class graph with them.
pub(super) struct Version {
    pub(super) taught: Vec<TaughtClass>,
    /// What people changed about the other classes.
    pub(super) changes: Changes,
    pub(super) graph: Arc<ClassGraph>,
    /// All classes to choose from, made when they are first asked for.
    all: OnceLock<Arc<Candidates>>,
}

impl Version {
    pub(super) fn new(info: &ModelInfo, taught: Vec<TaughtClass>, changes: Changes) -> Result<Self> {
        let graph = Arc::new(ClassGraph::new(info, &taught, &changes)?);
        Ok(Self { taught, changes, graph, all: OnceLock::new() })
    }

    /// The same as [`candidates`](Self::candidates); those among all classes are made once.
    pub(super) fn shared_candidates(
        &self,
        model: &TrainedModel,
        among: &Among,
        lambda: f32,
    ) -> Result<Arc<Candidates>> {
        let is_kept = *among == Among::All && lambda.to_bits() == model.info.lambda().to_bits();
        if !is_kept {
            return Ok(Arc::new(self.candidates(model, among, lambda)?));
        }
        if let Some(all) = self.all.get() {
            return Ok(Arc::clone(all));
        }
        let made = Arc::new(self.candidates(model, among, lambda)?);
        Ok(Arc::clone(self.all.get_or_init(|| made)))
    }

    /// The classes to choose from with their propagated prototypes, to be used for any number of samples. `lambda` is the
    /// weight of the prototypes before propagation.
    pub(super) fn candidates(&self, model: &TrainedModel, among: &Among, lambda: f32) -> Result<Candidates> {
        let classes = match among {
            Among::All => self.graph.answers(),
            Among::Taught => {
                let taught = |&class: &Node| self.graph.kind(class) == ClassKind::Taught;
                self.graph.answers().into_iter().filter(taught).collect()
            }
            Among::Listed(names) => {
                let mut listed = Vec::with_capacity(names.len());
                for name in names {
                    let class = self.graph.find_answer(name)?;
                    if !listed.contains(&class) {
                        listed.push(class);
                    }
                }
                listed
            }
            Among::Below(name) => {
                let class = self.graph.find(name)?;
                let below = self.graph.answers_below(class);
                if below.is_empty() {
                    let reason = "the model has no trained or taught class below it".into();
                    return Err(Error::Class { class: name.clone(), reason });
                }
                below
            }
        };
        if classes.is_empty() {
            return Err(Error::NothingToChoose);
        }
        let targets: Vec<Target> = classes.iter().map(|&class| self.target(model, class)).collect();
        Candidates::new(model, &self.graph, &targets, lambda)
    }

    /// Samples that the model was fitted with, of a class that has not been forgotten.
    pub(super) fn trained_samples(&self, model: &TrainedModel, id: &str, changes: &Changes) -> usize {
        let class = self.graph.graph.find(id).and_then(|class| model.info.classes.get(class as usize));
        class.filter(|_| !changes.forgotten.contains(id)).map_or(0, |class| class.samples)
    }

    fn target(&self, model: &TrainedModel, class: Node) -> Target {
        let taught = self.graph.taught_position(class).map(|position| &self.taught[position]);
        let trained = (self.graph.kind(class) == ClassKind::Training).then(|| {
            let samples = model.info.classes.get(class as usize).map_or(0, |class| class.samples);
            let prototype = match model.network.method.prior() {
                Some(prior) => prior.statistics().mean(class),
                None => model.memory.of(class),
            };
            (prototype, samples)
        });
        match (trained, taught) {
            (Some((prototype, samples)), None) => {
                Target { class, placed: true, prototype: prototype.to_vec(), samples, added: 0 }
            }
            // A trained class that was taught more samples: the mean of all of them.
            (Some((prototype, samples)), Some(taught)) => {
                let added = taught.samples();
                let share = added as f64 / (samples + added) as f64;
                let mean = |(&own, more): (&f32, f32)| {
                    ((1.0 - share) * f64::from(own) + share * f64::from(more)) as f32
                };
                let prototype = prototype.iter().zip(taught.prototype()).map(mean).collect();
                Target { class, placed: true, prototype, samples: samples + added, added }
            }
            (None, None) => {
                unreachable!("invariant: a class to choose has samples")
            }
            (None, Some(taught)) => Target {
                class,
                placed: taught.place != Placement::Nearest,
                prototype: taught.prototype(),
                samples: taught.samples(),
                added: 0,
            },
        }
    }

    pub(super) fn entry(&self, model: &TrainedModel, class: Node) -> ClassEntry {
        let (info, memory) = (&model.info, &model.memory);
        let graph = &self.graph.graph;
        let ids = |classes: &[Node]| classes.iter().map(|&class| graph.id(class).to_owned()).collect();
        let taught = self.graph.taught_position(class).map(|position| &self.taught[position]);
        let unplaced = taught.filter(|taught| taught.place == Placement::Nearest);
        ClassEntry {
            id: graph.id(class).to_owned(),
            name: graph.name(class).to_owned(),
            kind: self.graph.kind(class),
            samples: {
                let is_trained = self.graph.kind(class) == ClassKind::Training;
                let own = info.classes.get(class as usize).filter(|_| is_trained);
                own.map_or(0, |class| class.samples) + taught.map_or(0, TaughtClass::samples)
            },
            parents: if unplaced.is_some() { Vec::new() } else { ids(graph.parents(class)) },
            nearest: unplaced.map_or_else(Vec::new, |taught| {
                let count = info.config.pathways.nearest;
                let prototype = taught.prototype();
                let prior = model.network.method.prior();
                let prototypes = prior.map_or(memory.prototypes(), |prior| prior.statistics().means());
                ids(&PrototypeIndex::of(prototypes, memory.dim).nearest(&prototype, count)[0])
            }),
        }
    }
}
