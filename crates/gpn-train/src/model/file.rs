//! `model.safetensors`: weights, memory, class graph, settings and taught classes in one file.
//!
//! | Tensor | Shape | Holds |
//! |---|---|---|
//! | `emb.*` | as in PyTorch | backbone with batch-norm buffers, classifier of the auxiliary task |
//! | `prop.*` | as in the authors' code | propagation; other methods have tensors of their own |
//! | `memory` | `[training classes, dim]` | prototypes of the training classes |
//! | `taught` | `[parts, taught classes, dim]` | sums of embeddings; the parts of a sum add up to it exactly. Absent where no class is taught |
//!
//! All else is JSON under the metadata key `gpn`: [`ModelInfo`]. `gpn.blake3` is the checksum of everything.

use std::path::Path;

use gpn_data::benchmark::{Benchmark, Part, Split, Store};
use gpn_model::methods::MethodKind;
use gpn_model::{Device, InputShape, Memory, ModelError, NamedTensor, Weights, save_weights, weight_bytes};
use gpn_taxonomy::{Taxonomy, TaxonomyBuilder, TaxonomyError, plain_words};
use serde::{Deserialize, Serialize};

use super::changes::Changes;
use super::exact_sum::ExactSum;
use super::taught::TaughtClass;
use crate::error::TrainError;
use crate::evaluate::Trained;
use crate::learn::network::Network;
use crate::learn::validation::ValidationResult;
use crate::settings::Config;

const MEMORY: &str = "memory";
const TAUGHT: &str = "taught";

/// A class of the graph that a model was trained with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassInfo {
    /// Its id in the taxonomy.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Samples it was trained with.
    pub samples: usize,
}

/// How a model was fitted to a catalogue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FitInfo {
    /// The frozen encoder that its embeddings are of, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoder: Option<serde_json::Value>,
    /// What it reached.
    pub report: serde_json::Value,
}

/// What a model file says beside its tensors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// The program that trained it.
    pub built_by: String,
    /// All settings.
    pub config: Config,
    /// What a sample is.
    pub input: InputShape,
    /// Height and width at which the benchmark stores images: other images are brought to it before anything else.
    pub stored_size: Option<u32>,
    /// Fingerprint of the benchmark it was trained on.
    pub benchmark: String,
    /// The training classes; row i of the memory is class i.
    pub classes: Vec<ClassInfo>,
    /// The other classes of the graph, which have a place in it but no prototype.
    pub held_out: Vec<ClassInfo>,
    /// `(parent, child)` of the whole graph: training classes are numbered first, those held out follow.
    pub edges: Vec<(u32, u32)>,
    /// The number of the top class, which is never an answer.
    pub root: u32,
    /// Classes taught after training, sorted by id.
    pub taught: Vec<TaughtClass>,
    /// What people changed about classes afterwards.
    #[serde(default, skip_serializing_if = "Changes::is_empty")]
    pub changes: Changes,
    /// Where it was fitted to a catalogue: how, and what it reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fit: Option<FitInfo>,
    /// Episodes it was trained for, where the file says so.
    #[serde(default)]
    pub episode: Option<u64>,
    /// Accuracy on the validation tasks, where there were any.
    pub validation: Option<ValidationResult>,
}

