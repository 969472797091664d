//! The few-shot graph network against the method as it is written down, and what it promises.

use std::collections::BTreeMap;

use gpn_golden::{JsonCase, assert_close, json_cases};
use gpn_model::{
    Adam, AdamConfig, Gnn, GnnConfig, ModelError, NamedTensor, TensorList, Trainable, Weights, save_weights,
};
use serde_json::Value;

/// Values that look like noise, about normal with deviation 1.
struct Noise(u64);

impl Noise {
    fn value(&mut self) -> f32 {
        let mut uniform = || {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 40) as f32 / (1 << 24) as f32
        };
        (0..12).map(|_| uniform()).sum::<f32>() - 6.0
    }

    fn values(&mut self, len: usize) -> Vec<f32> {
        (0..len).map(|_| self.value()).collect()
    }
}

#[test]
fn gnn_parity() {
    for case in json_cases("gnn") {
        check_golden(&case.document);
    }
}

fn check_golden(case: &Value) {
    let size = |name: &str| case[name].as_u64().unwrap() as usize;
    let config = GnnConfig { hidden: size("hidden"), blocks: size("blocks") };
    let mut gnn = Gnn::new(config, size("dim"), size("way"), 1).unwrap();

    let tensors: Vec<(&String, Vec<usize>, Vec<f32>)> = case["tensors"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, tensor)| (name, JsonCase::whole(&tensor["shape"]), JsonCase::floats(&tensor["values"])))
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gnn.safetensors");
    let named = tensors.iter().map(|(name, shape, values)| NamedTensor { name, shape, values });
    save_weights(&file, named, None).unwrap();
    gnn.load(&Weights::read(&file).unwrap()).unwrap();
    assert_eq!(gnn.state().count(), tensors.len());

    let (support, queries) = (JsonCase::floats(&case["support"]), JsonCase::floats(&case["queries"]));
    let (labels, query_labels) = (JsonCase::whole(&case["labels"]), JsonCase::whole(&case["query_labels"]));
    let evaluation = gnn.forward(&support, &labels, &queries).unwrap();
    assert_close("evaluation", &evaluation, &JsonCase::floats(&case["evaluation_logits"]), 1e-4);
    let pass = gnn.forward_backward(&support, &labels, &queries, &query_labels).unwrap();
    assert_close("training", &pass.logits, &JsonCase::floats(&case["training_logits"]), 1e-4);
    assert_close("loss", &[pass.loss], &[case["loss"].as_f64().unwrap() as f32], 1e-4);
    let state: TensorList = gnn.state().collect();
    for (name, expected) in case["moved_means"].as_object().unwrap() {
        assert_close(name, state.get(name).unwrap().values, &JsonCase::floats(expected), 1e-4);
    }
}

/// A task with the tensors of a network, in f64.
#[derive(Clone)]
struct Reference {
    blocks: usize,
    way: usize,
    support: Vec<Vec<f64>>,
    labels: Vec<usize>,
    queries: Vec<Vec<f64>>,
    query_labels: Vec<usize>,
    tensors: BTreeMap<String, Vec<f64>>,
}

