//! `model.safetensors`: weights, memory, class graph and settings in one file.

use std::path::Path;

use gpn_data::benchmark::{Benchmark, Split};
use gpn_model::{BackboneKind, Device, InputShape, Weights, save_weights};
use serde::{Deserialize, Serialize};

use crate::checkpoint::{memory_tensor, read_memory};
use crate::config::Config;
use crate::error::TrainError;
use crate::memory::Memory;
use crate::network::Network;
use crate::validation::ValidationResult;

/// What a model file says beside its tensors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// The program that trained it.
    pub built_by: String,
    /// All settings.
    pub config: Config,
    /// What a sample is.
    pub input: InputShape,
    /// Fingerprint of the benchmark it was trained on.
    pub benchmark: String,
    /// `(id, name)` of the training classes; row i of the memory is class i.
    pub classes: Vec<(String, String)>,
    /// `(parent, child)` of the graph of training classes, by row.
    pub edges: Vec<(u32, u32)>,
    /// Accuracy on the validation tasks, where there were any.
    pub validation: Option<ValidationResult>,
}

impl ModelInfo {
    /// The weight of the prototype before propagation that was best on the validation tasks; 0 without any.
    pub fn lambda(&self) -> f32 {
        self.validation.as_ref().map_or(0.0, ValidationResult::best_lambda)
    }

    /// Describes a network trained on `benchmark`, with its accuracy on the validation tasks.
    pub fn new(
        config: &Config,
        network: &Network,
        benchmark: &Benchmark,
        validation: Option<&ValidationResult>,
    ) -> Self {
        let data_set = benchmark.data_set(Split::Train);
        let class = |&row: &usize| {
            let class = &benchmark.classes()[row];
            (class.id.clone(), class.name.clone())
        };
        Self {
            built_by: format!("gpn {}", env!("CARGO_PKG_VERSION")),
            config: config.clone(),
            input: network.embedder.input(),
            benchmark: benchmark.manifest().fingerprint(),
            classes: data_set.rows.iter().map(class).collect(),
            edges: data_set.training_graph.edges().collect(),
            validation: validation.cloned(),
        }
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
    /// Writes the model; the same model gives the same bytes.
    pub fn save(path: &Path, info: &ModelInfo, network: &Network, memory: &Memory) -> Result<(), TrainError> {
        let shape = [memory.classes(), memory.dim];
        // invariant: the description is plain data, which always serialises.
        let metadata = serde_json::to_string(info).unwrap();
        save_weights(path, network.state().iter().chain([memory_tensor(memory, &shape)]), Some(&metadata))?;
        Ok(())
    }

    /// Reads a model.
    pub fn read(path: &Path, device: &Device) -> Result<Self, TrainError> {
        let weights = Weights::read(path)?;
        let malformed = |reason: String| TrainError::Malformed { path: path.to_owned(), reason };
        let metadata = weights.metadata().ok_or_else(|| {
            malformed("it is no model of `gpn train`; weights alone can be used with --init".into())
        })?;
        let info: ModelInfo = serde_json::from_str(metadata)
            .map_err(|error| malformed(format!("its description is not readable: {error}")))?;
        let backbone = info.config.model.backbone.parse::<BackboneKind>()?.config();
        let mut network = Network::new(
            &backbone,
            info.config.propagation.clone(),
            info.input,
            info.classes.len(),
            device,
            info.config.train.seed,
        )?;
        network.load(&weights)?;
        let memory = read_memory(&weights, path)?;
        Ok(Self { info, network, memory })
    }
}
