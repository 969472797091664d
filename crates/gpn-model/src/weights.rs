//! Weight files: safetensors with PyTorch's parameter names.
//!
//! A state dict of the PyTorch network, saved with `safetensors.torch.save_file`, loads as it is. A prefix `emb.` or
//! `module.` of all backbone tensors is taken off; `num_batches_tracked` counts nothing here and is ignored, and so is
//! the classifier `fc` of torchvision's networks.
//!
//! Files of [`save`] carry a BLAKE3 checksum of their tensors and metadata, which is checked when they are read.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use safetensors::Dtype;

use crate::embedder::Embedder;
use crate::error::{ModelError, Result};
use crate::head::{ClassifierHead, HEAD_NAMES};
use crate::tensors::{NamedTensor, TensorInfo, TensorList};
use crate::trainable::Trainable;
use crate::weight_file::{self, Checksum};

/// Prefixes of backbone tensors in files of whole models.
const PREFIXES: [&str; 3] = ["emb.", "module.emb.", "module."];
/// The classifier of torchvision's networks, which a backbone goes without.
const TORCHVISION_HEAD: [&str; 2] = ["fc.weight", "fc.bias"];

/// The tensors of a weight file.
///
/// ```
/// use gpn_model::{BackboneKind, Device, Embedder, InputShape, Trainable, Weights, save_weights};
///
/// let input = InputShape::Image { height: 32, width: 32 };
/// let embedder = Embedder::new(&BackboneKind::ResNet08.config(), input, &Device::cpu(), 1)?;
/// let file = std::env::temp_dir().join(format!("gpn-doc-{}.safetensors", std::process::id()));
/// save_weights(&file, embedder.state(), None)?;
///
/// let mut other = Embedder::new(&BackboneKind::ResNet08.config(), input, &Device::cpu(), 2)?;
/// Weights::read(&file)?.load(&mut other)?;
/// assert_eq!(other.parameters(), embedder.parameters());
/// # std::fs::remove_file(&file).unwrap();
/// # Ok::<(), gpn_model::ModelError>(())
/// ```
#[derive(Debug)]
pub struct Weights {
    place: String,
    tensors: BTreeMap<String, Stored>,
    metadata: Option<String>,
    has_checksum: bool,
}

#[derive(Debug)]
struct Stored {
    shape: Vec<usize>,
    dtype: Dtype,
    /// Empty where the type is not `f32`.
    values: Vec<f32>,
}