impl Reference {
    /// The training loss, by the method's definition: each graph by itself, over all ordered pairs.
    fn loss(&self) -> f64 {
        let mut graphs: Vec<Vec<Vec<f64>>> = self.queries.iter().map(|query| self.nodes(query)).collect();
        for block in 0..self.blocks {
            let name = format!("gnn.block{block}");
            let nodes = self.support.len() + 1;
            let ordered: Vec<[usize; 3]> = (0..graphs.len())
                .flat_map(|graph| (0..nodes * nodes).map(move |pair| [graph, pair / nodes, pair % nodes]))
                .filter(|[_, i, j]| i != j)
                .collect();
            let difference = |&[graph, i, j]: &[usize; 3]| {
                graphs[graph][i].iter().zip(&graphs[graph][j]).map(|(a, b)| (a - b).abs()).collect()
            };
            let mut pairs: Vec<Vec<f64>> = ordered.iter().map(difference).collect();
            for layer in 0..4 {
                pairs = self.linear(&format!("{name}.pairs.layer{layer}.weight"), &pairs);
                self.norm(&format!("{name}.pairs.layer{layer}"), &mut pairs);
            }
            let scores = self.linear(&format!("{name}.pairs.score.weight"), &pairs);
            let mut sums = vec![vec![0.0; nodes]; graphs.len()];
            for (&[graph, i, _], score) in ordered.iter().zip(&scores) {
                sums[graph][i] += score[0].exp();
            }
            let mut heard: Vec<Vec<Vec<f64>>> =
                graphs.iter().map(|graph| graph.iter().map(|x| vec![0.0; x.len()]).collect()).collect();
            for (&[graph, i, j], score) in ordered.iter().zip(&scores) {
                for (sum, value) in heard[graph][i].iter_mut().zip(&graphs[graph][j]) {
                    *sum += score[0].exp() / sums[graph][i] * value;
                }
            }
            let both: Vec<Vec<f64>> = graphs
                .iter()
                .flatten()
                .zip(heard.iter().flatten())
                .map(|(x, h)| [x.as_slice(), h.as_slice()].concat())
                .collect();
            let mut outputs = self.linear(&format!("{name}.weight"), &both);
            if block + 1 == self.blocks {
                let bias = &self.tensors[&format!("{name}.bias")];
                return self.cross_entropy(outputs.chunks(nodes).map(|graph| {
                    graph[nodes - 1].iter().zip(bias).map(|(output, bias)| output + bias).collect()
                }));
            }
            self.norm(&name, &mut outputs);
            for (x, output) in graphs.iter_mut().flatten().zip(outputs) {
                x.extend(output);
            }
        }
        unreachable!("the last block returns")
    }

    fn nodes(&self, query: &[f64]) -> Vec<Vec<f64>> {
        let field = |label: usize| (0..self.way).map(|class| f64::from(u8::from(class == label))).collect();
        let fields = self.labels.iter().map(|&label| field(label));
        let uniform: Vec<f64> = vec![1.0 / self.way as f64; self.way];
        let embeddings = self.support.iter().map(Vec::as_slice).chain([query]);
        embeddings.zip(fields.chain([uniform])).map(|(x, field)| [x, &field].concat()).collect()
    }

    fn linear(&self, weight: &str, rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let weight = &self.tensors[weight];
        let product = |row: &Vec<f64>| {
            let dot = |w: &[f64]| w.iter().zip(row).map(|(w, x)| w * x).sum();
            weight.chunks(row.len()).map(dot).collect()
        };
        rows.iter().map(product).collect()
    }

    fn norm(&self, name: &str, rows: &mut [Vec<f64>]) {
        let [weight, bias] = ["weight", "bias"].map(|part| &self.tensors[&format!("{name}.norm.{part}")]);
        let count = rows.len() as f64;
        for column in 0..weight.len() {
            let mean = rows.iter().map(|row| row[column]).sum::<f64>() / count;
            let variance = rows.iter().map(|row| (row[column] - mean).powi(2)).sum::<f64>() / count;
            for row in &mut *rows {
                let value = (row[column] - mean) / (variance + 1e-5).sqrt() * weight[column] + bias[column];
                row[column] = if value > 0.0 { value } else { 0.01 * value };
            }
        }
    }

    fn cross_entropy(&self, logits: impl Iterator<Item = Vec<f64>>) -> f64 {
        let of = |(logits, &label): (Vec<f64>, &usize)| {
            logits.iter().map(|logit| logit.exp()).sum::<f64>().ln() - logits[label]
        };
        logits.zip(&self.query_labels).map(of).sum::<f64>() / self.query_labels.len() as f64
    }
}

/// Compares a gradient with the central difference of the reference, nudged by `nudge(reference, step)`.
fn check(what: &str, reference: &Reference, got: f32, nudge: impl Fn(&mut Reference, f64)) {
    let at = |step| {
        let mut nudged = reference.clone();
        nudge(&mut nudged, step);
        nudged.loss()
    };
    let expected = (at(1e-6) - at(-1e-6)) / 2e-6;
    let allowed = 1e-4 + 1e-3 * expected.abs();
    assert!((f64::from(got) - expected).abs() < allowed, "{what}: {got}, expected {expected}");
}

