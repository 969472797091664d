//! Weight files: safetensors with PyTorch's parameter names.
//!
//! A state dict of the PyTorch network, saved with `safetensors.torch.save_file`, loads as it is. A prefix `emb.` or
//! `module.` of all backbone tensors is taken off; `num_batches_tracked` counts nothing here and is ignored.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::Write;
use std::path::Path;

use safetensors::{Dtype, SafeTensors, View};

use crate::embedder::Embedder;
use crate::error::{ModelError, Result};
use crate::head::{ClassifierHead, HEAD_NAMES};
use crate::tensors::{NamedTensor, TensorInfo, TensorList};

/// Key under which [`save`] keeps its metadata. One key only: several would be written in random order.
const METADATA_KEY: &str = "gpn";
/// Prefixes of backbone tensors in files of whole models.
const PREFIXES: [&str; 3] = ["emb.", "module.emb.", "module."];

/// The tensors of a weight file.
///
/// ```
/// use gpn_model::{BackboneKind, Device, Embedder, InputShape, Weights, save_weights};
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
}

#[derive(Debug)]
struct Stored {
    shape: Vec<usize>,
    dtype: Dtype,
    /// Empty where the type is not `f32`.
    values: Vec<f32>,
}

impl Weights {
    /// Reads a whole file.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).map_err(|source| ModelError::File {
            action: "read",
            path: path.into(),
            source,
        })?;
        let broken = |error: safetensors::SafeTensorError| ModelError::NotSafetensors {
            path: path.into(),
            reason: error.to_string(),
        };
        let file = SafeTensors::deserialize(&bytes).map_err(broken)?;
        let (_, header) = SafeTensors::read_metadata(&bytes).map_err(broken)?;
        let metadata = header.metadata().as_ref().and_then(|entries| entries.get(METADATA_KEY).cloned());
        let tensors = file
            .iter()
            .map(|(name, view)| {
                let values = if view.dtype() == Dtype::F32 { floats(view.data()) } else { Vec::new() };
                let stored = Stored { shape: view.shape().to_vec(), dtype: view.dtype(), values };
                (name.to_owned(), stored)
            })
            .collect();
        Ok(Self { place: path.display().to_string(), tensors, metadata })
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
            embedder.state_infos().filter_map(|info| self.problem(prefix, info)).collect();
        let wanted: Vec<&str> = embedder.state_infos().map(|info| info.name.as_str()).collect();
        let extra = self.tensors.keys().filter_map(|name| name.strip_prefix(prefix)).filter(|name| {
            !name.ends_with("num_batches_tracked") && !HEAD_NAMES.contains(name) && !wanted.contains(name)
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
            head.parameters().infos().iter().filter_map(|info| self.problem(prefix, info)).collect();
        if !problems.is_empty() {
            let place = format!("{} for the classifier", self.place);
            return Err(ModelError::WeightsDoNotFit { place, problems });
        }
        head.replace_parameters(|info| self.tensors[&format!("{prefix}{}", info.name)].values.clone());
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

/// Writes tensors and a text of metadata; same tensors, same bytes. The file is written beside and renamed.
pub fn save<'a>(
    path: &Path,
    tensors: impl IntoIterator<Item = NamedTensor<'a>>,
    metadata: Option<&str>,
) -> Result<()> {
    let metadata = metadata.map(|text| HashMap::from([(METADATA_KEY.to_owned(), text.to_owned())]));
    let tensors = tensors.into_iter().map(|tensor| (tensor.name, Floats(tensor)));
    let failed = |source| ModelError::File { action: "write", path: path.into(), source };
    let bytes =
        safetensors::serialize(tensors, metadata).map_err(|error| failed(std::io::Error::other(error)))?;
    let mut beside = path.as_os_str().to_owned();
    beside.push(".partial");
    let written = fs::File::create(&beside)
        .and_then(|mut file| file.write_all(&bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&beside, path));
    written.map_err(|source| {
        // What was asked for has failed already; a leftover that cannot be removed is no further news.
        let _ = fs::remove_file(&beside);
        failed(source)
    })
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()
}

/// A tensor as safetensors wants it.
struct Floats<'a>(NamedTensor<'a>);

impl View for Floats<'_> {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        self.0.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        self.0.values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn data_len(&self) -> usize {
        4 * self.0.values.len()
    }
}
