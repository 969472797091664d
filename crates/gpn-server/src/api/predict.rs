//! `POST /predict`.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use gpn::{PredictRequest, Prediction, Sample, Watch};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::answers::Problems;
use super::beside;
use super::given::{EmbeddingsBody, GivenSample, ImagesForm, question};
use super::schema::AnswerSchema;
use crate::app::App;
use crate::http::body::receive;
use crate::http::extract::{Asked, Of};
use crate::http::problem::Problem;
use crate::model::{Model, Version};

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PredictQuery {
    /// Ask the version after this change instead of the current one.
    pub(crate) version: Option<u64>,
    /// What is asked, as JSON: for raw numbers, which have no room for it in the body.
    #[param(value_type = Option<String>)]
    pub(crate) request: Option<String>,
}

/// A prediction for each sample.
#[derive(Serialize, ToSchema)]
pub(crate) struct Predictions {
    /// The version of the model that answered.
    version: u64,
    /// One for each sample, in their order.
    #[schema(value_type = Vec<AnswerSchema>)]
    predictions: Vec<Answer>,
}

/// A prediction, or what is wrong with the sample.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Answer {
    Prediction(Prediction),
    Failed { file: String, error: String },
}

/// Which classes samples belong to.
///
/// One sample or many: image files in a form, or embeddings as JSON or as raw float32. Requests that arrive at the same time are
/// embedded together; the answers are those of each alone, to the last bit.
#[utoipa::path(
    post, path = "/predict", params(PredictQuery),
    request_body(content((ImagesForm = "multipart/form-data"), (EmbeddingsBody = "application/json"), (Vec<u8> = "application/octet-stream"))),
    responses((status = 200, body = Predictions), Problems)
)]
pub(crate) async fn predict(
    State(app): State<Arc<App>>,
    Of(model): Of,
    Asked(query): Asked<PredictQuery>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Predictions>, Problem> {
    let arriving = model.gather.arriving();
    let received = receive(&app, &headers, body).await?;
    let (samples, request) = question(&app, &model, &received, query.request.as_deref()).await?;
    let version = version(&model, query.version).await?;
    let answered = answer(&model, &version, samples, request, Some(arriving)).await?;
    let predictions = answered.into_iter().map(|(answer, _)| answer).collect();
    Ok(Json(Predictions { version: version.number, predictions }))
}

/// The version that is asked.
pub(crate) async fn version(model: &Arc<Model>, number: Option<u64>) -> Result<Arc<Version>, Problem> {
    match number {
        None => Ok(model.version()),
        Some(number) => {
            let model = Arc::clone(model);
            beside(move || model.version_at(number)).await
        }
    }
}

/// Embeds samples together with those of other requests, then ranks the classes. Embeddings come along.
pub(crate) async fn answer(
    model: &Arc<Model>,
    version: &Arc<Version>,
    samples: Vec<GivenSample>,
    request: PredictRequest,
    arriving: Option<crate::model::Arriving>,
) -> Result<Vec<(Answer, Option<Vec<f32>>)>, Problem> {
    let samples: Vec<_> = samples.into_iter().map(|given| given.sample).collect();
    let names: Vec<String> = samples.iter().map(|sample| sample.name.clone()).collect();
    let embedded = model.gather.embed(samples, arriving).await?;
    let version = Arc::clone(version);
    beside(move || {
        let predictor = version.predictor(&request)?;
        let readable = names
            .iter()
            .zip(&embedded)
            .filter_map(|(name, embedded)| Some(Sample::embedded(name, embedded.as_ref().ok()?.clone())));
        let readable: Vec<Sample> = readable.collect();
        let mut predictions = predictor.predict(&readable, &Watch::default())?.into_iter();
        let mut answers = Vec::with_capacity(names.len());
        for (file, embedded) in names.into_iter().zip(embedded) {
            answers.push(match embedded {
                // invariant: there is one prediction for each embedding.
                Ok(embedding) => (Answer::Prediction(predictions.next().unwrap()?), Some(embedding)),
                Err(error) => (Answer::Failed { file, error: error.to_string() }, None),
            });
        }
        Ok(answers)
    })
    .await
}