#[test]
fn gnn_gradients_match_finite_differences() {
    let wide = |values: &[f32]| values.iter().map(|&v| f64::from(v)).collect::<Vec<f64>>();
    for (blocks, dim, way, labels, query_labels) in
        [(1, 2, 3, vec![0, 2, 1], vec![1, 2]), (3, 3, 2, vec![1, 0, 0, 1], vec![0, 1, 1])]
    {
        let mut noise = Noise(blocks as u64);
        let support = noise.values(labels.len() * dim);
        let queries = noise.values(query_labels.len() * dim);
        let mut gnn = Gnn::new(GnnConfig { hidden: 4, blocks }, dim, way, 3).unwrap();
        // Norms that begin as the identity would hide a wrong gradient of their weights and biases.
        for update in gnn.updates() {
            if update.shape.len() == 1 {
                update.parameter.iter_mut().for_each(|value| *value += 0.3 * noise.value());
            }
        }
        let tensors = gnn.parameters().iter().map(|tensor| (tensor.name.to_owned(), wide(tensor.values)));
        let reference = Reference {
            blocks,
            way,
            support: support.chunks(dim).map(wide).collect(),
            labels: labels.clone(),
            queries: queries.chunks(dim).map(wide).collect(),
            query_labels: query_labels.clone(),
            tensors: tensors.collect(),
        };
        let pass = gnn.forward_backward(&support, &labels, &queries, &query_labels).unwrap();
        assert!((f64::from(pass.loss) - reference.loss()).abs() < 1e-4);
        for (i, &got) in pass.grad_support.iter().enumerate() {
            check("support", &reference, got, |reference, step| reference.support[i / dim][i % dim] += step);
        }
        for (i, &got) in pass.grad_queries.iter().enumerate() {
            check("queries", &reference, got, |reference, step| reference.queries[i / dim][i % dim] += step);
        }
        for gradient in gnn.gradients() {
            for (i, &got) in gradient.values.iter().enumerate() {
                check(gradient.name, &reference, got, |reference, step| {
                    reference.tensors.get_mut(gradient.name).unwrap()[i] += step;
                });
            }
        }
    }
}

/// Samples of `way` classes around centres of their own, `shot` of each, class by class.
fn samples(noise: &mut Noise, centres: &[f32], dim: usize, shot: usize) -> (Vec<f32>, Vec<usize>) {
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    for (label, centre) in centres.chunks(dim).enumerate() {
        for _ in 0..shot {
            values.extend(centre.iter().map(|value| value + 0.4 * noise.value()));
            labels.push(label);
        }
    }
    (values, labels)
}

#[test]
fn gnn_does_not_mind_order_nor_company() {
    let dim = 6;
    let mut noise = Noise(4);
    let mut gnn = Gnn::new(GnnConfig { hidden: 16, blocks: 3 }, dim, 3, 5).unwrap();
    let centres = noise.values(3 * dim);
    let (support, labels) = samples(&mut noise, &centres, dim, 2);
    let (queries, query_labels) = samples(&mut noise, &centres, dim, 30);
    gnn.forward_backward(&support, &labels, &queries, &query_labels).unwrap();

    let logits = gnn.forward(&support, &labels, &queries).unwrap();
    for (query, expected) in queries.chunks(dim).zip(logits.chunks(3)) {
        assert_eq!(gnn.forward(&support, &labels, query).unwrap(), expected);
    }
    let order = [4, 1, 5, 0, 3, 2];
    let moved: Vec<f32> = order.iter().flat_map(|&i| support[i * dim..][..dim].to_vec()).collect();
    let moved_labels: Vec<usize> = order.iter().map(|&i| labels[i]).collect();
    assert_close("other order", &gnn.forward(&moved, &moved_labels, &queries).unwrap(), &logits, 1e-5);
    assert!(gnn.forward(&support, &labels, &[]).unwrap().is_empty());
}

