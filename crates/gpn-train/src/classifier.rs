//! A trained model in use: it is taught classes and tells samples apart.

use std::path::{Path, PathBuf};

use gpn_model::{Device, Embedder, InputShape};
use gpn_taxonomy::Node;
use rayon::prelude::*;
use serde::Serialize;

use crate::candidates::{Among, Candidates, Target};
use crate::class_graph::{ClassGraph, ClassKind};
use crate::error::TrainError;
use crate::model_file::{ModelInfo, TrainedModel};
use crate::prototype_index::nearest_classes;
use crate::run::model_file;
use crate::sample::{Preparation, Sample};
use crate::taught::Place;

/// Samples prepared and embedded at once.
const BATCH: usize = 256;
/// Samples that a thread prepares at a time.
const PART: usize = 16;

/// Embeds prepared samples so that each comes out the same to the last bit, whatever the others are.
///
/// Backbones for images compute every image alike. Matrix products over given embeddings do not: a single row takes another
/// path than many, so they are always handed over in full batches.
fn embed_alike(embedder: &mut Embedder, mut inputs: Vec<f32>) -> Result<Vec<f32>, TrainError> {
    let len = embedder.input().len();
    let wanted = inputs.len() / len * embedder.embedding_len();
    if inputs.is_empty() {
        return Ok(Vec::new());
    }
    if matches!(embedder.input(), InputShape::Embedding { .. }) {
        inputs.resize(inputs.len().next_multiple_of(BATCH * len), 0.0);
    }
    let mut embeddings = embedder.embed(&inputs)?;
    embeddings.truncate(wanted);
    Ok(embeddings)
}

/// A class as [`Classifier::classes`] lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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

/// A trained model with all it has been taught.
///
/// ```no_run
/// use gpn_model::Device;
/// use gpn_train::{Again, Among, Classifier, Lesson, Placing, Sample};
///
/// let mut classifier = Classifier::open("run".as_ref(), &Device::cpu())?;
/// let samples = Sample::at("photos/lynx".as_ref(), classifier.input())?;
/// let lesson = Lesson { class: "lynx".into(), place: Placing::Below(vec!["cat".into()]), samples };
/// classifier.teach(&[lesson], Again::Refuse)?;
/// classifier.save("taught.safetensors".as_ref())?;
///
/// let candidates = classifier.candidates(&Among::All, classifier.default_lambda())?;
/// let photo = Sample::image_file("photo.jpg".as_ref());
/// for embedding in classifier.embed(&[photo])? {
///     let best = candidates.rank(&embedding?, 1)[0];
///     println!("{} {:.0}%", candidates.classes()[best.class].name, 100.0 * best.probability);
/// }
/// # Ok::<(), gpn_train::TrainError>(())
/// ```
pub struct Classifier {
    pub(crate) model: TrainedModel,
    pub(crate) graph: ClassGraph,
}

impl Classifier {
    /// Opens a model file, or that of a run directory.
    pub fn open(path: &Path, device: &Device) -> Result<Self, TrainError> {
        let file = model_file(path)?;
        let model = TrainedModel::read(&file, device)?;
        Self::new(model).map_err(|error| match error {
            // A sound model of a method that this is not for.
            TrainError::Setting { reason, .. } => TrainError::Malformed { path: file, reason },
            error => TrainError::Malformed { path: file, reason: format!("it is damaged: {error}") },
        })
    }

    /// Puts a trained model to use.
    pub fn new(model: TrainedModel) -> Result<Self, TrainError> {
        if !model.network.method.answers_by_prototypes() {
            return Err(TrainError::Setting {
                key: "train.method".into(),
                reason: format!(
                    "{} answers whole tasks and has no prototypes to teach or compare; evaluate it with `gpn eval`, or train another method",
                    model.info.config.train.method
                ),
            });
        }
        let graph = ClassGraph::new(&model.info, &model.info.taught)?;
        Ok(Self { model, graph })
    }

    /// Writes the model with all it has been taught, beside the final place and renamed. Equal lessons give equal bytes.
    pub fn save(&self, path: &Path) -> Result<(), TrainError> {
        TrainedModel::save(path, &self.model.info, &self.model.network, &self.model.memory)
    }

    /// What the model is.
    pub fn info(&self) -> &ModelInfo {
        &self.model.info
    }

    /// What a sample is.
    pub fn input(&self) -> InputShape {
        self.model.info.input
    }

    /// Weight of the prototype before propagation that fits the model ([`ModelInfo::lambda`](crate::ModelInfo::lambda)).
    pub fn default_lambda(&self) -> f32 {
        self.model.info.lambda()
    }

    /// All classes: training classes first, then those held out, then taught ones that the graph did not have.
    pub fn classes(&self) -> Vec<ClassEntry> {
        self.graph.graph.nodes().map(|class| self.entry(class)).collect()
    }

    /// The classes whose id or name contains `query`, letter case ignored; none is an error that proposes the nearest.
    pub fn search(&self, query: &str) -> Result<Vec<ClassEntry>, TrainError> {
        let wanted = query.to_lowercase();
        let graph = &self.graph.graph;
        let found: Vec<ClassEntry> = graph
            .nodes()
            .filter(|&class| {
                [graph.id(class), graph.name(class)].iter().any(|text| text.to_lowercase().contains(&wanted))
            })
            .map(|class| self.entry(class))
            .collect();
        if found.is_empty() {
            let reason = match self.graph.nearest(query) {
                Some(near) => format!("no id or name contains it; did you mean {near}?"),
                None => "no id or name contains it".into(),
            };
            return Err(TrainError::Class { class: query.to_owned(), reason });
        }
        Ok(found)
    }

