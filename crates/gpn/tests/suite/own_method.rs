//! A method from outside the workspace's crates: the example does what it says.

#[path = "../../examples/own_method.rs"]
#[expect(dead_code, reason = "its `main` prints what `compare` returns")]
mod example;

use gpn::model::methods::MethodKind;

#[test]
fn a_method_from_outside_is_trained_and_evaluated_beside_protonet() {
    let scratch = tempfile::tempdir().unwrap();
    let [median, mean] = example::compare(scratch.path(), 40, 30).unwrap();
    assert_eq!((median.name.as_str(), mean.name.as_str()), ("median", "protonet"));
    assert_eq!(median.fingerprint, mean.fingerprint, "both are evaluated on the same tasks");
    assert_ne!(median.per_task, mean.per_task, "it is another method");
    // Chance is 20.
    for evaluation in [&median, &mean] {
        assert!(evaluation.method.mean > 24.0, "{}: {}", evaluation.name, evaluation.method);
    }
    // Its name is in the settings and in the model, like that of a method of the workspace.
    let config = std::fs::read_to_string(scratch.path().join("median/config.toml")).unwrap();
    assert!(config.contains("method = \"median\""), "{config}");
    let model =
        gpn::TrainedModel::read(&scratch.path().join("median/model.safetensors"), &gpn::Device::cpu())
            .unwrap();
    assert_eq!(model.info.method().title, "Median prototypes");
    assert!(MethodKind::all().iter().any(|kind| kind.name == "median"));
    // It has no prototypes that classes could be taught as.
    let refused = gpn::Classifier::new(model).err().unwrap();
    assert!(matches!(refused, gpn::Error::NoPrototypes { .. }), "{refused}");
}
