//! Reading an ONNX file.

use std::collections::BTreeSet;
use std::path::Path;

use gpn_data::contain;
use gpn_data::format::archive::read_small_file;
use tract_onnx::pb;
use tract_onnx::prelude::Framework as _;

use super::{Input, OnnxModel};
use crate::error::{EncodeError, Result};

/// Largest model file that is read; a larger one keeps its weights in a file beside it.
const MAX_MODEL_BYTES: u64 = 4 << 30;
/// Largest file of weights beside a model.
const MAX_WEIGHT_BYTES: u64 = 64 << 30;

impl OnnxModel {
    /// Parses a file and the facts that it declares.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        if path.is_dir() {
            return Err(EncodeError::unfit(path, "it is a directory; name an .onnx file"));
        }
        let bytes = read_small_file(path, MAX_MODEL_BYTES)?;
        let parse = || tract_onnx::onnx().proto_model_for_read(&mut bytes.as_slice());
        let proto = contain(parse).and_then(std::result::Result::ok);
        let graph =
            proto.as_ref().and_then(|proto| proto.graph.as_ref()).filter(|graph| !graph.node.is_empty());
        let (Some(proto), Some(graph)) = (&proto, graph) else {
            return Err(EncodeError::damaged(path, "it is no ONNX model, or a damaged one; export it again"));
        };
        let given: BTreeSet<&str> = graph.initializer.iter().map(|tensor| tensor.name.as_str()).collect();
        let inputs =
            graph.input.iter().filter(|input| !given.contains(input.name.as_str())).map(input_of).collect();
        let outputs = graph.output.iter().map(|output| output.name.clone()).collect();
        let metadata =
            proto.metadata_props.iter().map(|entry| (entry.key.clone(), entry.value.clone())).collect();
        let hash = hash_of(path, &bytes, graph)?;
        Ok(Self { path: path.to_owned(), hash, inputs, outputs, metadata, proto: proto.clone() })
    }
}

fn input_of(value: &pb::ValueInfoProto) -> Input {
    let tensor = value.r#type.as_ref().and_then(|kind| kind.value.as_ref());
    let Some(pb::type_proto::Value::TensorType(tensor)) = tensor else {
        return Input { name: value.name.clone(), element: 0, shape: None };
    };
    let length = |dim: &pb::tensor_shape_proto::Dimension| match dim.value {
        Some(pb::tensor_shape_proto::dimension::Value::DimValue(length)) => {
            usize::try_from(length).ok().filter(|&length| length > 0)
        }
        _ => None,
    };
    let shape = tensor.shape.as_ref().map(|shape| shape.dim.iter().map(length).collect());
    Input { name: value.name.clone(), element: tensor.elem_type, shape }
}

/// BLAKE3 of the file, or of its hash and those of the files beside it that hold its weights.
fn hash_of(path: &Path, bytes: &[u8], graph: &pb::GraphProto) -> Result<blake3::Hash> {
    let own = blake3::hash(bytes);
    let locations: BTreeSet<&str> = graph
        .initializer
        .iter()
        .flat_map(|tensor| &tensor.external_data)
        .filter(|entry| entry.key == "location")
        .map(|entry| entry.value.as_str())
        .collect();
    if locations.is_empty() {
        return Ok(own);
    }
    let mut all = blake3::Hasher::new();
    all.update(own.as_bytes());
    for location in locations {
        let file = path.parent().unwrap_or(Path::new("")).join(location);
        // A part of a model lies beside it; nothing else is read on its word.
        if Path::new(location).components().any(|part| !matches!(part, std::path::Component::Normal(_))) {
            return Err(EncodeError::unfit(
                path,
                format!("its weights are at `{location}`, outside of its folder"),
            ));
        }
        let size = std::fs::metadata(&file)
            .map_err(|error| EncodeError::io("read its weights", &file, error))?
            .len();
        if size > MAX_WEIGHT_BYTES {
            return Err(EncodeError::unfit(&file, format!("{size} bytes of weights are too many")));
        }
        let mut hasher = blake3::Hasher::new();
        let mut reader = std::fs::File::open(&file).map_err(|error| EncodeError::io("open", &file, error))?;
        hasher.update_reader(&mut reader).map_err(|error| EncodeError::io("read", &file, error))?;
        all.update(hasher.finalize().as_bytes());
    }
    Ok(all.finalize())
}
