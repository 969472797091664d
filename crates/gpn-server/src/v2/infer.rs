//! `POST /v2/models/NAME/infer`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, header};
use axum::response::{IntoResponse as _, Response};
use gpn::{Among, InputShape, PredictRequest, Sample};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Failure;
use super::tensor::{Described, Input, Output, OutputValues, Values, image_file};
use crate::api::beside;
use crate::app::App;
use crate::http::body::{check_pixels, json, receive};
use crate::http::extract::{ModelInPath, VersionInPath};
use crate::http::problem::Problem;
use crate::model::Model;

/// Tells where the JSON ends and the bytes begin.
const HEAD: HeaderName = HeaderName::from_static("inference-header-content-length");

#[derive(Deserialize)]
struct InferRequest {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    parameters: Map<String, Value>,
    inputs: Vec<Input>,
    #[serde(default)]
    outputs: Vec<AskedOutput>,
}

#[derive(Deserialize)]
struct AskedOutput {
    name: String,
    #[serde(default)]
    parameters: Map<String, Value>,
}

#[derive(Serialize)]
struct InferResponse {
    model_name: String,
    model_version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    outputs: Vec<Described>,
}

pub(crate) async fn infer(
    State(app): State<Arc<App>>,
    ModelInPath(name): ModelInPath,
    VersionInPath(number): VersionInPath,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Failure> {
    let model = app.model(Some(&name))?;
    let arriving = model.gather.arriving();
    let received = receive(&app, &headers, body).await?;
    let head = match headers.get(HEAD) {
        None => received.bytes.len(),
        Some(length) => length
            .to_str()
            .ok()
            .and_then(|length| length.parse().ok())
            .filter(|&length: &usize| length <= received.bytes.len())
            .ok_or_else(|| Problem::bad_input("Inference-Header-Content-Length does not fit the body"))?,
    };
    let (text, binary) = received.bytes.split_at(head);
    let request: InferRequest = json(text, "the request")?;
    let samples = samples(&app, &model, &request, binary)?;
    let asked = outputs(&request)?;
    let question = question(&request.parameters)?;
    let count = samples.len();
    let version = match number {
        None => model.version(),
        Some(number) => {
            let model = Arc::clone(&model);
            beside(move || model.version_at(number)).await?
        }
    };
    let mut embeddings = Vec::with_capacity(count);
    for embedded in model.gather.embed(samples, Some(arriving)).await? {
        embeddings.push(embedded?);
    }
    let (model_name, dim) = (model.name.clone(), model.dim);
    let response = beside(move || {
        let predictor = version.predictor(&question)?;
        let candidates = predictor.candidates();
        let classes = candidates.classes();
        let mut best = Vec::with_capacity(count);
        let mut probabilities = vec![0.0; count * classes.len()];
        for (row, embedding) in probabilities.chunks_exact_mut(classes.len().max(1)).zip(&embeddings) {
            let ranked = candidates.rank(embedding, usize::MAX);
            best.push(ranked.first().map(|best| classes[best.class].id.clone()).unwrap_or_default());
            for ranked in ranked {
                row[ranked.class] = ranked.probability as f32;
            }
        }
        let (mut best, mut probabilities) = (Some(best), Some(probabilities));
        let mut binary = Vec::new();
        let mut described = Vec::new();
        for (name, as_bytes) in asked {
            let (shape, values) = match name {
                "class_id" => (vec![count], OutputValues::Texts(best.take().unwrap_or_default())),
                "probabilities" => {
                    let values = probabilities.take().unwrap_or_default();
                    (vec![count, classes.len()], OutputValues::Fp32(values))
                }
                "classes" => {
                    let ids = classes.iter().map(|class| class.id.clone()).collect();
                    (vec![classes.len()], OutputValues::Texts(ids))
                }
                _ => (vec![count, dim], OutputValues::Fp32(embeddings.concat())),
            };
            let output = Output { name, shape, values };
            described.push(output.describe(as_bytes.then_some(&mut binary)));
        }
        let response = InferResponse {
            model_name,
            model_version: version.number.to_string(),
            id: request.id,
            outputs: described,
        };
        // invariant: plain data always serialise.
        let head = serde_json::to_vec(&response).unwrap();
        Ok((head, binary))
    })
    .await?;
    let (mut bytes, binary) = response;
    if binary.is_empty() {
        return Ok(([(header::CONTENT_TYPE, "application/json")], bytes).into_response());
    }
    let length = bytes.len().to_string();
    bytes.extend(binary);
    Ok(([(header::CONTENT_TYPE, "application/octet-stream".to_owned()), (HEAD, length)], bytes)
        .into_response())
}

/// The outputs that are asked for, and whether each is sent as bytes.
fn outputs(request: &InferRequest) -> Result<Vec<(&'static str, bool)>, Problem> {
    const KNOWN: [&str; 4] = ["class_id", "probabilities", "classes", "embedding"];
    let all_binary = request.parameters.get("binary_data_output").and_then(Value::as_bool).unwrap_or(false);
    if request.outputs.is_empty() {
        return Ok(vec![("class_id", all_binary), ("probabilities", all_binary)]);
    }
    let mut found: Vec<(&'static str, bool)> = Vec::new();
    for output in &request.outputs {
        let name = KNOWN.into_iter().find(|known| *known == output.name).ok_or_else(|| {
            let name: String = output.name.chars().take(64).collect();
            Problem::bad_input(&format!("there is no output `{name}`; there are {}", KNOWN.join(", ")))
        })?;
        if found.iter().any(|(other, _)| *other == name) {
            return Err(Problem::bad_input(&format!("output `{name}` is asked for twice")));
        }
        let binary = output.parameters.get("binary_data").and_then(Value::as_bool).unwrap_or(all_binary);
        found.push((name, binary));
    }
    Ok(found)
}

/// What is asked beside the samples: the classes to choose from (`taught`, `below`) and `lambda`.
fn question(parameters: &Map<String, Value>) -> Result<PredictRequest, Problem> {
    let mut request = PredictRequest::default();
    if parameters.get("taught").and_then(Value::as_bool) == Some(true) {
        request.among = Among::Taught;
    }
    if let Some(below) = parameters.get("below") {
        let below =
            below.as_str().ok_or_else(|| Problem::bad_input("parameter `below` is the id of a class"))?;
        request.among = Among::Below(below.to_owned());
    }
    if let Some(lambda) = parameters.get("lambda") {
        let lambda = lambda.as_f64().filter(|lambda| (0.0..=1.0).contains(lambda));
        let lambda =
            lambda.ok_or_else(|| Problem::bad_input("parameter `lambda` is a weight between 0 and 1"))?;
        request.lambda = Some(lambda as f32);
    }
    Ok(request)
}

/// The samples of the one input.
fn samples(app: &App, model: &Model, request: &InferRequest, binary: &[u8]) -> Result<Vec<Sample>, Problem> {
    let [input] = &request.inputs[..] else {
        return Err(Problem::bad_input(&format!(
            "there are {} inputs; one is expected",
            request.inputs.len()
        )));
    };
    let bytes = match input.binary_size()? {
        None if !binary.is_empty() => {
            return Err(Problem::bad_input("there are bytes behind the JSON that no input names"));
        }
        None => None,
        Some(size) if size == binary.len() => Some(binary),
        Some(size) => {
            return Err(Problem::bad_input(&format!(
                "the input names {size} bytes behind the JSON, and there are {}",
                binary.len()
            )));
        }
    };
    let limits = &app.settings.limits;
    let count = |count: u64| {
        if count == 0 || count > limits.samples as u64 {
            return Err(Problem::too_large(&format!(
                "there are {count} samples; 1 to {} are taken",
                limits.samples
            )));
        }
        Ok(())
    };
    let wrong = |expected: &str| {
        Problem::bad_input(&format!("the shape is {:?}; {} has {expected}", input.shape, input.datatype))
    };
    match (input.values(bytes)?, &input.shape[..]) {
        (Values::Fp32(values), &[rows, dim]) if dim > 0 => {
            count(rows)?;
            let takes_images = matches!(model.version().classifier.input(), InputShape::Image { .. });
            let rows = values.chunks_exact(dim as usize).enumerate().map(|(row, values)| {
                let name = format!("row {row}");
                if takes_images {
                    Sample::embedded(name, values.to_vec())
                } else {
                    Sample::embedding(name, values.to_vec())
                }
            });
            Ok(rows.collect())
        }
        (Values::Fp32(_), _) => Err(wrong("[n, dim]")),
        (Values::Uint8(pixels), &[images, height, width, 3]) if height > 0 && width > 0 => {
            count(images)?;
            if height.saturating_mul(width) > limits.pixels {
                return Err(Problem::too_large(&format!("an image has more than {} pixels", limits.pixels)));
            }
            let (height, width) = (height as usize, width as usize);
            let images = pixels.chunks_exact(height * width * 3).enumerate();
            Ok(images
                .map(|(row, pixels)| Sample::image(format!("image {row}"), image_file(width, height, pixels)))
                .collect())
        }
        (Values::Uint8(_), _) => Err(wrong("[n, height, width, 3]")),
        (Values::Bytes(files), [_] | [_, 1]) => {
            count(files.len() as u64)?;
            let mut samples = Vec::with_capacity(files.len());
            for (row, file) in files.into_iter().enumerate() {
                let name = format!("image {row}");
                check_pixels(&file, &name, limits.pixels)?;
                samples.push(Sample::image(name, file));
            }
            Ok(samples)
        }
        (Values::Bytes(_), _) => Err(wrong("[n]")),
    }
}
