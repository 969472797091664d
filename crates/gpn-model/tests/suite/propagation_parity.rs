//! Propagation in every attention, gate and order against golden vectors.

use gpn_golden::{Case, JsonCase, assert_close, assert_close_relative, further_npz_cases, json_cases};
use gpn_model::propagation::{Attention, Gate, Order, Propagation};
use gpn_model::{PropagationConfig, PropagationGraph};
use serde_json::Value;

/// Finds a tensor of a case by its name.
type ByName<'a, T> = Box<dyn Fn(&str) -> T + 'a>;

/// What propagation gives for one choice of settings.
struct Expected<'a> {
    what: String,
    settings: PropagationConfig,
    /// Values of a parameter by its name.
    weight: ByName<'a, Vec<f32>>,
    out: Vec<f32>,
    /// Gradient of a parameter, or of `features`; none where the case has none.
    gradient: ByName<'a, Option<Vec<f32>>>,
    /// The gradients are those of `slope / 2 * sum(out^2)`.
    slope: f32,
}

fn check(expected: &Expected<'_>, graph: &PropagationGraph, features: &[f32], dim: usize) {
    let Expected { what, settings, .. } = expected;
    let propagation = Propagation::new(settings.clone(), dim);
    let weights: Vec<Vec<f32>> =
        propagation.parameters().iter().map(|info| (expected.weight)(&info.name)).collect();
    let params: Vec<&[f32]> = weights.iter().map(Vec::as_slice).collect();
    let tape = propagation.forward(&params, graph, features);
    let out = tape.result(graph);
    assert_close(&format!("{what} out"), out, &expected.out, 1e-4);

    let Some(of_features) = (expected.gradient)("features") else { return };
    let grad: Vec<f32> = out.iter().map(|value| expected.slope * value).collect();
    let mut grads: Vec<Vec<f32>> = params.iter().map(|param| vec![0.0; param.len()]).collect();
    let feature_grads = propagation.backward(&params, graph, &tape, &grad, &mut grads);
    assert_close_relative(&format!("{what} gradient of features"), &feature_grads, &of_features, 1e-3);
    let steepest = of_features.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
    for (info, grad) in propagation.parameters().iter().zip(&grads) {
        let what = format!("{what} gradient of {}", info.name);
        let expected = (expected.gradient)(&info.name).unwrap_or_else(|| panic!("{what}: not in the case"));
        if expected.iter().all(|value| *value == 0.0) {
            // It vanishes by the formula (the receiver's term in a softmax): mere rounding is left.
            assert_close(&what, grad, &expected, 1e-5 * steepest);
        } else {
            assert_close_relative(&what, grad, &expected, 1e-3);
        }
    }
}

/// Cases whose settings are written in them. Returns the settings.
fn check_document(case: &JsonCase) -> Vec<PropagationConfig> {
    let document = &case.document;
    let [nodes, targets, dim] =
        ["nodes", "targets", "dim"].map(|name| document[name].as_u64().unwrap() as usize);
    let features = JsonCase::floats(&document["features"]);
    let [parents, children] = ["from_parents", "from_children"].map(|name| JsonCase::pairs(&document[name]));
    let graph = PropagationGraph::new(nodes, targets, parents, children);
    let of = |case: &Value, part: &str, name: &str| -> Option<Vec<f32>> {
        case[part].get(name).map(JsonCase::floats)
    };
    let mut all = Vec::new();
    for (number, entry) in document["cases"].as_array().unwrap().iter().enumerate() {
        let settings: PropagationConfig = serde_json::from_value(entry["settings"].clone()).unwrap();
        all.push(settings.clone());
        let expected = Expected {
            what: format!("{} case {number}, {settings:?}:", case.name),
            settings,
            weight: Box::new(|name| of(entry, "weights", name).expect(name)),
            out: JsonCase::floats(&entry["out"]),
            gradient: Box::new(|name| of(entry, "grad", name)),
            slope: 1.0,
        };
        check(&expected, &graph, &features, dim);
    }
    all
}

/// The settings that a tag of an npz case stands for.
fn settings_of(tag: &str, case: &Case) -> PropagationConfig {
    let hidden = case.below(&format!("{tag}/w/")).next().map_or(1, |(_, array)| array.shape[0].max(2));
    let base = PropagationConfig { hidden, ..PropagationConfig::default() };
    match tag {
        "softmax_t1" => base,
        "softmax_t10" => PropagationConfig { attention_temperature: 10.0, gate_temperature: 10.0, ..base },
        "softmax_t1_singleround" => PropagationConfig { order: Order::Alternating, ..base },
        "cosine_sim" => PropagationConfig { gate: Gate::Ratio, ..base },
        "cosine_att" => PropagationConfig { gate: Gate::Learned, ..base },
        "cosine_sigmoid" => PropagationConfig { gate: Gate::Sigmoid, ..base },
        // The first array below the tag is a bias or a weight, so the hidden length is said here.
        "mlp_sigmoid" => PropagationConfig {
            attention: Attention::AdditiveLinear,
            gate: Gate::Sigmoid,
            hidden: 16,
            ..base
        },
        "fixed_keep05" => PropagationConfig { gate: Gate::Fixed, keep: 0.5, ..base },
        "paramfree" => {
            PropagationConfig { attention: Attention::Uniform, gate: Gate::Open, heads: 1, ..base }
        }
        other => panic!("the case {other} has no settings in this test"),
    }
}

/// Cases whose settings follow from their names.
fn check_tags(case: &Case) {
    let features = case.array("features");
    let [nodes, dim] = features.shape[..] else { panic!("features are a matrix") };
    let [parents, children] = ["forward_adj", "backward_adj"].map(|name| case.array(name).set_entries());
    let graph = PropagationGraph::new(nodes, nodes, parents, children);
    let tags: Vec<&str> = case.arrays.keys().filter_map(|name| name.strip_suffix("/out")).collect();
    assert!(!tags.is_empty(), "{}: no cases", case.name);
    for tag in tags {
        let expected = Expected {
            what: format!("{} {tag}", case.name),
            settings: settings_of(tag, case),
            weight: Box::new(move |name| case.values(&format!("{tag}/w/{name}")).to_vec()),
            out: case.values(&format!("{tag}/out")).to_vec(),
            gradient: Box::new(move |name| {
                case.get(&format!("{tag}/grad/{name}")).map(|array| array.values.clone())
            }),
            slope: 2.0 / 1000.0,
        };
        check(&expected, &graph, &features.values, dim);
    }
}

#[test]
fn propagation_parity() {
    let settings: Vec<PropagationConfig> =
        json_cases("a_propagation").iter().flat_map(check_document).collect();
    for attention in [
        Attention::Cosine,
        Attention::CosineRaw,
        Attention::Additive,
        Attention::AdditiveLinear,
        Attention::Uniform,
    ] {
        for gate in [Gate::Softmax, Gate::Ratio, Gate::Sigmoid, Gate::Learned, Gate::Fixed, Gate::Open] {
            assert!(
                settings.iter().any(|settings| settings.attention == attention && settings.gate == gate),
                "no case of {attention:?} with {gate:?}"
            );
        }
    }
    for order in
        [Order::Neighbours, Order::Parents, Order::Children, Order::ForwardThenBackward, Order::Alternating]
    {
        assert!(settings.iter().any(|settings| settings.order == order), "no case of {order:?}");
    }
    further_npz_cases("a_propagation").iter().for_each(check_tags);
}
