//! The class graph against golden vectors, and against published class lists where they are there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gpn_golden::{Case, JsonCase, data_folder, json_cases, npz_cases};
use gpn_taxonomy::{
    HopSearch, LinkAs, Node, Prefer, Taxonomy, TaxonomyBuilder, contract, find_wordnet, hop_distances,
    imagenet_fall2011, leaf_counts, levels, link, read_edges, read_wordnet, same_leaves, spanning_forest,
    task_graph,
};
use serde_json::Value;

#[test]
fn parity_spanning_tree() {
    let mut heaviest = 0;
    for case in npz_cases("b_spanning_tree") {
        let names: BTreeSet<&str> =
            case.arrays.keys().filter_map(|name| Some(name.split_once('/')?.0)).collect();
        assert!(!names.is_empty(), "{}: no graphs", case.name);
        for name in names {
            let adjacency = case.array(&format!("{name}/adj"));
            let distances = case.array(&format!("{name}/dist"));
            let n = adjacency.shape[0];
            let edges = adjacency.set_entries();
            let weights: Vec<f32> =
                edges.iter().map(|&(i, j)| distances.values[i as usize * n + j as usize]).collect();
            for (tree, prefer) in [("tree", Prefer::Light), ("heaviest_tree", Prefer::Heavy)] {
                let Some(expected) = case.get(&format!("{name}/{tree}")) else { continue };
                let kept = spanning_forest(n, &edges, &weights, prefer);
                let kept: Vec<(u32, u32)> = kept.into_iter().map(|at| edges[at]).collect();
                assert_eq!(kept, expected.set_entries(), "{} {name} {tree}", case.name);
                heaviest += usize::from(prefer == Prefer::Heavy);
            }
        }
    }
    assert!(heaviest > 0, "no maximum spanning tree was compared");
}

/// A graph of `(parent, child)` ids, which take the order of first mention.
fn graph_of<'a>(edges: impl IntoIterator<Item = (&'a str, &'a str)>) -> Taxonomy {
    let mut builder = TaxonomyBuilder::new();
    for (parent, child) in edges {
        let [parent, child] = [parent, child].map(|id| builder.add_class(id));
        builder.add_edge(parent, child, None);
    }
    builder.build().unwrap().taxonomy
}

/// The graphs that cases refer to by name; class ids are numbers.
struct Graphs {
    read: BTreeMap<String, Taxonomy>,
}

impl Graphs {
    /// Those in the document; a document without any is about the published small benchmark. None where that is absent.
    fn of(document: &Value) -> Option<Self> {
        let mut read = BTreeMap::new();
        if let Some(graphs) = document["graphs"].as_object() {
            for (name, edges) in graphs {
                let edges: Vec<[String; 2]> = JsonCase::pairs(edges)
                    .iter()
                    .map(|(parent, child)| [parent.to_string(), child.to_string()])
                    .collect();
                let edges = edges.iter().map(|[parent, child]| (parent.as_str(), child.as_str()));
                read.insert(name.clone(), graph_of(edges));
            }
        } else {
            let folder = data_folder()?.join("tiny-bench");
            for name in ["train", "close_all", "far_all"] {
                let path = folder.join(format!("{name}_edges.csv"));
                read.insert(name.to_owned(), read_edges(&path).ok()?.taxonomy);
            }
        }
        Some(Self { read })
    }

    fn get(&self, name: &str) -> &Taxonomy {
        self.read.get(name).unwrap_or_else(|| panic!("no graph {name}"))
    }

    /// The graph of training and test classes, contracted to the targets and maybe the training classes.
    fn contracted(&self, split: &Value, targets: &[u64], with_training: bool) -> Taxonomy {
        let mut keep: BTreeSet<u64> = targets.iter().copied().collect();
        if with_training {
            let train = self.get("train");
            keep.extend(train.nodes().map(|n| number(train, n)));
        }
        let graph = self.get(&format!("{}_all", split.as_str().unwrap()));
        contract(graph, &nodes(graph, keep))
    }
}

