//! Models run by an installed ONNX Runtime, whose shared library is loaded at run time.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use gpn_data::contain;
use ort::session::{Session as OrtSession, SessionInputValue};
use ort::value::Tensor as OrtTensor;

use super::{InputShapes, Output, Session, Tensor};
use crate::onnx::OnnxModel;

/// A loaded model for each thread that runs at the same time. They share the library, not the weights.
pub(super) struct OnnxRuntimeSession {
    idle: Mutex<Vec<OrtSession>>,
    model: std::path::PathBuf,
    environment: ort::environment::Environment,
    inputs: Vec<String>,
    output: String,
}

impl OnnxRuntimeSession {
    pub(super) fn new(
        model: &OnnxModel,
        output: &str,
        _shapes: &InputShapes,
        library: Option<&Path>,
    ) -> Result<Self, String> {
        let library = library.ok_or("the path of its shared library (libonnxruntime.so) is not set")?;
        let load = || -> Result<ort::environment::Environment, String> {
            let builder = ort::init_from(library).map_err(|error| error.to_string())?;
            builder.with_telemetry(false).build().map_err(|error| error.to_string())
        };
        let environment =
            contain(load).unwrap_or_else(|| Err(format!("{} is no such library", library.display())))?;
        let session = Self {
            idle: Mutex::new(Vec::new()),
            model: model.path.clone(),
            environment,
            inputs: model.inputs.iter().map(|input| input.name.clone()).collect(),
            output: output.to_owned(),
        };
        let first = session.load()?;
        session.put_back(first);
        Ok(session)
    }

    /// One thread each: images are spread over threads, which is faster than several threads for one image.
    fn load(&self) -> Result<OrtSession, String> {
        let load = || -> Result<OrtSession, String> {
            let builder = OrtSession::builder(&self.environment).map_err(|error| error.to_string())?;
            let mut builder = builder.with_intra_threads(1).map_err(|error| error.to_string())?;
            builder.commit_from_file(&self.model).map_err(|error| error.to_string())
        };
        contain(load).unwrap_or_else(|| Err("it cannot be loaded".into()))
    }

    fn put_back(&self, session: OrtSession) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(session);
    }
}

impl Session for OnnxRuntimeSession {
    fn run(&self, inputs: Vec<Tensor>) -> Result<Output, String> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut session = idle.map_or_else(|| self.load(), Ok)?;
        let run = || -> ort::Result<Output> {
            let mut given: Vec<(String, SessionInputValue<'_>)> = Vec::new();
            for (name, tensor) in self.inputs.iter().zip(inputs) {
                let value = match tensor {
                    Tensor::F32(shape, values) => OrtTensor::from_array((shape, values))?.into_dyn(),
                    Tensor::I64(shape, values) => OrtTensor::from_array((shape, values))?.into_dyn(),
                    Tensor::I32(shape, values) => OrtTensor::from_array((shape, values))?.into_dyn(),
                };
                given.push((name.clone(), value.into()));
            }
            let outputs = session.run(given)?;
            let (shape, values) = outputs[self.output.as_str()].try_extract_tensor::<f32>()?;
            Ok(Output {
                shape: shape.iter().map(|&length| usize::try_from(length).unwrap_or(0)).collect(),
                values: values.to_vec(),
            })
        };
        let output = contain(run).unwrap_or_else(|| Err(ort::Error::new("it stopped in an unknown way")));
        self.put_back(session);
        output.map_err(|error| error.to_string().replace('\n', " "))
    }
}
