//! What an ONNX file says about itself.

#[cfg(feature = "encoders")]
mod read;

use std::collections::BTreeMap;
#[cfg(not(feature = "encoders"))]
use std::path::Path;
use std::path::PathBuf;

use crate::error::{EncodeError, Result};

/// An ONNX file, parsed but not compiled.
pub(crate) struct OnnxModel {
    pub(crate) path: PathBuf,
    #[cfg(feature = "encoders")]
    pub(crate) proto: tract_onnx::pb::ModelProto,
    /// BLAKE3 of the file and of the weights beside it.
    pub(crate) hash: blake3::Hash,
    /// What must be given, without what the file gives itself.
    pub(crate) inputs: Vec<Input>,
    pub(crate) outputs: Vec<String>,
    pub(crate) metadata: BTreeMap<String, String>,
}

/// One input of a model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Input {
    pub(crate) name: String,
    /// ONNX's number of the element type.
    pub(crate) element: i32,
    /// Lengths of the axes, where they are fixed; `None` where not even their number is.
    pub(crate) shape: Option<Vec<Option<usize>>>,
}

pub(crate) const FLOAT: i32 = 1;
pub(crate) const INT32: i32 = 6;
pub(crate) const INT64: i32 = 7;

impl Input {
    /// The shape for people: `[?, 3, 224, 224]`.
    pub(crate) fn shape_text(&self) -> String {
        let Some(shape) = &self.shape else { return "of any shape".into() };
        let lengths = shape.iter().map(|length| length.map_or("?".to_owned(), |length| length.to_string()));
        format!("[{}]", lengths.collect::<Vec<_>>().join(", "))
    }
}

impl OnnxModel {
    /// Fails: nothing in this program reads such files.
    #[cfg(not(feature = "encoders"))]
    pub(crate) fn open(path: &Path) -> Result<Self> {
        Err(EncodeError::unfit(path, crate::runtime::WITHOUT_ENCODERS))
    }

    /// The output to take: the one that is named, or the only one.
    pub(crate) fn output(&self, named: Option<&str>) -> Result<String> {
        match (named, self.outputs.as_slice()) {
            (Some(name), outputs) if outputs.iter().any(|output| output == name) => Ok(name.to_owned()),
            (Some(name), outputs) => Err(EncodeError::unfit(
                &self.path,
                format!("it has no output `{name}`; it has {}", outputs.join(", ")),
            )),
            (None, [only]) => Ok(only.clone()),
            (None, outputs) => Err(EncodeError::unfit(
                &self.path,
                format!(
                    "it has {} outputs; name the one to take as `output`: {}",
                    outputs.len(),
                    outputs.join(", ")
                ),
            )),
        }
    }
}
