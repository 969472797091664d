//! The samples of a request: image files in a form, or embeddings as JSON or as raw numbers.

use bytes::Bytes;
use gpn::{InputShape, PredictRequest, Sample};
use serde::Deserialize;
use utoipa::ToSchema;

use super::schema::RequestSchema;
use crate::app::App;
use crate::http::body::{Part, Received, check_pixels, json, raw_rows};
use crate::http::problem::Problem;
use crate::model::Model;

const FORM: &str = "multipart/form-data";
const JSON: &str = "application/json";
const RAW: &str = "application/octet-stream";

/// A sample that was given, and its image where it is one.
pub(crate) struct GivenSample {
    pub(crate) sample: Sample,
    pub(crate) image: Option<Bytes>,
    /// The field of the form that it came in.
    pub(crate) field: String,
}

/// How a body is written.
pub(crate) enum Form {
    /// Image files and fields.
    Parts(Vec<Part>),
    /// A JSON document.
    Json,
    /// Numbers as they lie in memory.
    Raw,
}

/// Tells how a body is written, by its content type.
pub(crate) async fn form(app: &App, received: &Received) -> Result<Form, Problem> {
    match received.media_type().as_str() {
        FORM => Ok(Form::Parts(received.parts(app.settings.limits.samples).await?)),
        JSON => Ok(Form::Json),
        RAW => Ok(Form::Raw),
        other => Err(Problem::unsupported(&format!(
            "the content type is `{}`; it can be {FORM}, {JSON} or {RAW}",
            other.chars().take(64).collect::<String>()
        ))),
    }
}

/// An image file of a form.
pub(crate) fn image(app: &App, part: Part) -> Result<GivenSample, Problem> {
    let name = part.file.filter(|name| !name.is_empty()).unwrap_or_else(|| part.name.clone());
    check_pixels(&part.bytes, &name, app.settings.limits.pixels)?;
    let sample = Sample::image(name, part.bytes.to_vec());
    Ok(GivenSample { sample, image: Some(part.bytes), field: part.name })
}

/// An embedding: what the model takes, or for a model of images what its own network made.
pub(crate) fn embedding(model: &Model, name: String, values: Vec<f32>) -> GivenSample {
    let sample = match model.version().classifier.input() {
        InputShape::Embedding { .. } => Sample::embedding(name, values),
        InputShape::Image { .. } => Sample::embedded(name, values),
    };
    GivenSample { sample, image: None, field: String::new() }
}

/// How many numbers an embedding has.
pub(crate) fn embedding_len(model: &Model) -> usize {
    match model.version().classifier.input() {
        InputShape::Embedding { len } => len,
        InputShape::Image { .. } => model.dim,
    }
}

/// Embeddings, named by their position.
pub(crate) fn embeddings(model: &Model, rows: Vec<Vec<f32>>) -> Vec<GivenSample> {
    rows.into_iter().enumerate().map(|(row, values)| embedding(model, format!("row {row}"), values)).collect()
}

/// Raw rows of embeddings.
pub(crate) fn raw(model: &Model, bytes: &[u8]) -> Result<Vec<GivenSample>, Problem> {
    Ok(embeddings(model, raw_rows(bytes, embedding_len(model))?))
}

/// Refuses more samples than may be, and none.
pub(crate) fn check_count(app: &App, count: usize) -> Result<(), Problem> {
    let limit = app.settings.limits.samples;
    if count == 0 {
        return Err(Problem::bad_input("there are no samples; give at least one"));
    }
    if count > limit {
        return Err(Problem::too_large(&format!(
            "there are {count} samples, more than the limit of {limit}"
        )));
    }
    Ok(())
}

/// Samples as JSON.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EmbeddingsBody {
    /// One list of numbers for each sample.
    #[schema(min_items = 1, max_items = 512)]
    embeddings: Vec<Vec<f32>>,
    /// What is asked.
    #[serde(default)]
    #[schema(value_type = Option<RequestSchema>)]
    request: Option<PredictRequest>,
}

/// Samples as a form: any number of image files, and a field `request`.
#[derive(ToSchema)]
#[expect(dead_code, reason = "a type that describes")]
pub(crate) struct ImagesForm {
    /// Image files: JPEG, PNG, WebP, BMP, GIF.
    #[schema(value_type = Vec<String>, format = Binary)]
    image: Vec<Vec<u8>>,
    /// What is asked.
    request: Option<RequestSchema>,
}

/// Samples and what is asked of them, however they were sent. `request` is that of the address, for raw numbers.
pub(crate) async fn question(
    app: &App,
    model: &Model,
    received: &Received,
    request: Option<&str>,
) -> Result<(Vec<GivenSample>, PredictRequest), Problem> {
    let mut asked = match request {
        Some(text) => Some(json(text.as_bytes(), "`request` in the address")?),
        None => None,
    };
    let mut samples = Vec::new();
    match form(app, received).await? {
        Form::Parts(parts) => {
            for part in parts {
                match part.file {
                    Some(_) => samples.push(image(app, part)?),
                    None if part.name == "request" => asked = Some(json(&part.bytes, "the field `request`")?),
                    None => return Err(Problem::bad_input(&unknown_field(&part.name, &["request"]))),
                }
            }
        }
        Form::Json => {
            let body: EmbeddingsBody = received.json()?;
            asked = body.request.or(asked);
            samples = embeddings(model, body.embeddings);
        }
        Form::Raw => samples = raw(model, &received.bytes)?,
    }
    check_count(app, samples.len())?;
    let request: PredictRequest = asked.unwrap_or_default();
    if request.top == 0 {
        return Err(Problem::bad_input("`top` is 0; ask for at least one class"));
    }
    if request.lambda.is_some_and(|lambda| !(0.0..=1.0).contains(&lambda)) {
        return Err(Problem::bad_input("`lambda` is a weight between 0 and 1"));
    }
    Ok((samples, request))
}

/// What to say about a field that nobody reads.
pub(crate) fn unknown_field(name: &str, known: &[&str]) -> String {
    let name: String = name.chars().take(64).collect();
    format!("the form has a field `{name}` that is no file; fields are: {}", known.join(", "))
}