fn number(graph: &Taxonomy, n: Node) -> u64 {
    graph.id(n).parse().unwrap()
}

fn nodes(graph: &Taxonomy, numbers: impl IntoIterator<Item = u64>) -> Vec<Node> {
    let ids: Vec<String> = numbers.into_iter().map(|number| number.to_string()).collect();
    graph.find_all(&ids).unwrap()
}

fn numbers(value: &Value) -> Vec<u64> {
    JsonCase::whole(value).into_iter().map(|number| number as u64).collect()
}

fn pairs(value: &Value) -> BTreeSet<(u64, u64)> {
    JsonCase::pairs(value).into_iter().map(|(a, b)| (u64::from(a), u64::from(b))).collect()
}

fn list<'a>(document: &'a Value, name: &str) -> &'a [Value] {
    document[name].as_array().map_or(&[], Vec::as_slice)
}

/// Compares the hop-T graph around the targets of a case.
fn check_task_graph(graph: &Taxonomy, case: &Value, hops: u64) {
    let targets = nodes(graph, numbers(&case["targets"]));
    let task = task_graph(graph, &targets, hops as usize, None, &mut HopSearch::new(graph));
    assert_eq!(task.nodes[..targets.len()], targets);
    let id = |row: u32| number(graph, task.nodes[row as usize]);
    let mut reached: Vec<u64> = task.nodes.iter().map(|&n| number(graph, n)).collect();
    reached.sort_unstable();
    assert_eq!(reached, numbers(&case["nodes_sorted"]), "{case}");
    let edges: BTreeSet<_> = task.edges.iter().map(|&(parent, child)| (id(parent), id(child))).collect();
    assert_eq!(edges, pairs(&case["edges_parent_child"]), "{case}");
    assert_eq!(edges.len(), task.edges.len());
}

fn is_thinned(case: &Value) -> bool {
    let thinned = case["ratio"].as_f64().is_some_and(|ratio| ratio < 1.0);
    if thinned {
        eprintln!("skipped: a case with lists halved at random has no fixed result");
    }
    thinned
}

#[test]
fn parity_graphs() {
    let mut count = BTreeMap::new();
    for found in json_cases("c_graphs") {
        let document = &found.document;
        let Some(graphs) = Graphs::of(document) else { continue };
        let mut compared = |kind: &'static str| *count.entry(kind).or_insert(0) += 1;
        for case in list(document, "pruning") {
            let with_training = case["candidates"].as_str().unwrap().contains("training");
            let graph = graphs.contracted(&case["split"], &numbers(&case["targets"]), with_training);
            let mut kept: Vec<u64> = graph.nodes().map(|n| number(&graph, n)).collect();
            kept.sort_unstable();
            assert_eq!(kept, numbers(&case["nodes"]));
            let edges: BTreeSet<_> = graph
                .edges()
                .map(|(parent, child)| (number(&graph, parent), number(&graph, child)))
                .collect();
            assert_eq!(edges, pairs(&case["edges_parent_child"]), "{}", case["targets"]);
            compared("pruning");
        }
        for case in list(document, "train_graph").iter().filter(|case| !is_thinned(case)) {
            check_task_graph(graphs.get("train"), case, case["n_hop"].as_u64().unwrap());
            compared("train_graph");
        }
        for case in list(document, "test_graph").iter().filter(|case| !is_thinned(case)) {
            let graph = graphs.contracted(&case["split"], &numbers(&case["targets"]), true);
            check_task_graph(&graph, case, case["n_hop"].as_u64().unwrap());
            compared("test_graph");
        }
        let inputs = found.name.replace("graphs", "nohier_inputs");
        let inputs = found.path.with_file_name(inputs).with_extension("npz");
        for case in list(document, "nohier_graph").iter().filter(|case| !is_thinned(case)) {
            let train = graphs.get("train");
            let near = nearest_prototypes(&inputs, case);
            let ids: Vec<String> = numbers(&case["targets"]).iter().map(u64::to_string).collect();
            let near: Vec<Vec<Node>> = near.into_iter().map(|row| nodes(train, row)).collect();
            let new: Vec<(&str, &[Node])> =
                ids.iter().zip(&near).map(|(id, near)| (id.as_str(), near.as_slice())).collect();
            let graph = link(train, &new, LinkAs::Parent).unwrap();
            // The hops of the case are taken from the linked classes, which are one hop from the targets.
            check_task_graph(&graph, case, case["n_hop"].as_u64().unwrap() + 1);
            compared("nohier_graph");
        }
    }
    assert_eq!(count.len(), 4, "a kind of graph has no case: {count:?}");
}

