//! `POST /test`.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use gpn::PredictRequest;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answers::Problems;
use super::beside;
use super::given::{Form, check_count, embedding, form, image};
use super::predict::{Answer, answer};
use super::schema::{Failed, RequestSchema};
use crate::app::App;
use crate::http::body::{json, receive};
use crate::http::extract::Of;
use crate::http::problem::Problem;

/// Labelled samples as JSON.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TestBody {
    /// The samples.
    #[schema(min_items = 1, max_items = 512)]
    samples: Vec<Labelled>,
    /// What is asked: `top` says which answers count as right in `top_accuracy`.
    #[serde(default)]
    #[schema(value_type = Option<RequestSchema>)]
    request: Option<PredictRequest>,
}

/// A sample and its class.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Labelled {
    /// The class it belongs to, by id or name.
    class: String,
    /// Its numbers.
    embedding: Vec<f32>,
}

/// Labelled samples as a form: the name of a field is the class of its files.
#[derive(ToSchema)]
#[expect(dead_code, reason = "a type that describes")]
pub(crate) struct TestForm {
    /// What is asked.
    request: Option<RequestSchema>,
}

/// How well samples were told apart.
#[derive(Serialize, ToSchema)]
pub(crate) struct TestResult {
    /// The version of the model.
    version: u64,
    /// Samples that were answered.
    samples: usize,
    /// Samples that could not be read.
    #[schema(value_type = Vec<Failed>)]
    failed: Vec<serde_json::Value>,
    /// Share of the samples whose likeliest class is the right one; `null` without samples.
    accuracy: Option<f64>,
    /// Share of the samples whose class is among the `top` likeliest.
    top_accuracy: Option<f64>,
    /// How many classes `top_accuracy` looks at.
    top: usize,
    /// The classes of the samples.
    classes: Vec<ClassResult>,
    /// Which classes were taken for which: right answers are left out, the most frequent come first.
    confusion: Vec<Confusion>,
}

/// The samples of one class.
#[derive(Serialize, ToSchema)]
pub(crate) struct ClassResult {
    /// The id of the class.
    id: String,
    /// Its name.
    name: String,
    /// Samples that were answered.
    samples: usize,
    /// Right answers.
    correct: usize,
}

/// Samples of one class that were taken for another.
#[derive(Serialize, ToSchema)]
pub(crate) struct Confusion {
    /// The id of the right class.
    truth: String,
    /// The id of the class that was answered.
    answer: String,
    /// How many.
    count: usize,
}

/// Tells how well the model does on labelled samples. Nothing is changed.
#[utoipa::path(
    post, path = "/test",
    request_body(content((TestForm = "multipart/form-data"), (TestBody = "application/json"))),
    responses((status = 200, body = TestResult), Problems)
)]
pub(crate) async fn test(
    State(app): State<Arc<App>>,
    Of(model): Of,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<TestResult>, Problem> {
    let received = receive(&app, &headers, body).await?;
    let mut request = None;
    let mut samples = Vec::new();
    match form(&app, &received).await? {
        Form::Parts(parts) => {
            for part in parts {
                if part.file.is_none() && part.name == "request" {
                    request = Some(json(&part.bytes, "the field `request`")?);
                } else {
                    samples.push(image(&app, part)?);
                }
            }
        }
        Form::Json => {
            let body: TestBody = received.json()?;
            request = body.request;
            for (row, labelled) in body.samples.into_iter().enumerate() {
                let mut given = embedding(&model, format!("row {row}"), labelled.embedding);
                given.field = labelled.class;
                samples.push(given);
            }
        }
        Form::Raw => return Err(Problem::unsupported("raw numbers have no labels; send a form or JSON")),
    }
    check_count(&app, samples.len())?;
    let mut request: PredictRequest = request.unwrap_or_default();
    request.top = request.top.max(1);
    let version = model.version();
    let mut truths = Vec::with_capacity(samples.len());
    for sample in &samples {
        truths.push(version.classifier.class(&sample.field)?);
    }
    let top = request.top;
    let answers = answer(&model, &version, samples, request, None).await?;
    beside(move || {
        let mut result = TestResult {
            version: version.number,
            samples: 0,
            failed: Vec::new(),
            accuracy: None,
            top_accuracy: None,
            top,
            classes: Vec::new(),
            confusion: Vec::new(),
        };
        let mut classes: BTreeMap<String, ClassResult> = BTreeMap::new();
        let mut confusion: BTreeMap<(String, String), usize> = BTreeMap::new();
        let (mut correct, mut among_top) = (0_usize, 0_usize);
        for (truth, (answer, _)) in truths.into_iter().zip(answers) {
            let prediction = match answer {
                Answer::Prediction(prediction) => prediction,
                failed @ Answer::Failed { .. } => {
                    result.failed.push(serde_json::to_value(&failed).unwrap_or_default());
                    continue;
                }
            };
            result.samples += 1;
            let best = prediction.classes.first().map(|class| class.id.clone()).unwrap_or_default();
            let class = classes.entry(truth.id.clone()).or_insert_with(|| ClassResult {
                id: truth.id.clone(),
                name: truth.name,
                samples: 0,
                correct: 0,
            });
            class.samples += 1;
            among_top += usize::from(prediction.classes.iter().any(|class| class.id == truth.id));
            if best == truth.id {
                correct += 1;
                class.correct += 1;
            } else {
                *confusion.entry((truth.id, best)).or_default() += 1;
            }
        }
        let share = |count: usize| (result.samples > 0).then(|| count as f64 / result.samples as f64);
        (result.accuracy, result.top_accuracy) = (share(correct), share(among_top));
        result.classes = classes.into_values().collect();
        let pairs = confusion.into_iter().map(|((truth, answer), count)| Confusion { truth, answer, count });
        result.confusion = pairs.collect();
        result.confusion.sort_by_key(|pair| std::cmp::Reverse(pair.count));
        Ok(Json(result))
    })
    .await
}
