//! Propagation and whole episodes against the authors' implementation.

use gpn_model::propagation::{Attention, Gate, Order, Propagation};
use gpn_model::{
    Adam, Device, InputShape, NamedTensor, PropagationConfig, PropagationGraph, Weights, save_weights,
};
use gpn_taxonomy::{HopSearch, TaxonomyBuilder};
use gpn_train::{Config, EpisodeShape, Memory, Network, Surroundings};

use crate::golden::{self, Array, Case, assert_close, assert_close_relative};

/// `(receiver, sender)` of each entry of an adjacency matrix.
fn pairs(adjacency: &Array) -> Vec<(u32, u32)> {
    let n = adjacency.shape[1];
    let set = adjacency.values.iter().enumerate().filter(|(_, value)| **value != 0.0);
    set.map(|(place, _)| ((place / n) as u32, (place % n) as u32)).collect()
}

/// The settings that a tag of a_propagation stands for.
fn settings(tag: &str, case: &Case) -> PropagationConfig {
    let hidden = case.below(&format!("{tag}/w/")).next().map_or(1, |(_, array)| array.shape[0].max(2));
    let base = PropagationConfig { hidden, ..PropagationConfig::default() };
    match tag {
        "softmax_t1" => base,
        "softmax_t10" => PropagationConfig { attention_temperature: 10.0, gate_temperature: 10.0, ..base },
        "softmax_t1_singleround" => PropagationConfig { order: Order::Alternating, ..base },
        "cosine_sim" => PropagationConfig { gate: Gate::Ratio, ..base },
        "cosine_att" => PropagationConfig { gate: Gate::Learned, ..base },
        "cosine_sigmoid" => PropagationConfig { gate: Gate::Sigmoid, ..base },
        "mlp_sigmoid" => {
            // The first array below the tag is a bias or a weight; the bias tells the hidden length as well.
            PropagationConfig {
                attention: Attention::AdditiveLinear,
                gate: Gate::Sigmoid,
                hidden: 16,
                ..base
            }
        }
        "fixed_keep05" => PropagationConfig { gate: Gate::Fixed, keep: 0.5, ..base },
        "paramfree" => {
            PropagationConfig { attention: Attention::Uniform, gate: Gate::Open, heads: 1, ..base }
        }
        other => panic!("the case {other} has no settings in this test"),
    }
}

#[test]
fn propagation_parity() {
    for path in golden::cases("a_propagation") {
        let case = Case::read(&path);
        let features = &case.arrays["features"];
        let [nodes, dim] = features.shape[..] else { panic!("features are a matrix") };
        let graph = PropagationGraph::new(
            nodes,
            nodes,
            pairs(&case.arrays["forward_adj"]),
            pairs(&case.arrays["backward_adj"]),
        );
        let mut tags: Vec<&str> = case.arrays.keys().filter_map(|name| name.strip_suffix("/out")).collect();
        tags.dedup();
        assert!(!tags.is_empty(), "{}: no cases", case.name);
        for tag in tags {
            let propagation = Propagation::new(settings(tag, &case), dim);
            let params: Vec<&[f32]> = propagation
                .parameters()
                .iter()
                .map(|info| case.values(&format!("{tag}/w/{}", info.name)))
                .collect();
            let tape = propagation.forward(&params, &graph, &features.values);
            let out = tape.result(&graph);
            assert_close(&format!("{} {tag}/out", case.name), out, case.values(&format!("{tag}/out")), 1e-4);
            if tag == "paramfree" {
                continue;
            }
            let grad: Vec<f32> = out.iter().map(|value| 2.0 * value / 1000.0).collect();
            let mut grads: Vec<Vec<f32>> = params.iter().map(|param| vec![0.0; param.len()]).collect();
            let feature_grads = propagation.backward(&params, &graph, &tape, &grad, &mut grads);
            assert_close_relative(
                &format!("{} {tag}/grad/features", case.name),
                &feature_grads,
                case.values(&format!("{tag}/grad/features")),
                1e-3,
            );
            for (info, grad) in propagation.parameters().iter().zip(&grads) {
                let name = format!("{tag}/grad/{}", info.name);
                assert_close_relative(&format!("{} {name}", case.name), grad, case.values(&name), 1e-3);
            }
        }
    }
}

