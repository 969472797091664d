//! `POST /explain`.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use gpn::Prediction;
use serde::Serialize;
use utoipa::ToSchema;

use super::answers::{Named, Problems, SampleEntry, path};
use super::beside;
use super::given::{EmbeddingsBody, ImagesForm, question};
use super::predict::{Answer, PredictQuery, answer, version};
use super::schema::PredictionSchema;
use crate::app::App;
use crate::http::body::receive;
use crate::http::extract::{Asked, Of};
use crate::http::problem::Problem;

/// Support samples that are told.
const NEAREST: usize = 8;

/// A prediction and why.
#[derive(Serialize, ToSchema)]
pub(crate) struct Explanation {
    /// The version of the model that answered.
    version: u64,
    /// The prediction; `shaped_by` tells what shaped the prototype of the likeliest class.
    #[schema(value_type = PredictionSchema)]
    prediction: Prediction,
    /// The way from the top of the class graph to the likeliest class.
    path: Vec<Named>,
    /// The taught samples of the likeliest class that are nearest to this one.
    nearest_samples: Vec<NearSample>,
}

/// A taught sample near to the one asked about.
#[derive(Serialize, ToSchema)]
pub(crate) struct NearSample {
    /// The id of its class.
    class: String,
    /// The sample.
    #[serde(flatten)]
    sample: SampleEntry,
    /// Squared distance between the embeddings.
    distance: f32,
}

/// Why a sample is what it is said to be: one sample, as for `/predict`.
#[utoipa::path(
    post, path = "/explain", params(PredictQuery),
    request_body(content((ImagesForm = "multipart/form-data"), (EmbeddingsBody = "application/json"), (Vec<u8> = "application/octet-stream"))),
    responses((status = 200, body = Explanation), Problems)
)]
pub(crate) async fn explain(
    State(app): State<Arc<App>>,
    Of(model): Of,
    Asked(query): Asked<PredictQuery>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Explanation>, Problem> {
    let received = receive(&app, &headers, body).await?;
    let (samples, mut request) = question(&app, &model, &received, query.request.as_deref()).await?;
    if samples.len() != 1 {
        return Err(Problem::bad_input(&format!(
            "there are {} samples; one is explained at a time",
            samples.len()
        )));
    }
    request.explain = true;
    let version = version(&model, query.version).await?;
    let (prediction, embedding) = match answer(&model, &version, samples, request, None).await?.pop() {
        Some((Answer::Prediction(prediction), Some(embedding))) => (prediction, embedding),
        Some((Answer::Failed { error, .. }, _)) => return Err(Problem::bad_input(&error)),
        _ => return Err(Problem::bug("there is no answer")),
    };
    beside(move || {
        let best = prediction.classes.first().map(|class| class.id.clone()).unwrap_or_default();
        let nearest = model.nearest_samples(&best, &embedding, NEAREST)?;
        let near = |(number, sample, distance)| NearSample {
            class: best.clone(),
            sample: SampleEntry::new(number, &sample),
            distance,
        };
        Ok(Json(Explanation {
            version: version.number,
            path: path(&version, &best),
            nearest_samples: nearest.into_iter().map(near).collect(),
            prediction,
        }))
    })
    .await
}
