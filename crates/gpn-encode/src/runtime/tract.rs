//! Models run by tract, in pure Rust, on the calling thread.

use std::sync::Arc;

use gpn_data::contain;
use tract_onnx::prelude::*;

use super::{InputShapes, Output, Session};
use crate::onnx::{INT32, OnnxModel};

/// A compiled model; threads share it.
pub(super) struct TractSession {
    plan: Arc<TypedSimplePlan>,
}

impl TractSession {
    pub(super) fn new(model: &OnnxModel, output: &str, shapes: &InputShapes) -> Result<Self, String> {
        let compiled = contain(|| compile(model, output, shapes));
        let compiled = compiled.unwrap_or_else(|| Err(TractError::msg("its graph is damaged")));
        Ok(Self { plan: compiled.map_err(|error| reason(&error))? })
    }
}

fn compile(model: &OnnxModel, output: &str, shapes: &InputShapes) -> TractResult<Arc<TypedSimplePlan>> {
    let folder = model.path.parent().and_then(std::path::Path::to_str);
    // What the file declares about values between its steps names its own symbols, such as an open batch, which would not agree with
    // the shapes given here; shapes and types follow from the inputs.
    let mut graph = tract_onnx::onnx().with_ignore_value_info(true).parse(&model.proto, folder)?.model;
    let (batch, tokens) = (graph.symbols.sym("gpn_batch"), graph.symbols.sym("gpn_tokens"));
    for (place, input) in model.inputs.iter().enumerate() {
        let fact = match shapes {
            InputShapes::Fixed(shape) => f32::fact(shape.as_slice()),
            InputShapes::Tokens => {
                let lengths: [TDim; 2] = [batch.clone().into(), tokens.clone().into()];
                if input.element == INT32 { i32::fact(lengths) } else { i64::fact(lengths) }
            }
        };
        graph.set_input_fact(place, fact.into())?;
    }
    // What the file declares about its output may name other symbols.
    graph.select_outputs_by_name([output])?;
    for place in 0..graph.outputs.len() {
        graph.set_output_fact(place, InferenceFact::default())?;
    }
    graph.into_optimized()?.into_runnable()
}

impl Session for TractSession {
    fn run(&self, inputs: Vec<super::Tensor>) -> Result<Output, String> {
        let inputs: TractResult<TVec<TValue>> = inputs.into_iter().map(value).collect();
        let run = || -> TractResult<Output> {
            let outputs = self.plan.run(inputs?)?;
            let output = outputs[0].cast_to::<f32>()?;
            Ok(Output {
                shape: output.shape().to_vec(),
                values: output.try_as_plain_ram()?.as_slice::<f32>()?.to_vec(),
            })
        };
        contain(run)
            .unwrap_or_else(|| Err(TractError::msg("a step of its graph does not fit its input")))
            .map_err(|error| reason(&error))
    }
}

fn value(tensor: super::Tensor) -> TractResult<TValue> {
    Ok(match tensor {
        super::Tensor::F32(shape, values) => Tensor::from_shape(&shape, &values)?,
        super::Tensor::I64(shape, values) => Tensor::from_shape(&shape, &values)?,
        super::Tensor::I32(shape, values) => Tensor::from_shape(&shape, &values)?,
    }
    .into())
}

/// The innermost cause, which names the step and the shapes, on one line.
fn reason(error: &TractError) -> String {
    let causes: Vec<String> = error.chain().map(|cause| cause.to_string().replace('\n', " ")).collect();
    let text = causes.join(": ");
    text.chars().take(400).collect()
}