#[test]
fn gnn_gives_the_same_bits_on_any_number_of_threads() {
    let run = |threads: usize| {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| {
            let mut noise = Noise(9);
            let centres = noise.values(5 * 20);
            let mut gnn = Gnn::new(GnnConfig { hidden: 32, blocks: 3 }, 20, 5, 5).unwrap();
            let (support, labels) = samples(&mut noise, &centres, 20, 3);
            let (queries, query_labels) = samples(&mut noise, &centres, 20, 4);
            let pass = gnn.forward_backward(&support, &labels, &queries, &query_labels).unwrap();
            let gradients: Vec<Vec<f32>> = gnn.gradients().map(|tensor| tensor.values.to_vec()).collect();
            let logits = gnn.forward(&support, &labels, &queries).unwrap();
            (pass, gradients, gnn.state().collect::<TensorList>(), logits)
        })
    };
    let one = run(1);
    assert!(one == run(2) && one == run(3));
}

#[test]
fn gnn_learns_to_classify_new_clusters() {
    let (dim, way) = (8, 3);
    let mut gnn = Gnn::new(GnnConfig { hidden: 16, blocks: 2 }, dim, way, 1).unwrap();
    let mut adam = Adam::new(AdamConfig::default());
    let mut noise = Noise(1);
    for episode in 0..300 {
        let centres = noise.values(way * dim);
        let (support, labels) = samples(&mut noise, &centres, dim, 1);
        let (queries, query_labels) = samples(&mut noise, &centres, dim, 3);
        gnn.forward_backward(&support, &labels, &queries, &query_labels).unwrap();
        adam.step(&mut gnn.updates(), 5e-3, episode).unwrap();
    }
    let mut right = 0;
    for _ in 0..50 {
        let centres = noise.values(way * dim);
        let (support, labels) = samples(&mut noise, &centres, dim, 1);
        let (queries, query_labels) = samples(&mut noise, &centres, dim, 2);
        let logits = gnn.forward(&support, &labels, &queries).unwrap();
        right += logits
            .chunks(way)
            .zip(query_labels)
            .filter(|(logits, label)| (0..way).all(|class| logits[class] <= logits[*label]))
            .count();
    }
    let accuracy = right as f32 / (50 * way * 2) as f32;
    assert!(accuracy > 0.8, "{accuracy} of new clusters are told apart, chance is 0.33");
}

#[test]
fn gnn_refuses_wrong_calls() {
    assert!(Gnn::new(GnnConfig { hidden: 1, blocks: 3 }, 2, 2, 1).is_err());
    assert!(Gnn::new(GnnConfig { hidden: 4, blocks: 0 }, 2, 2, 1).is_err());
    let mut gnn = Gnn::new(GnnConfig { hidden: 4, blocks: 2 }, 2, 2, 1).unwrap();
    let message = gnn.forward(&[0.0; 4], &[0, 2], &[0.0; 2]).unwrap_err().to_string();
    assert!(message.contains("label 2 of sample 1: the network was made for 2 classes"), "{message}");
    assert!(matches!(gnn.forward(&[], &[], &[0.0; 2]), Err(ModelError::WrongLength { .. })));
    assert!(matches!(gnn.forward(&[0.0; 2], &[0], &[0.0; 3]), Err(ModelError::WrongLength { .. })));
    let queries = gnn.forward_backward(&[0.0; 2], &[0], &[0.0; 2], &[]);
    assert!(matches!(queries, Err(ModelError::WrongLength { .. })));
    assert!(gnn.forward_backward(&[0.0; 2], &[0], &[0.0; 2], &[5]).is_err());
    // One sample, one query: a single pair, whose statistics have no spread.
    let pass = gnn.forward_backward(&[0.0; 2], &[0], &[0.0; 2], &[1]).unwrap();
    assert!(pass.loss.is_finite() && pass.grad_queries.iter().all(|value| value.is_finite()));
}
