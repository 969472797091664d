//! `POST /teach`.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use gpn::{IfTaught, Parents, Taught};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::answers::{ClassState, Problems};
use super::beside;
use super::given::{Form, GivenSample, check_count, embeddings, form, image, raw, unknown_field};
use super::schema::TaughtSchema;
use crate::app::App;
use crate::clock;
use crate::http::body::receive;
use crate::http::extract::{Caller, Of, query};
use crate::http::problem::Problem;
use crate::model::{KeptSample, Model, NewSample, TeachClass};

/// Classes whose state before and after is told.
const TOLD: usize = 8;
/// The longest name of a sample that is kept.
const NAME: usize = 200;

/// Where a class stands, if no parents are given.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Place {
    /// Where the class graph of the model has it; otherwise unknown.
    #[default]
    FromGraph,
    /// Unknown: it is linked to the nearest training classes.
    Unknown,
}

/// What is done with a class that has been taught before.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = IfTaught)]
pub(crate) enum IfTaughtSchema {
    /// It is a conflict.
    #[default]
    Refuse,
    /// The samples join those it has.
    Add,
    /// The samples replace those it has.
    Replace,
}

/// Classes and their samples as JSON.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TeachBody {
    /// The classes.
    #[schema(min_items = 1, max_items = 512)]
    classes: Vec<ClassBody>,
    /// What is done with a class that has been taught before.
    #[serde(default)]
    #[schema(value_type = Option<IfTaughtSchema>)]
    if_taught: IfTaught,
}

/// A class and its samples.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClassBody {
    /// Its id, or a new name.
    class: String,
    /// Its parents, by id or name.
    #[serde(default)]
    parents: Vec<String>,
    /// Where it stands, if no parents are given.
    #[serde(default)]
    #[schema(value_type = Option<Place>)]
    place: Place,
    /// One list of numbers for each sample.
    #[schema(min_items = 1, max_items = 512)]
    embeddings: Vec<Vec<f32>>,
}

/// A class and its samples as a form.
#[derive(ToSchema)]
#[expect(dead_code, reason = "a type that describes")]
pub(crate) struct TeachForm {
    /// Its id, or a new name.
    class: String,
    /// Its parents, by id or name.
    parents: Option<Vec<String>>,
    /// Where it stands, if no parents are given.
    place: Option<Place>,
    /// What is done if it has been taught before.
    if_taught: Option<IfTaughtSchema>,
    /// Image files: JPEG, PNG, WebP, BMP, GIF.
    #[schema(value_type = Vec<String>, format = Binary)]
    image: Vec<Vec<u8>>,
}

/// A class in the address, for samples as raw numbers.
#[derive(Default, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "a type that describes")]
pub(crate) struct TeachQuery {
    /// The class, for raw numbers.
    class: Option<String>,
    /// A parent; may be given several times.
    parents: Option<Vec<String>>,
    /// Where it stands, if no parents are given.
    #[param(inline)]
    place: Option<Place>,
    /// What is done if it has been taught before.
    #[param(inline)]
    if_taught: Option<IfTaughtSchema>,
}

/// What teaching came to.
#[derive(Serialize, ToSchema)]
pub(crate) struct Lesson {
    /// The version of the model from now on.
    version: u64,
    /// The classes that were taught.
    #[schema(value_type = Vec<TaughtSchema>)]
    taught: Vec<Taught>,
    /// What the first few of them were before and are now.
    classes: Vec<Difference>,
}

/// A class before and after.
#[derive(Serialize, ToSchema)]
pub(crate) struct Difference {
    /// Its id.
    id: String,
    /// Before; `null` where the model did not know of it.
    before: Option<ClassState>,
    /// After.
    after: ClassState,
}

/// A class as it is being read from a form or an address.
#[derive(Default)]
struct Fields {
    class: Option<String>,
    parents: Vec<String>,
    place: Place,
    if_taught: IfTaught,
}

