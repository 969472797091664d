//! The values of the crate `gpn` as the OpenAPI document describes them. They are passed on as they serialise; a test reads each
//! of them into these types, so that description and values cannot drift apart.

// Only the derived descriptions are used outside of tests.
#![allow(dead_code, reason = "types that describe; tests read some of them")]

use serde::Deserialize;
use utoipa::ToSchema;

/// What is asked of a prediction; what is left out is the default.
#[derive(Deserialize, ToSchema)]
#[schema(as = PredictRequest)]
pub(crate) struct RequestSchema {
    /// The classes to choose from: `"all"`, `"taught"`, `{"listed": [...]}` or `{"below": "..."}`. Default all.
    pub(crate) among: Option<AmongSchema>,
    /// Likeliest classes to give. Default 5.
    #[schema(minimum = 1)]
    pub(crate) top: Option<u64>,
    /// The level at which classes are given: `"answers"`, `"all"` or `{"depth": 2}`. Default answers.
    pub(crate) level: Option<LevelSchema>,
    /// How sure the answer must be: the deepest class that is as likely is given as `sure`.
    #[schema(minimum = 0, maximum = 1)]
    pub(crate) confidence: Option<f64>,
    /// Whether to say what shaped the prototype of the likeliest class.
    pub(crate) explain: Option<bool>,
    /// Weight of the prototypes before propagation, 0 to 1; by default the best on the model's validation tasks.
    #[schema(minimum = 0, maximum = 1)]
    pub(crate) lambda: Option<f32>,
}

/// Which classes a sample may belong to.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Among)]
pub(crate) enum AmongSchema {
    /// Every training class and every taught class.
    All,
    /// Every taught class.
    Taught,
    /// These, by id or name.
    Listed(Vec<String>),
    /// Those below this one.
    Below(String),
}

/// The level at which answers are given.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Level)]
pub(crate) enum LevelSchema {
    /// The classes to choose from.
    Answers,
    /// Their ancestors at this depth, 1 being right below the root.
    Depth(u64),
    /// Every class at or above one to choose from.
    All,
}

/// The deepest class that is as sure as asked for.
#[derive(Deserialize, ToSchema)]
#[schema(as = Sure)]
pub(crate) struct SureSchema {
    /// Its id.
    pub(crate) id: String,
    /// Its name.
    pub(crate) name: String,
    /// How likely it is.
    pub(crate) probability: f64,
    /// The way to it from below the root, itself last.
    pub(crate) path: Vec<NamedSchema>,
}

/// How strange a sample is.
#[derive(Deserialize, ToSchema)]
#[schema(as = Strange)]
pub(crate) struct StrangeSchema {
    /// More is stranger.
    pub(crate) score: f64,
    /// Whether it belongs to none of the classes.
    pub(crate) is_unknown: bool,
}

/// Id and name of a class.
#[derive(Deserialize, ToSchema)]
#[schema(as = ClassName)]
pub(crate) struct NamedSchema {
    /// Its id.
    pub(crate) id: String,
    /// Its name.
    pub(crate) name: String,
}

/// What a sample is.
#[derive(Deserialize, ToSchema)]
#[schema(as = Prediction)]
pub(crate) struct PredictionSchema {
    /// The sample, as it was called.
    pub(crate) file: String,
    /// The likeliest classes, the likeliest first.
    pub(crate) classes: Vec<LikelySchema>,
    /// The deepest class that is as sure as asked for, where that was asked for.
    pub(crate) sure: Option<SureSchema>,
    /// How strange the sample is, where the model was fitted to a catalogue.
    pub(crate) unknown: Option<StrangeSchema>,
    /// What shaped the prototype of the likeliest class, where that was asked for.
    pub(crate) shaped_by: Option<Vec<ShareSchema>>,
}

/// A class that a sample may belong to.
#[derive(Deserialize, ToSchema)]
#[schema(as = Likely)]
pub(crate) struct LikelySchema {
    /// Its id.
    pub(crate) id: String,
    /// Its name for people.
    pub(crate) name: String,
    /// Softmax over all candidates.
    pub(crate) probability: f64,
    /// Squared distance to its prototype.
    pub(crate) distance: f32,
    /// The way to it from below the root, itself last.
    pub(crate) path: Vec<NamedSchema>,
}

/// The part of one class in the prototype of another.
#[derive(Deserialize, ToSchema)]
#[schema(as = Share)]
pub(crate) struct ShareSchema {
    /// The id of the class; empty for the mean of all classes.
    pub(crate) id: String,
    /// Its name.
    pub(crate) name: String,
    /// `own`, `parent`, `child`, `nearest`, `further` or `all`.
    pub(crate) relation: String,
    /// Factor of its first prototype.
    pub(crate) weight: f64,
    /// The factor's size as a share of all, which sum to 1.
    pub(crate) share: f64,
}