    /// Embeds samples; one that cannot be read is an error of its own. Samples are read and prepared in parallel, some at a
    /// time, and the embedding of a sample does not depend on the others.
    pub fn embed(&mut self, samples: &[Sample]) -> Result<Vec<Result<Vec<f32>, TrainError>>, TrainError> {
        self.embed_all(&samples.iter().collect::<Vec<_>>())
    }

    pub(crate) fn embed_all(
        &mut self,
        samples: &[&Sample],
    ) -> Result<Vec<Result<Vec<f32>, TrainError>>, TrainError> {
        let (input, stored_size) = (self.input(), self.model.info.stored_size);
        let embedder = &mut self.model.network.embedder;
        let dim = embedder.embedding_len();
        let mut results = Vec::with_capacity(samples.len());
        for batch in samples.chunks(BATCH) {
            let prepared: Vec<Vec<Result<Vec<f32>, TrainError>>> = batch
                .par_chunks(PART)
                .map(|part| {
                    let mut preparation = Preparation::new(input, stored_size)?;
                    Ok(part.iter().map(|sample| preparation.input(sample)).collect())
                })
                .collect::<Result<_, TrainError>>()?;
            let prepared: Vec<Result<Vec<f32>, TrainError>> = prepared.into_iter().flatten().collect();
            let embeddings = embed_alike(embedder, prepared.iter().flatten().flatten().copied().collect())?;
            let mut rows = embeddings.chunks_exact(dim);
            for (sample, prepared) in batch.iter().zip(prepared) {
                results.push(prepared.and_then(|_| {
                    // invariant: there is one embedding for each sample that could be read.
                    let embedding = rows.next().unwrap();
                    if embedding.iter().all(|value| value.is_finite()) {
                        return Ok(embedding.to_vec());
                    }
                    Err(TrainError::Malformed {
                        path: PathBuf::from(&sample.name),
                        reason: "its embedding has values that are not finite; the model is of no use".into(),
                    })
                }));
            }
        }
        Ok(results)
    }

    /// The classes to choose from with their propagated prototypes, to be used for any number of samples. `lambda` is the
    /// weight of the prototypes before propagation.
    pub fn candidates(&self, among: &Among, lambda: f32) -> Result<Candidates, TrainError> {
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
                    return Err(TrainError::Class { class: name.clone(), reason });
                }
                below
            }
        };
        if classes.is_empty() {
            return Err(TrainError::Setting {
                key: "among".into(),
                reason: "there is no class to choose from; teach some with `gpn teach`".into(),
            });
        }
        let targets: Vec<Target> = classes.iter().map(|&class| self.target(class)).collect();
        Candidates::new(&self.model, &self.graph, &targets, lambda)
    }

    fn target(&self, class: Node) -> Target {
        match self.graph.taught_position(class).map(|position| &self.model.info.taught[position]) {
            None => Target { class, placed: true, prototype: self.model.memory.of(class).to_vec() },
            Some(taught) => {
                Target { class, placed: taught.place != Place::Nearest, prototype: taught.prototype() }
            }
        }
    }

    fn entry(&self, class: Node) -> ClassEntry {
        let info = &self.model.info;
        let graph = &self.graph.graph;
        let ids = |classes: &[Node]| classes.iter().map(|&class| graph.id(class).to_owned()).collect();
        let taught = self.graph.taught_position(class).map(|position| &info.taught[position]);
        let unplaced = taught.filter(|taught| taught.place == Place::Nearest);
        let memory = &self.model.memory;
        ClassEntry {
            id: graph.id(class).to_owned(),
            name: graph.name(class).to_owned(),
            kind: self.graph.kind(class),
            samples: match taught {
                Some(taught) => taught.samples(),
                None => info.classes.get(class as usize).map_or(0, |class| class.samples),
            },
            parents: if unplaced.is_some() { Vec::new() } else { ids(graph.parents(class)) },
            nearest: unplaced.map_or_else(Vec::new, |taught| {
                let count = info.config.pathways.nearest;
                ids(&nearest_classes(&memory.prototypes, &taught.prototype(), memory.dim, count)[0])
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use gpn_model::BackboneKind;

    use super::*;

    #[test]
    fn an_embedding_does_not_depend_on_its_batch() {
        let image = |side| InputShape::Image { height: side, width: side };
        let given = InputShape::Embedding { len: 100 };
        for (kind, input, count) in [
            (BackboneKind::ResNet08, image(32), 37),
            (BackboneKind::ResNet08, image(84), 19),
            (BackboneKind::ResNet20, image(32), 7),
            (BackboneKind::Conv4, image(32), 37),
            #[cfg(feature = "burn")]
            (BackboneKind::ResNet12, image(32), 5),
            (BackboneKind::Mlp, given, 300),
            (BackboneKind::Identity, given, 3),
        ] {
            let mut embedder = Embedder::new(&kind.config(), input, &Device::cpu(), 1).unwrap();
            let samples: Vec<f32> =
                (0..count * input.len()).map(|i| ((i * 31 % 1009) as f32 - 500.0) / 300.0).collect();
            let together = embed_alike(&mut embedder, samples.clone()).unwrap();
            let alone: Vec<f32> = samples
                .chunks_exact(input.len())
                .flat_map(|sample| embed_alike(&mut embedder, sample.to_vec()).unwrap())
                .collect();
            assert!(together == alone, "{}", kind.name());
        }
    }
}
