//! The JSON forms are those of docs/json.md: its examples are read into the types and written again.

use gpn::measure::TestResult;
use gpn::{ClassEntry, ErrorKind, Evaluation, PredictRequest, Prediction, Taught};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

const PAGE: &str = include_str!("../../../../docs/json.md");

/// The example of a name.
fn example(name: &str) -> Value {
    let start = format!("```json {name}\n");
    let (_, rest) = PAGE.split_once(&start).unwrap_or_else(|| panic!("the page has no example {name}"));
    serde_json::from_str(rest.split_once("```").unwrap().0).unwrap()
}

/// Every field of the example is one of the type, and the type has no others.
fn assert_form<T: Serialize + DeserializeOwned>(name: &str) {
    let example = example(name);
    let value: T = serde_json::from_value(example.clone()).unwrap();
    assert_eq!(serde_json::to_value(value).unwrap(), example, "{name}");
}

#[test]
fn values_have_the_json_form_of_the_docs() {
    assert_form::<Evaluation>("evaluation");
    assert_form::<TestResult>("test-result");
    assert_form::<Prediction>("prediction");
    assert_form::<PredictRequest>("predict-request");
    assert_form::<ClassEntry>("class-entry");
    assert_form::<Taught>("taught");
}

#[test]
fn a_prediction_without_explanation_has_no_shares() {
    let mut prediction: Prediction = serde_json::from_value(example("prediction")).unwrap();
    prediction.shaped_by = None;
    assert!(serde_json::to_value(prediction).unwrap().get("shaped_by").is_none());
}

#[test]
fn the_docs_list_every_kind_of_error() {
    for kind in ErrorKind::ALL {
        assert!(PAGE.contains(&format!("| `{}` |", kind.name())), "{kind:?}");
    }
}