/// A sample that could not be read.
#[derive(Deserialize, ToSchema)]
pub(crate) struct Failed {
    /// The sample, as it was called.
    pub(crate) file: String,
    /// What is wrong with it.
    pub(crate) error: String,
}

/// A prediction, or what is wrong with the sample.
#[derive(Deserialize, ToSchema)]
#[serde(untagged)]
#[schema(as = Answer)]
pub(crate) enum AnswerSchema {
    /// A prediction.
    Prediction(PredictionSchema),
    /// A sample that could not be read.
    Failed(Failed),
}

/// A class of the model.
#[derive(Deserialize, ToSchema)]
#[schema(as = ClassEntry)]
pub(crate) struct EntrySchema {
    /// Its id.
    pub(crate) id: String,
    /// Its name for people.
    pub(crate) name: String,
    /// `training`, `taught` or `untaught`.
    pub(crate) kind: String,
    /// Samples it was trained with or taught.
    pub(crate) samples: u64,
    /// Ids of its parents.
    pub(crate) parents: Vec<String>,
    /// Ids of the training classes it is linked to, where its place is not known.
    pub(crate) nearest: Vec<String>,
}

/// A class after teaching.
#[derive(Deserialize, ToSchema)]
#[schema(as = Taught)]
pub(crate) struct TaughtSchema {
    /// Its id.
    pub(crate) id: String,
    /// Its name for people.
    pub(crate) name: String,
    /// Where it stands: `"in_graph"`, `"nearest"` or `{"below": [...]}`.
    pub(crate) place: PlaceSchema,
    /// Samples it has now.
    pub(crate) samples: u64,
    /// Samples given that it had already.
    pub(crate) repeated: u64,
}

/// Where a taught class stands.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Placement)]
pub(crate) enum PlaceSchema {
    /// Where the class graph of the model has it.
    InGraph,
    /// Below these classes.
    Below(Vec<String>),
    /// Unknown: it is linked to the nearest training classes.
    Nearest,
}

#[cfg(test)]
mod tests {
    use gpn::train::Placement;
    use gpn::{
        Among, ClassEntry, ClassKind, ClassName, Likely, PredictRequest, Prediction, Relation, Share, Taught,
    };
    use serde::Serialize;

    use gpn::{Level, Strange, Sure};

    use super::*;

    fn reads<T: for<'a> Deserialize<'a>>(value: impl Serialize) -> T {
        let json = serde_json::to_value(value).unwrap();
        serde_json::from_value(json.clone()).unwrap_or_else(|error| panic!("{json}: {error}"))
    }

    #[test]
    fn values_are_as_described() {
        let class = ClassName { id: "a".into(), name: "b".into() };
        let path = vec![class.clone()];
        let share = Share { class, relation: Relation::Own, weight: 1.0, share: 1.0 };
        let prediction = Prediction {
            file: "x".into(),
            classes: vec![Likely {
                id: "a".into(),
                name: "b".into(),
                probability: 0.5,
                distance: 1.0,
                path: path.clone(),
            }],
            sure: Some(Sure { id: "a".into(), name: "b".into(), probability: 0.5, path }),
            unknown: Some(Strange { score: 1.0, is_unknown: true }),
            shaped_by: Some(vec![share]),
        };
        let read: AnswerSchema = reads(prediction);
        let AnswerSchema::Prediction(read) = read else { panic!("it is a prediction") };
        assert_eq!(read.shaped_by.unwrap()[0].relation, "own");
        assert!(read.unknown.unwrap().is_unknown && read.sure.unwrap().path.len() == 1);
        for level in [Level::Answers, Level::Depth(2), Level::All] {
            reads::<RequestSchema>(PredictRequest {
                level,
                confidence: Some(0.9),
                ..PredictRequest::default()
            });
        }
        for among in [Among::All, Among::Taught, Among::Listed(vec!["a".into()]), Among::Below("a".into())] {
            reads::<RequestSchema>(PredictRequest { among, ..PredictRequest::default() });
        }
        for place in [Placement::InGraph, Placement::Nearest, Placement::Below(vec!["a".into()])] {
            let taught = Taught { id: "a".into(), name: "b".into(), place, samples: 1, repeated: 0 };
            assert_eq!(reads::<TaughtSchema>(taught).samples, 1);
        }
        let entry = ClassEntry {
            id: "a".into(),
            name: "b".into(),
            kind: ClassKind::Taught,
            samples: 2,
            parents: vec![],
            nearest: vec!["c".into()],
        };
        assert_eq!(reads::<EntrySchema>(entry).kind, "taught");
    }
}
