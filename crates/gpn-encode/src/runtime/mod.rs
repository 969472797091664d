//! What runs a model: tensors in, one tensor of floats out.

#[cfg(feature = "ort")]
mod onnxruntime;
#[cfg(feature = "encoders")]
mod tract;

use std::path::Path;

use crate::config::Runtime;
use crate::error::{EncodeError, Result};
use crate::onnx::OnnxModel;

/// What is said where a program that was built small is given an encoder.
#[cfg(not(feature = "encoders"))]
pub(crate) const WITHOUT_ENCODERS: &str = "this program is built without encoders (cargo feature `encoders`); give it embeddings, or build it with them";

/// A tensor to give to a model.
#[derive(Clone, Debug)]
pub(crate) enum Tensor {
    /// Floats.
    F32(Vec<usize>, Vec<f32>),
    /// Whole numbers of 64 bits.
    I64(Vec<usize>, Vec<i64>),
    /// Whole numbers of 32 bits.
    I32(Vec<usize>, Vec<i32>),
}

/// What a model answers with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Output {
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Vec<f32>,
}

/// A model that is ready to run, from any thread.
pub(crate) trait Session: Send + Sync {
    /// Runs the model on one tensor for each of its inputs. The error says what is wrong, without the file.
    fn run(&self, inputs: Vec<Tensor>) -> Result<Output, String>;
}

/// The lengths that inputs will have.
pub(crate) enum InputShapes {
    /// One input of this shape.
    Fixed(Vec<usize>),
    /// Every input has rows of tokens: `[batch, tokens]`, both of any length.
    Tokens,
}

/// Makes a model ready to run.
pub(crate) fn open(
    model: &OnnxModel,
    output: &str,
    shapes: &InputShapes,
    runtime: Runtime,
    library: Option<&Path>,
) -> Result<Box<dyn Session>> {
    let cannot_run = |reason: String| {
        EncodeError::unfit(&model.path, format!("the model cannot be run by {}: {reason}", name(runtime)))
    };
    match runtime {
        #[cfg(feature = "encoders")]
        Runtime::Tract => Ok(Box::new(tract::TractSession::new(model, output, shapes).map_err(cannot_run)?)),
        #[cfg(not(feature = "encoders"))]
        Runtime::Tract => {
            let _ = (output, shapes);
            Err(cannot_run(WITHOUT_ENCODERS.into()))
        }
        #[cfg(feature = "ort")]
        Runtime::OnnxRuntime => {
            let session = onnxruntime::OnnxRuntimeSession::new(model, output, shapes, library);
            Ok(Box::new(session.map_err(cannot_run)?))
        }
        #[cfg(not(feature = "ort"))]
        Runtime::OnnxRuntime => {
            let _ = library;
            Err(cannot_run("this program is built without it (cargo feature `ort`)".into()))
        }
    }
}

fn name(runtime: Runtime) -> &'static str {
    match runtime {
        Runtime::Tract => "tract",
        Runtime::OnnxRuntime => "ONNX Runtime",
    }
}