/// For each support prototype the class indices of the memory prototypes nearest to it.
fn nearest_prototypes(inputs: &Path, case: &Value) -> Vec<Vec<u64>> {
    let inputs = Case::read(inputs);
    let (memory, support) = (inputs.array("memory"), inputs.values("support_prototypes"));
    let width = memory.shape[1];
    let shift = case["shift_added_to_support_prototypes"].as_f64().unwrap_or(0.0) as f32;
    let count = case["n_nei"].as_u64().unwrap() as usize;
    let distance = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| (a + shift - b).powi(2)).sum::<f32>();
    let nearest = |prototype: &[f32]| {
        let mut all: Vec<(f32, u64)> = memory
            .values
            .chunks(width)
            .zip(0..)
            .map(|(class, index)| (distance(prototype, class), index))
            .collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        all[..count].iter().map(|&(_, index)| index).collect()
    };
    support.chunks(width).map(nearest).collect()
}

/// What a list of classes says of one of them.
struct Facts {
    id: String,
    leaves: u64,
    distance: u64,
    twins: u64,
}

/// Leaves, distances and classes with the same leaves, as lists of classes have them.
#[test]
fn parity_facts_about_classes() {
    let mut compared = 0;
    for found in json_cases("c_graphs") {
        let entries = list(&found.document, "facts");
        let Some(graphs) = Graphs::of(&found.document).filter(|_| !entries.is_empty()) else { continue };
        let facts: Vec<Facts> = entries
            .iter()
            .map(|entry| {
                let number = |name: &str| entry[name].as_u64().unwrap();
                let twins = number("same_leafset_as_n_other_classes");
                let (leaves, distance) = (number("n_leaves"), number("dist_to_train"));
                Facts { id: number("class").to_string(), leaves, distance, twins }
            })
            .collect();
        let training = found.document["training"].as_u64().unwrap();
        let training: Vec<String> = (0..training).map(|class| class.to_string()).collect();
        check_facts(graphs.get("close_all"), &training, &facts);
        compared += 1;
    }
    assert!(compared > 0, "no list of facts");
    let published = data_folder().map(|data| data.join("tiny-bench")).filter(|folder| folder.is_dir());
    if let Some(folder) = published {
        let graph = read_edges(&folder.join("graph_full_edges.csv")).unwrap().taxonomy;
        let (training, facts) = published_facts(&folder.join("classes.csv"));
        check_facts(&graph, &training, &facts);
    }
}

/// The training classes and the facts of a published list.
fn published_facts(list: &Path) -> (Vec<String>, Vec<Facts>) {
    let text = std::fs::read_to_string(list).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let column = |name: &str| header.iter().position(|field| *field == name).unwrap();
    let rows: Vec<Vec<&str>> = lines.collect();
    let id = |row: &Vec<&str>| row[column("wnid")].to_owned();
    let training = rows.iter().filter(|row| row[column("split")] == "train").map(id).collect();
    let facts = rows.iter().map(|row| {
        let number = |name: &str| row[column(name)].parse().unwrap();
        let twins = number("same_leafset_as_n_other_classes");
        Facts { id: id(row), leaves: number("n_leaves"), distance: number("dist_to_train"), twins }
    });
    (training, facts.collect())
}