#[test]
fn episode_parity() {
    for path in golden::cases("e_episode") {
        let case = Case::read(&path);
        let what = |part: &str| format!("{} {part}", case.name);
        let [way, shot] = ["way", "shot"].map(|name| case.values(name)[0] as usize);
        let images = &case.arrays["imgs"];
        let &[count, _, height, width] = &images.shape[..] else { panic!("imgs is not a batch of images") };
        let nodes: Vec<u32> = case.values("nodes").iter().map(|&node| node as u32).collect();
        let labels: Vec<u32> = case.values("labels").iter().map(|&label| label as u32).collect();

        let heads = case
            .below("state/prop.multihead_attention_0hop_")
            .filter(|(name, _)| name.contains("linear_q"))
            .count();
        let steps = (0..).take_while(|step| {
            case.below(&format!("state/prop.multihead_attention_{step}hop_")).next().is_some()
        });
        let hidden = case.below("state/prop.").next().unwrap().1.shape[0];
        let config =
            PropagationConfig { heads, hidden, steps: steps.count().min(2), ..PropagationConfig::default() };
        let memory =
            Memory { dim: case.arrays["memory"].shape[1], prototypes: case.values("memory").to_vec() };
        let classes = case
            .below("state/emb.fc_classifier")
            .next()
            .map_or(memory.classes(), |(_, array)| array.shape[0]);
        let input = InputShape::Image { height, width };
        let settings = Config { propagation: config, ..Config::preset("reference").unwrap() };
        let mut network = Network::new(&settings, input, classes, &Device::cpu()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state.safetensors");
        let values: Vec<Vec<f32>> =
            case.below("state/").map(|(name, array)| before_step(&case, name, array)).collect();
        let state = case.below("state/").zip(&values).map(|((name, array), values)| NamedTensor {
            name,
            shape: &array.shape,
            values,
        });
        save_weights(&file, state, None).unwrap();
        let weights = Weights::read(&file).unwrap();
        weights.load(&mut network.embedder).unwrap();
        network.method.load(&weights).unwrap();

        // Support first, then queries, in the order of the targets.
        let mut inputs = Vec::new();
        for skip in [0, shot] {
            for &class in &nodes[..way] {
                let own = (0..count).filter(|&image| labels[image] == class);
                let taken: Vec<usize> =
                    if skip == 0 { own.take(shot).collect() } else { own.skip(shot).collect() };
                for image in taken {
                    inputs.extend(&images.values[image * input.len()..][..input.len()]);
                }
            }
        }
        let surroundings = surroundings_of(&case, &nodes, way);
        let sorted = |classes: &[u32]| classes.iter().copied().collect::<std::collections::BTreeSet<_>>();
        assert_eq!(sorted(&surroundings.classes), sorted(&nodes), "{}", what("nodes"));
        let shape = EpisodeShape { rest: 0, way, shot, lambda: case.values("lam")[0] };
        let result = network.few_shot_gradients(&inputs, shape, Some(&surroundings), &memory).unwrap();
        assert_close(&what("loss"), &[result.loss], case.values("loss"), 1e-4);
        assert_close(&what("acc"), &[100.0 * result.accuracy], case.values("acc"), 1e-3);
        let mut updates = network.embedder.updates();
        updates.extend(network.method.updates());
        for update in &updates {
            let name = golden_name("grad/", update.name);
            if let Some(expected) = case.arrays.get(&name) {
                assert_close_relative(&what(&name), update.gradient, &expected.values, 1e-3);
            }
        }
        let mut adam = Adam::default();
        adam.step(&mut updates, 1e-3, 0).unwrap();
        let mut compared = 0;
        for tensor in network.embedder.parameters().iter().chain(network.method.state().iter()) {
            let name = golden_name("after_adam/", tensor.name);
            if let Some(expected) = case.arrays.get(&name) {
                let grads = &case.values(&golden_name("grad/", tensor.name));
                let (got, expected) = beyond_rounding(grads, tensor.values, &expected.values);
                assert_close(&what(&name), &got, &expected, 1e-5);
                compared += 1;
            }
        }
        assert!(compared > 0, "{}", what("has no weights after the step"));
    }
}

/// A tensor before the step. A file whose `state` was recorded after the step (it equals `after_adam`) is taken back by
/// Adam's first step, which moves every value by the learning rate against the sign of its gradient.
fn before_step(case: &Case, name: &str, array: &Array) -> Vec<f32> {
    let after = case.arrays.get(&format!("after_adam/{name}")).filter(|after| after.values == array.values);
    let (Some(after), Some(grads)) = (after, case.arrays.get(&format!("grad/{name}"))) else {
        return array.values.clone();
    };
    let back = |(&after, &grad): (&f32, &f32)| {
        let mut before = f64::from(after);
        for _ in 0..4 {
            let decayed = f64::from(grad) + 1e-5 * before;
            before = f64::from(after) + 1e-3 * decayed / (decayed.abs() + 1e-8);
        }
        before as f32
    };
    after.values.iter().zip(&grads.values).map(back).collect()
}

/// The values whose gradient is more than rounding. Adam's first step is the sign of a gradient, which for a gradient
/// some millions of times smaller than its neighbours' is a matter of the order of summation.
fn beyond_rounding(grads: &[f32], got: &[f32], expected: &[f32]) -> (Vec<f32>, Vec<f32>) {
    let scale = grads.iter().fold(0.0_f32, |largest, grad| largest.max(grad.abs()));
    let kept: Vec<(f32, f32)> = grads
        .iter()
        .zip(got.iter().zip(expected))
        .filter(|(grad, _)| grad.abs() > 1e-5 * scale)
        .map(|(_, (got, expected))| (*got, *expected))
        .collect();
    assert!(kept.len() * 100 >= got.len() * 99, "too many gradients are mere rounding");
    kept.into_iter().unzip()
}

/// The golden file says `emb.` before backbone tensors.
fn golden_name(prefix: &str, name: &str) -> String {
    if name.starts_with("prop.") { format!("{prefix}{name}") } else { format!("{prefix}emb.{name}") }
}

/// The task's graph as the case gives it, found anew on a graph with those edges.
fn surroundings_of(case: &Case, nodes: &[u32], way: usize) -> Surroundings {
    let mut builder = TaxonomyBuilder::new();
    let classes = case.arrays["memory"].shape[0];
    for class in 0..classes {
        builder.add_class(&class.to_string());
    }
    for (child, parent) in pairs(&case.arrays["forward_adj"]) {
        builder.add_edge(nodes[parent as usize], nodes[child as usize], None);
    }
    let graph = builder.build().unwrap().taxonomy;
    Surroundings::in_training(&graph, &nodes[..way], nodes.len(), None, &mut HopSearch::new(&graph))
}