impl Fields {
    const KNOWN: [&'static str; 4] = ["class", "parents", "place", "if_taught"];

    /// Takes a field; `false` where there is none of this name.
    fn take(&mut self, name: &str, value: &str) -> Result<bool, Problem> {
        let wrong = |known: &str| Problem::bad_input(&format!("`{name}` can be {known}"));
        match name {
            "class" => self.class = Some(value.to_owned()),
            "parents" => self.parents.push(value.to_owned()),
            "place" => self.place = word(value).ok_or_else(|| wrong("from_graph or unknown"))?,
            "if_taught" => self.if_taught = word(value).ok_or_else(|| wrong("refuse, add or replace"))?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn class(self, samples: Vec<GivenSample>) -> Result<(Vec<Given>, IfTaught), Problem> {
        let class =
            self.class.ok_or_else(|| Problem::bad_input("name the class: the field `class` is not there"))?;
        Ok((vec![Given { class, parents: parents(self.parents, self.place), samples }], self.if_taught))
    }
}

/// One word of an enumeration.
fn word<T: for<'a> Deserialize<'a>>(text: &str) -> Option<T> {
    T::deserialize(serde::de::value::StrDeserializer::<serde::de::value::Error>::new(text)).ok()
}

fn parents(named: Vec<String>, place: Place) -> Parents {
    match (named, place) {
        (named, _) if !named.is_empty() => Parents::Named(named),
        (_, Place::FromGraph) => Parents::FromGraph,
        (_, Place::Unknown) => Parents::Unknown,
    }
}

/// A class and its samples, not yet embedded.
struct Given {
    class: String,
    parents: Parents,
    samples: Vec<GivenSample>,
}

/// Teaches classes from a few samples each: all of them, or none.
///
/// The change is on the disk before the answer leaves. Nothing is trained; a sample given twice counts once.
#[utoipa::path(
    post, path = "/teach", params(TeachQuery),
    request_body(content((TeachForm = "multipart/form-data"), (TeachBody = "application/json"), (Vec<u8> = "application/octet-stream"))),
    responses((status = 200, body = Lesson), Problems)
)]
pub(crate) async fn teach(
    State(app): State<Arc<App>>,
    Of(model): Of,
    Caller(who): Caller,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Lesson>, Problem> {
    let received = receive(&app, &headers, body).await?;
    let (classes, if_taught) = match form(&app, &received).await? {
        Form::Parts(parts) => {
            let mut fields = Fields::default();
            let mut samples = Vec::new();
            for part in parts {
                if part.file.is_some() {
                    samples.push(image(&app, part)?);
                    continue;
                }
                let value = std::str::from_utf8(&part.bytes)
                    .map_err(|_| Problem::bad_input("a field of the form is no UTF-8 text"))?;
                if !fields.take(&part.name, value)? {
                    return Err(Problem::bad_input(&unknown_field(&part.name, &Fields::KNOWN)));
                }
            }
            fields.class(samples)?
        }
        Form::Json => {
            let body: TeachBody = received.json()?;
            let given = |class: ClassBody| Given {
                class: class.class,
                parents: parents(class.parents, class.place),
                samples: embeddings(&model, class.embeddings),
            };
            (body.classes.into_iter().map(given).collect(), body.if_taught)
        }
        Form::Raw => {
            let mut fields = Fields::default();
            let query: Vec<(String, String)> = query(&uri)?;
            for (name, value) in query {
                if !fields.take(&name, &value)? {
                    return Err(Problem::bad_input(&unknown_field(&name, &Fields::KNOWN)));
                }
            }
            fields.class(raw(&model, &received.bytes)?)?
        }
    };
    check_count(&app, classes.iter().map(|class| class.samples.len()).sum())?;
    let classes = embedded(&app, &model, classes).await?;
    drop(received);
    let metrics = Arc::clone(&app.metrics);
    beside(move || {
        let (taught, changed) = model.teach(&who, classes, if_taught)?;
        if changed.after.number != changed.before.number {
            metrics.change();
        }
        let differences = taught.iter().take(TOLD).map(|class| {
            let before = changed.before.classifier.class(&class.id).ok();
            Ok(Difference {
                id: class.id.clone(),
                before: before.map(|class| ClassState::of(&changed.before, class)).transpose()?,
                after: ClassState::of(&changed.after, changed.after.classifier.class(&class.id)?)?,
            })
        });
        let classes = differences.collect::<Result<_, Problem>>()?;
        Ok(Json(Lesson { version: changed.after.number, taught, classes }))
    })
    .await
}

/// Embeds all samples of all classes; one that cannot be read refuses all.
async fn embedded(app: &App, model: &Model, classes: Vec<Given>) -> Result<Vec<TeachClass>, Problem> {
    let at = clock::now();
    let mut samples = Vec::new();
    let mut abouts = Vec::new();
    let mut lists = Vec::new();
    for class in classes {
        lists.push((class.class, class.parents, class.samples.len()));
        for given in class.samples {
            let name: String = given.sample.name.chars().take(NAME).collect();
            abouts.push((name, given.image.filter(|_| app.settings.keep_images)));
            samples.push(given.sample);
        }
    }
    let embeddings = model.gather.embed(samples, None).await?;
    let mut new = Vec::with_capacity(abouts.len());
    for ((name, image), embedding) in abouts.into_iter().zip(embeddings) {
        let embedding = embedding?;
        let mut hasher = blake3::Hasher::new();
        for value in &embedding {
            hasher.update(&value.to_le_bytes());
        }
        let digest = hasher.finalize().to_hex()[..32].to_owned();
        let about = KeptSample { name, at, digest, image: image.is_some() };
        new.push(NewSample { about, embedding, image });
    }
    let mut new = new.into_iter();
    Ok(lists
        .into_iter()
        .map(|(class, parents, count)| TeachClass {
            class,
            parents,
            samples: new.by_ref().take(count).collect(),
        })
        .collect())
}