impl Weights {
    /// Reads a whole file. One whose content does not fit its checksum is refused, and so is one with a value that is NaN
    /// or infinite. A file without a checksum is from another program, unless it has metadata of [`save`].
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).map_err(|source| ModelError::File {
            action: "read",
            path: path.into(),
            source,
        })?;
        Self::from_bytes(&bytes, path)
    }

    /// The same for the bytes of a file; `path` is its name in messages.
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<Self> {
        let content = weight_file::parse(bytes)
            .map_err(|error| ModelError::NotSafetensors { path: path.into(), reason: error.to_string() })?;
        let damaged = |reason: &str| ModelError::Damaged { path: path.into(), reason: reason.into() };
        match (content.checksum, &content.text) {
            (Checksum::Differs, _) => return Err(damaged("its content does not fit its checksum")),
            (Checksum::Absent, Some(_)) => {
                return Err(damaged("it lacks its checksum (or an older version of gpn wrote it)"));
            }
            _ => {}
        }
        let mut tensors = BTreeMap::new();
        for raw in content.tensors {
            let values = if raw.dtype == Dtype::F32 { floats(raw.bytes) } else { Vec::new() };
            if let Some(element) = first_not_finite(&values) {
                let (tensor, value) = (raw.name, values[element]);
                return Err(ModelError::NotFinite { path: path.into(), tensor, element, value });
            }
            tensors.insert(raw.name, Stored { shape: raw.shape, dtype: raw.dtype, values });
        }
        let has_checksum = content.checksum == Checksum::Fits;
        Ok(Self { place: path.display().to_string(), tensors, metadata: content.text, has_checksum })
    }

    /// Whether the file has a checksum, which then fits its content.
    pub fn has_checksum(&self) -> bool {
        self.has_checksum
    }

    /// Number of values of all `f32` tensors together.
    pub fn value_count(&self) -> usize {
        self.tensors.values().map(|stored| stored.values.len()).sum()
    }

    /// The text given to [`save`] with the tensors.
    pub fn metadata(&self) -> Option<&str> {
        self.metadata.as_deref()
    }

    /// The `f32` tensors by their full names.
    pub fn iter(&self) -> impl Iterator<Item = NamedTensor<'_>> {
        self.tensors
            .iter()
            .filter(|(_, stored)| stored.dtype == Dtype::F32)
            .map(|(name, stored)| NamedTensor { name, shape: &stored.shape, values: &stored.values })
    }

    /// Gives a backbone its parameters and buffers. Every missing, extra and mis-shaped tensor is listed in one error,
    /// and the backbone is changed only where all fit. A classifier head in the file is left for [`load_head`].
    ///
    /// [`load_head`]: Self::load_head
    pub fn load(&self, embedder: &mut Embedder) -> Result<()> {
        let prefix = self.prefix();
        let mut problems: Vec<String> =
            embedder.tensors().infos().filter_map(|info| self.problem(prefix, info)).collect();
        let wanted: Vec<&str> = embedder.tensors().infos().map(|info| info.name.as_str()).collect();
        let extra = self.tensors.keys().filter_map(|name| name.strip_prefix(prefix)).filter(|name| {
            let is_left_out = HEAD_NAMES.contains(name) || TORCHVISION_HEAD.contains(name);
            !name.ends_with("num_batches_tracked") && !is_left_out && !wanted.contains(name)
        });
        problems.extend(extra.map(|name| format!("extra: {prefix}{name}")));
        if !problems.is_empty() {
            let place = format!("{} for {}", self.place, embedder.config().name());
            return Err(ModelError::WeightsDoNotFit { place, problems });
        }
        embedder.replace_state(|info| self.tensors[&format!("{prefix}{}", info.name)].values.clone());
        Ok(())
    }

    /// Gives a classifier head its parameters, `fc_classifier.weight` and `fc_classifier.bias`.
    pub fn load_head(&self, head: &mut ClassifierHead) -> Result<()> {
        let prefix = self.prefix();
        let problems: Vec<String> =
            head.tensors().infos().filter_map(|info| self.problem(prefix, info)).collect();
        if !problems.is_empty() {
            let place = format!("{} for the classifier", self.place);
            return Err(ModelError::WeightsDoNotFit { place, problems });
        }
        head.tensors_mut().replace(|info| self.tensors[&format!("{prefix}{}", info.name)].values.clone());
        Ok(())
    }

    /// The tensors of the given full names and shapes; those that do not fit are listed in one error for `user`.
    pub fn tensors_for(&self, infos: &[TensorInfo], user: &str) -> Result<TensorList> {
        let problems: Vec<String> = infos.iter().filter_map(|info| self.problem("", info)).collect();
        if !problems.is_empty() {
            return Err(ModelError::WeightsDoNotFit {
                place: format!("{} for {user}", self.place),
                problems,
            });
        }
        Ok(TensorList::new(infos.to_vec(), |_, info| self.tensors[&info.name].values.clone()))
    }

    /// The prefix of backbone tensors: the first that any tensor has.
    fn prefix(&self) -> &'static str {
        let used = |prefix: &&str| self.tensors.keys().any(|name| name.starts_with(*prefix));
        PREFIXES.into_iter().find(used).unwrap_or("")
    }

    /// What is wrong with the tensor that should fill `info`.
    fn problem(&self, prefix: &str, info: &TensorInfo) -> Option<String> {
        let name = format!("{prefix}{}", info.name);
        match self.tensors.get(&name) {
            None => Some(format!("missing: {name} {:?}", info.shape)),
            Some(stored) if stored.shape != info.shape => {
                Some(format!("mis-shaped: {name} is {:?}, expected {:?}", stored.shape, info.shape))
            }
            Some(stored) if stored.dtype != Dtype::F32 => Some(format!(
                "wrong type: {name} is {:?}, expected F32 (convert with .float())",
                stored.dtype
            )),
            Some(_) => None,
        }
    }
}

/// Writes tensors and a text of metadata, with a checksum of both; same tensors, same bytes. The file is the old one or the
/// new one, never anything between.
pub fn save<'a>(
    path: &Path,
    tensors: impl IntoIterator<Item = NamedTensor<'a>>,
    metadata: Option<&str>,
) -> Result<()> {
    let failed = |source| ModelError::File { action: "write", path: path.into(), source };
    let bytes = weight_file::serialise(tensors, metadata).map_err(failed)?;
    gpn_files::write(path, bytes).map_err(failed)
}

/// The bytes that [`save`] writes.
pub fn to_bytes<'a>(
    tensors: impl IntoIterator<Item = NamedTensor<'a>>,
    metadata: Option<&str>,
) -> Result<Vec<u8>> {
    let failed = |source| ModelError::File { action: "make", path: "weights".into(), source };
    weight_file::serialise(tensors, metadata).map_err(failed)
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()
}

fn first_not_finite(values: &[f32]) -> Option<usize> {
    // Without an early end, the compiler turns the search into vector instructions.
    let is_bad = values.iter().fold(false, |is_bad, value| is_bad | !value.is_finite());
    if is_bad { values.iter().position(|value| !value.is_finite()) } else { None }
}
