//! One golden case of evaluation: tasks over given embeddings, the place of their classes known or not.

use std::collections::BTreeSet;

use gpn_data::benchmark::{DataSet, Store};
use gpn_data::format::element::Element;
use gpn_data::format::npy::{Npy, RowWriter};
use gpn_data::task::Task;
use gpn_golden::{JsonCase, assert_close};
use gpn_model::{Device, InputShape, Memory, NamedTensor, PropagationConfig, Weights, save_weights};
use gpn_taxonomy::{Taxonomy, TaxonomyBuilder, contract};
use gpn_train::{Config, Embeddings, Hierarchy, Network, StopHandle, Trained, evaluate, propagate};
use serde_json::Value;

/// The class graph of the case; node i is class i.
fn graph(edges: &[(u32, u32)]) -> Taxonomy {
    let count = 1 + edges.iter().map(|&(parent, child)| parent.max(child)).max().unwrap();
    let mut builder = TaxonomyBuilder::new();
    for class in 0..count {
        builder.add_class(&class.to_string());
    }
    for &(parent, child) in edges {
        builder.add_edge(parent, child, None);
    }
    builder.build().unwrap().taxonomy
}

/// A network whose backbone hands embeddings on, with the propagation of the case.
fn network(case: &Value, dim: usize, classes: usize, scratch: &std::path::Path) -> Network {
    let propagation: PropagationConfig = serde_json::from_value(case["settings"].clone()).unwrap();
    let mut config = Config { propagation, ..Config::default() };
    config.model.backbone = gpn_model::BackboneKind::Identity;
    let input = InputShape::Embedding { len: dim };
    let mut network = Network::new(&config, input, classes, &Device::cpu()).unwrap();
    let tensors: Vec<(String, Vec<usize>, Vec<f32>)> = network
        .method
        .state()
        .iter()
        .map(|tensor| {
            let name = tensor.name.strip_prefix("prop.").unwrap();
            (tensor.name.to_owned(), tensor.shape.to_vec(), JsonCase::floats(&case["weights"][name]))
        })
        .collect();
    let file = scratch.join("weights.safetensors");
    let named = tensors.iter().map(|(name, shape, values)| NamedTensor { name, shape, values });
    save_weights(&file, named, None).unwrap();
    network.method.load(&Weights::read(&file).unwrap()).unwrap();
    network
}

/// Task graphs, propagated prototypes and accuracies of every task of the case.
pub(crate) fn check(case: &JsonCase) {
    let (name, case) = (&case.name, &case.document);
    let [dim, training, nearest] =
        ["dim", "training", "nearest"].map(|name| case[name].as_u64().unwrap() as usize);
    let scratch = tempfile::tempdir().unwrap();
    let network = network(case, dim, training, scratch.path());
    let memory = Memory::new(dim, JsonCase::floats(&case["memory"]));
    let graph = graph(&JsonCase::pairs(&case["edges"]));
    let training_classes: Vec<u32> = (0..training as u32).collect();
    let data_set = DataSet {
        rows: (0..graph.len()).collect(),
        training,
        training_graph: contract(&graph, &training_classes),
        whole_graph: graph.clone(),
        graph,
    };

    let file = scratch.path().join("samples.npy");
    let mut samples = RowWriter::create(&file, Element::F32, &[dim]).unwrap();
    samples.write_f32(&JsonCase::floats(&case["samples"])).unwrap();
    samples.finish().unwrap();
    let store = Store::Embeddings { dim: dim as u32, array: Npy::open(&file).unwrap() };

    let entries = case["tasks"].as_array().unwrap();
    assert!(!entries.is_empty(), "{name}: no tasks");
    let tasks: Vec<Task> =
        entries.iter().map(|entry| serde_json::from_value(entry.clone()).unwrap()).collect();
    let embeddings = Embeddings::of_tasks(&network.embedder, &store, &tasks, &StopHandle::default()).unwrap();
    let trained = Trained { method: network.method.as_ref(), memory: &memory, nearest, texts: &[] };
    for (hierarchy, key) in [(Hierarchy::Known, "known"), (Hierarchy::Unknown, "unknown")] {
        let results =
            evaluate(trained, &data_set, &embeddings, &tasks, hierarchy, 0.5, &StopHandle::default())
                .unwrap();
        for (number, (task, result)) in tasks.iter().zip(results).enumerate() {
            let what = format!("{name} task {number}, hierarchy {key}");
            let expected = &entries[number][key];
            let made = propagate(trained, &data_set, &embeddings, task, hierarchy).unwrap();
            let nodes: Vec<u32> = JsonCase::whole(&expected["nodes"]).iter().map(|&n| n as u32).collect();
            assert_eq!(made.classes, nodes, "{what}: nodes");
            let edges: BTreeSet<(u32, u32)> = made.edges.into_iter().collect();
            let expected_edges = JsonCase::pairs(&expected["edges_parent_child"]);
            assert_eq!(edges, expected_edges.into_iter().collect(), "{what}: edges");
            assert_close(&what, &made.last, &JsonCase::floats(&expected["prototypes"]), 1e-4);
            for (column, got, expected) in [
                ("base", result.base, &entries[number]["base"]),
                ("accuracy", result.method, &expected["accuracy"]),
                ("accuracy at lambda 0.5", result.mixed, &expected["accuracy_lambda05"]),
            ] {
                let expected = expected.as_f64().unwrap();
                assert!((got - expected).abs() < 1e-3, "{what}: {column} {got} against {expected}");
            }
        }
    }
}