impl ModelInfo {
    /// The method that the model was trained for.
    pub fn method(&self) -> &'static MethodKind {
        self.config.train.method.kind()
    }

    /// The weight of the prototype before propagation to use: the best on the validation tasks where the method lets it be
    /// chosen, otherwise 0.
    pub fn lambda(&self) -> f32 {
        match &self.validation {
            Some(result) if self.method().tunes_lambda => result.best_lambda(),
            _ => 0.0,
        }
    }

    /// Describes a network trained on `benchmark` for so many episodes, with its accuracy on the validation tasks.
    pub fn new(
        config: &Config,
        network: &Network,
        benchmark: &Benchmark,
        episode: u64,
        validation: Option<&ValidationResult>,
    ) -> Self {
        let class = |&row: &usize| {
            let class = &benchmark.classes()[row];
            let samples = benchmark.samples(row, Part::Train).len();
            ClassInfo { id: class.id.clone(), name: class.name.clone(), samples }
        };
        let (training, held_out): (Vec<usize>, Vec<usize>) =
            (0..benchmark.classes().len()).partition(|&row| benchmark.classes()[row].split == Split::Train);
        let mut number = vec![0; benchmark.classes().len()];
        for (&row, place) in training.iter().chain(&held_out).zip(0..) {
            number[row] = place;
        }
        let edge = |(parent, child): (u32, u32)| (number[parent as usize], number[child as usize]);
        Self {
            built_by: format!("gpn {}", env!("CARGO_PKG_VERSION")),
            config: config.clone(),
            input: network.embedder.input(),
            stored_size: match benchmark.store() {
                Store::Images { size, .. } => Some(*size),
                Store::Embeddings { .. } | Store::Empty => None,
            },
            benchmark: benchmark.manifest().fingerprint(),
            classes: training.iter().map(class).collect(),
            held_out: held_out.iter().map(class).collect(),
            edges: benchmark.taxonomy().edges().map(edge).collect(),
            root: number[benchmark.root()],
            taught: Vec::new(),
            changes: Changes::default(),
            fit: None,
            episode: Some(episode),
            validation: validation.cloned(),
        }
    }

    /// The class graph: training classes, then those held out; node i is class i.
    pub fn graph(&self) -> Result<Taxonomy, TaxonomyError> {
        let mut builder = TaxonomyBuilder::new();
        for class in self.classes.iter().chain(&self.held_out) {
            let node = builder.add_class(&class.id);
            builder.set_name(node, &class.name);
        }
        for &(parent, child) in &self.edges {
            builder.add_edge(parent, child, None);
        }
        Ok(builder.build()?.taxonomy)
    }
}

/// A trained model.
pub struct TrainedModel {
    /// What it is.
    pub info: ModelInfo,
    /// Its network.
    pub network: Network,
    /// Prototypes of its training classes.
    pub memory: Memory,
}

impl TrainedModel {
    /// Writes the model, whole or not at all; the same model gives the same bytes.
    pub fn save(path: &Path, info: &ModelInfo, network: &Network, memory: &Memory) -> Result<(), TrainError> {
        with_tensors(info, network, memory, |tensors, metadata| {
            Ok(save_weights(path, tensors, Some(metadata))?)
        })
    }

    /// The bytes that [`save`](Self::save) writes.
    pub fn to_bytes(info: &ModelInfo, network: &Network, memory: &Memory) -> Result<Vec<u8>, TrainError> {
        with_tensors(info, network, memory, |tensors, metadata| Ok(weight_bytes(tensors, Some(metadata))?))
    }

    /// What evaluation needs of it.
    pub fn trained(&self) -> Trained<'_> {
        Trained {
            method: self.network.method.as_ref(),
            memory: &self.memory,
            nearest: self.info.config.pathways.nearest,
            texts: &[],
        }
    }

    /// Reads a model.
    pub fn read(path: &Path, device: &Device) -> Result<Self, TrainError> {
        Self::from_weights(Weights::read(path), path, device)
    }

    /// Reads a model from the bytes of its file; `name` is what messages call it.
    pub fn from_bytes(bytes: &[u8], name: &Path, device: &Device) -> Result<Self, TrainError> {
        Self::from_weights(Weights::from_bytes(bytes, name), name, device)
    }

    fn from_weights(
        weights: Result<Weights, ModelError>,
        path: &Path,
        device: &Device,
    ) -> Result<Self, TrainError> {
        let weights = weights.map_err(|error| match error {
            ModelError::NotSafetensors { reason, .. } => TrainError::NotAModel {
                path: path.to_owned(),
                reason: format!("it is no model of gpn's, or a damaged one ({reason})"),
            },
            other => other.into(),
        })?;
        let malformed = |reason: String| TrainError::Malformed { path: path.to_owned(), reason };
        let metadata = weights.metadata().ok_or_else(|| TrainError::WeightsOnly { path: path.to_owned() })?;
        let mut info: ModelInfo = serde_json::from_str(metadata).map_err(|error| TrainError::NotAModel {
            path: path.to_owned(),
            reason: format!(
                "its description is not that of a model, or another version of gpn wrote it ({})",
                plain_words(&error.to_string())
            ),
        })?;
        let memory = read_memory(&weights, path)?;
        info.check(&memory, &weights).map_err(|reason| malformed(format!("it is damaged: {reason}")))?;
        read_taught_sums(&mut info.taught, &weights, memory.dim).map_err(malformed)?;
        let mut network = Network::new(&info.config, info.input, info.classes.len(), device)?;
        network.load(&weights)?;
        Ok(Self { info, network, memory })
    }
}