fn check_facts(graph: &Taxonomy, training: &[String], facts: &[Facts]) {
    assert!(!facts.is_empty() && !training.is_empty());
    let counts = leaf_counts(graph);
    let distances = hop_distances(graph, &graph.find_all(training).unwrap());
    let mut twins = vec![0; graph.len()];
    for group in same_leaves(graph) {
        for &n in &group {
            twins[n as usize] = group.len() - 1;
        }
    }
    for Facts { id, leaves, distance, twins: others } in facts {
        let n = graph.find(id).unwrap() as usize;
        assert_eq!(u64::from(counts[n]), *leaves, "leaves of {id}");
        assert_eq!(u64::from(distances[n]), *distance, "distance of {id}");
        assert_eq!(twins[n] as u64, *others, "classes like {id}");
    }
}

fn edges_of(graph: &Taxonomy) -> BTreeSet<(String, String)> {
    graph.edges().map(|(p, c)| (graph.id(p).to_owned(), graph.id(c).to_owned())).collect()
}

fn text_pairs(value: &Value) -> Vec<(&str, &str)> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|pair| (pair[0].as_str().unwrap(), pair[1].as_str().unwrap()))
        .collect()
}

#[test]
fn parity_imagenet_cut() {
    let mut compared = 0;
    for found in json_cases("c_graphs") {
        for case in list(&found.document, "imagenet_cut") {
            let leaves: Vec<&str> =
                case["leaves"].as_array().unwrap().iter().map(|leaf| leaf.as_str().unwrap()).collect();
            let graph = imagenet_fall2011(&graph_of(text_pairs(&case["wordnet"])), &leaves).unwrap();
            let expected = text_pairs(&case["edges_parent_child"]);
            let expected = expected.into_iter().map(|(p, c)| (p.to_owned(), c.to_owned())).collect();
            assert_eq!(edges_of(&graph), expected, "{leaves:?}");
            compared += 1;
        }
    }
    assert!(compared > 0, "no cut was compared");
    let published = data_folder().map(|data| data.join("tiered")).filter(|folder| folder.is_dir());
    match (published, find_wordnet().and_then(|path| read_wordnet(&path))) {
        (Some(folder), Ok(wordnet)) => check_published_cut(&folder, &wordnet.taxonomy),
        (Some(_), Err(error)) => eprintln!("the published graph is not compared: {error}"),
        (None, _) => {}
    }
}

/// The whole graph of tieredImageNet from the real WordNet.
fn check_published_cut(folder: &Path, wordnet: &Taxonomy) {
    assert_eq!(wordnet.name(wordnet.find("n00001740").unwrap()), "entity");
    assert_eq!(wordnet.roots().count(), 1);
    let mut leaves = Vec::new();
    for split in ["train", "val", "test"] {
        let text = std::fs::read_to_string(folder.join(format!("leaves_{split}.csv"))).unwrap();
        leaves.extend(text.lines().map(|line| line.split(',').next().unwrap().to_owned()));
    }
    assert_eq!(leaves.len(), 608);
    for leaf in &mut leaves {
        // The published lists know the bird crane by the id of the machine.
        if leaf == "n02012849" {
            "n03126707".clone_into(leaf);
        }
    }
    let graph = imagenet_fall2011(wordnet, &leaves).unwrap();
    let expected = read_edges(&folder.join("edges.csv")).unwrap().taxonomy;
    assert_eq!(edges_of(&graph), edges_of(&expected));
    assert_eq!((graph.len(), graph.edge_count()), (1112, 1220));

    let stats = JsonCase::read(&folder.join("stats.json")).document;
    let stats = &stats["graph"];
    let counts: u64 = leaf_counts(&graph).into_iter().map(u64::from).sum();
    assert_eq!(Some(counts), stats["sum_of_leaf_counts"].as_u64());
    let levels = levels(&graph);
    let deepest = |depths: &[u32]| depths.iter().max().copied().map(u64::from);
    assert_eq!(deepest(&levels.shortest), stats["max_hops_to_root"].as_u64());
    assert_eq!(deepest(&levels.longest), stats["longest_path_to_root"].as_u64());
}