/// Hands over the tensors of a model file and its description as JSON.
fn with_tensors<R>(
    info: &ModelInfo,
    network: &Network,
    memory: &Memory,
    write: impl FnOnce(Vec<NamedTensor<'_>>, &str) -> Result<R, TrainError>,
) -> Result<R, TrainError> {
    let shape = [memory.classes(), memory.dim];
    let state = network.state();
    let (parts, sums) = taught_sums(&info.taught, memory.dim);
    let taught_shape = [parts, info.taught.len(), memory.dim];
    let taught = NamedTensor { name: TAUGHT, shape: &taught_shape, values: &sums };
    let tensors = state.iter().chain([memory_tensor(memory, &shape)]);
    let tensors = tensors.chain((!info.taught.is_empty()).then_some(taught));
    // invariant: the description is plain data, which always serialises.
    let metadata = serde_json::to_string(info).unwrap();
    write(tensors.collect(), &metadata)
}

/// The sums of all taught classes, `[parts, classes, dim]`, and how many parts there are.
fn taught_sums(taught: &[TaughtClass], dim: usize) -> (usize, Vec<f32>) {
    let sums: Vec<Vec<f32>> =
        taught.iter().flat_map(|class| class.sums.iter().map(ExactSum::parts)).collect();
    // One part at least: a class whose embeddings are all zero has none, but is there.
    let parts = sums.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let mut values = vec![0.0; parts * taught.len() * dim];
    for (feature, sum) in sums.iter().enumerate() {
        for (part, &value) in sum.iter().enumerate() {
            values[part * sums.len() + feature] = value;
        }
    }
    (parts, values)
}

fn read_taught_sums(taught: &mut [TaughtClass], weights: &Weights, dim: usize) -> Result<(), String> {
    if taught.is_empty() {
        return Ok(());
    }
    let found = weights.iter().find(|tensor| tensor.name == TAUGHT);
    let tensor = found
        .filter(|tensor| tensor.shape.len() == 3 && tensor.shape[1..] == [taught.len(), dim])
        .ok_or_else(|| {
        format!("it is damaged: the sums of its {} taught classes are not there", taught.len())
    })?;
    let features = taught.len() * dim;
    for (number, class) in taught.iter_mut().enumerate() {
        let sum = |feature: usize| {
            ExactSum::of(tensor.values.iter().skip(number * dim + feature).step_by(features).copied())
        };
        class.sums = (0..dim).map(sum).collect();
    }
    Ok(())
}

/// The memory as a tensor of a file.
pub(crate) fn memory_tensor<'a>(memory: &'a Memory, shape: &'a [usize; 2]) -> NamedTensor<'a> {
    NamedTensor { name: MEMORY, shape, values: memory.prototypes() }
}

/// The memory of a file.
pub(crate) fn read_memory(weights: &Weights, path: &Path) -> Result<Memory, TrainError> {
    let tensor = weights.iter().find(|tensor| tensor.name == MEMORY).filter(|tensor| tensor.shape.len() == 2);
    let tensor = tensor.ok_or_else(|| TrainError::Malformed {
        path: path.to_owned(),
        reason: "it holds no memory of prototypes; it is no model of a run".into(),
    })?;
    Ok(Memory::new(tensor.shape[1], tensor.values.to_vec()))
}
