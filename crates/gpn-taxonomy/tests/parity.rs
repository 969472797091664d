//! The class graph against golden vectors and published class lists. Cases are those found in the folders that
//! `GPN_GOLDEN_DIR` and `GPN_DATA_DIR` name; without the folders the tests say so and pass.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use gpn_taxonomy::{
    HopSearch, LinkAs, Node, Prefer, Taxonomy, contract, find_wordnet, hop_distances, imagenet_fall2011,
    leaf_counts, levels, link, read_edges, read_wordnet, same_leaves, spanning_forest, task_graph,
};
use npyz::npz::NpzArchive;
use serde_json::Value;

/// The folder that an environment variable names, else `../shared/NAME` beside the workspace.
fn folder(variable: &str, name: &str) -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(name);
    let path = std::env::var_os(variable).map_or_else(beside, PathBuf::from);
    if !path.is_dir() {
        eprintln!("skipped: {} is absent; set {variable}", path.display());
        return None;
    }
    Some(path)
}

/// The files of a folder whose names begin and end so, sorted.
fn cases(folder: &Path, begin: &str, end: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy();
            name.starts_with(begin) && name.ends_with(end)
        })
        .collect();
    found.sort();
    if found.is_empty() {
        eprintln!("skipped: no {begin}*{end} in {}", folder.display());
    }
    found
}

fn array<T: npyz::Deserialize>(
    archive: &mut NpzArchive<impl std::io::Read + std::io::Seek>,
    name: &str,
) -> (Vec<T>, usize) {
    let array = archive.by_name(name).unwrap().unwrap_or_else(|| panic!("no array {name}"));
    let columns = array.shape()[1] as usize;
    (array.into_vec().unwrap(), columns)
}

#[test]
fn parity_spanning_tree() {
    let Some(golden) = folder("GPN_GOLDEN_DIR", "golden") else { return };
    let mut count = 0;
    for path in cases(&golden, "b_spanning_tree", ".npz") {
        let mut archive = NpzArchive::open(&path).unwrap();
        let names: BTreeSet<String> =
            archive.array_names().filter_map(|name| Some(name.split_once('/')?.0.to_owned())).collect();
        for name in names {
            let (adjacency, n) = array::<u8>(&mut archive, &format!("{name}/adj"));
            let (distance, _) = array::<f32>(&mut archive, &format!("{name}/dist"));
            let (expected, _) = array::<u8>(&mut archive, &format!("{name}/tree"));
            let places: Vec<usize> = (0..n * n).filter(|&at| adjacency[at] != 0).collect();
            let edges: Vec<(u32, u32)> = places.iter().map(|at| ((at / n) as u32, (at % n) as u32)).collect();
            let weights: Vec<f32> = places.iter().map(|&at| distance[at]).collect();
            let mut tree = vec![0; n * n];
            for at in spanning_forest(n, &edges, &weights, Prefer::Light) {
                tree[places[at]] = 1;
            }
            assert_eq!(tree, expected, "{} {name}", path.display());
            count += 1;
        }
    }
    eprintln!("{count} spanning trees agree");
}

/// The graphs of the small benchmark, whose class ids are numbers.
struct Graphs {
    folder: PathBuf,
    read: BTreeMap<String, Taxonomy>,
}

impl Graphs {
    fn get(&mut self, name: &str) -> &Taxonomy {
        let path = self.folder.join(format!("{name}_edges.csv"));
        self.read.entry(name.to_owned()).or_insert_with(|| read_edges(&path).unwrap().taxonomy)
    }

    /// The graph of training and test classes, contracted to the targets and maybe the training classes.
    fn contracted(&mut self, split: &Value, targets: &[u64], with_training: bool) -> Taxonomy {
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
    value.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
}

fn pairs(value: &Value) -> BTreeSet<(u64, u64)> {
    let pair = |pair: &Value| (pair[0].as_u64().unwrap(), pair[1].as_u64().unwrap());
    value.as_array().unwrap().iter().map(pair).collect()
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
    let Some(golden) = folder("GPN_GOLDEN_DIR", "golden") else { return };
    let Some(data) = folder("GPN_DATA_DIR", "data") else { return };
    let mut graphs = Graphs { folder: data.join("tiny-bench"), read: BTreeMap::new() };
    let mut count = 0;
    for path in cases(&golden, "c_graphs", ".json") {
        let document: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        for case in list(&document, "pruning") {
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
            count += 1;
        }
        for case in list(&document, "train_graph").iter().filter(|case| !is_thinned(case)) {
            check_task_graph(graphs.get("train"), case, case["n_hop"].as_u64().unwrap());
            count += 1;
        }
        for case in list(&document, "test_graph").iter().filter(|case| !is_thinned(case)) {
            let graph = graphs.contracted(&case["split"], &numbers(&case["targets"]), true);
            check_task_graph(&graph, case, case["n_hop"].as_u64().unwrap());
            count += 1;
        }
        let inputs = path.with_file_name(
            path.file_name()
                .unwrap()
                .to_string_lossy()
                .replace("graphs", "nohier_inputs")
                .replace("json", "npz"),
        );
        for case in list(&document, "nohier_graph").iter().filter(|case| !is_thinned(case)) {
            let train = graphs.get("train");
            let near = nearest_prototypes(&inputs, case);
            let ids: Vec<String> = numbers(&case["targets"]).iter().map(u64::to_string).collect();
            let near: Vec<Vec<Node>> = near.into_iter().map(|row| nodes(train, row)).collect();
            let new: Vec<(&str, &[Node])> =
                ids.iter().zip(&near).map(|(id, near)| (id.as_str(), near.as_slice())).collect();
            let graph = link(train, &new, LinkAs::Parent).unwrap();
            // The hops of the case are taken from the linked classes, which are one hop from the targets.
            check_task_graph(&graph, case, case["n_hop"].as_u64().unwrap() + 1);
            count += 1;
        }
    }
    eprintln!("{count} graphs agree");
}

/// For each support prototype the class indices of the memory prototypes nearest to it.
fn nearest_prototypes(inputs: &Path, case: &Value) -> Vec<Vec<u64>> {
    let mut archive = NpzArchive::open(inputs).unwrap();
    let (memory, width) = array::<f32>(&mut archive, "memory");
    let (support, _) = array::<f32>(&mut archive, "support_prototypes");
    let shift = case["shift_added_to_support_prototypes"].as_f64().unwrap_or(0.0) as f32;
    let count = case["n_nei"].as_u64().unwrap() as usize;
    let distance = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| (a + shift - b).powi(2)).sum::<f32>();
    let nearest = |prototype: &[f32]| {
        let mut all: Vec<(f32, u64)> =
            memory.chunks(width).zip(0..).map(|(class, index)| (distance(prototype, class), index)).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        all[..count].iter().map(|&(_, index)| index).collect()
    };
    support.chunks(width).map(nearest).collect()
}

/// Leaves, distances and classes with the same leaves, as the list of classes of the small benchmark has them.
#[test]
fn parity_facts_about_classes() {
    let Some(data) = folder("GPN_DATA_DIR", "data") else { return };
    let graph = read_edges(&data.join("tiny-bench/graph_full_edges.csv")).unwrap().taxonomy;
    let text = std::fs::read_to_string(data.join("tiny-bench/classes.csv")).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let column = |name: &str| header.iter().position(|field| *field == name).unwrap();
    let rows: Vec<Vec<&str>> = lines.collect();
    let train: Vec<&str> =
        rows.iter().filter(|row| row[column("split")] == "train").map(|row| row[column("wnid")]).collect();

    let counts = leaf_counts(&graph);
    let distances = hop_distances(&graph, &graph.find_all(&train).unwrap());
    let mut twins = vec![0; graph.len()];
    for group in same_leaves(&graph) {
        for &n in &group {
            twins[n as usize] = group.len() - 1;
        }
    }
    for row in &rows {
        let n = graph.find(row[column("wnid")]).unwrap() as usize;
        assert_eq!(counts[n].to_string(), row[column("n_leaves")], "{row:?}");
        assert_eq!(distances[n].to_string(), row[column("dist_to_train")], "{row:?}");
        assert_eq!(twins[n].to_string(), row[column("same_leafset_as_n_other_classes")], "{row:?}");
    }
    eprintln!("{} classes agree", rows.len());
}

#[test]
fn parity_imagenet_cut() {
    let Some(data) = folder("GPN_DATA_DIR", "data") else { return };
    let wordnet = match find_wordnet().and_then(|path| read_wordnet(&path)) {
        Ok(checked) => checked.taxonomy,
        Err(error) => {
            eprintln!("skipped: {error}");
            return;
        }
    };
    assert_eq!(wordnet.name(wordnet.find("n00001740").unwrap()), "entity");
    assert_eq!(wordnet.roots().count(), 1);
    let mut leaves = Vec::new();
    for split in ["train", "val", "test"] {
        let text = std::fs::read_to_string(data.join(format!("tiered/leaves_{split}.csv"))).unwrap();
        leaves.extend(text.lines().map(|line| line.split(',').next().unwrap().to_owned()));
    }
    assert_eq!(leaves.len(), 608);
    for leaf in &mut leaves {
        // The published lists know the bird crane by the id of the machine.
        if leaf == "n02012849" {
            "n03126707".clone_into(leaf);
        }
    }
    let graph = imagenet_fall2011(&wordnet, &leaves).unwrap();
    let expected = read_edges(&data.join("tiered/edges.csv")).unwrap().taxonomy;
    let edges = |graph: &Taxonomy| -> BTreeSet<(String, String)> {
        graph.edges().map(|(p, c)| (graph.id(p).to_owned(), graph.id(c).to_owned())).collect()
    };
    assert_eq!(edges(&graph), edges(&expected));
    assert_eq!((graph.len(), graph.edge_count()), (1112, 1220));

    let stats: Value =
        serde_json::from_slice(&std::fs::read(data.join("tiered/stats.json")).unwrap()).unwrap();
    let stats = &stats["graph"];
    let counts: u64 = leaf_counts(&graph).into_iter().map(u64::from).sum();
    assert_eq!(Some(counts), stats["sum_of_leaf_counts"].as_u64());
    let levels = levels(&graph);
    let deepest = |depths: &[u32]| depths.iter().max().copied().map(u64::from);
    assert_eq!(deepest(&levels.shortest), stats["max_hops_to_root"].as_u64());
    assert_eq!(deepest(&levels.longest), stats["longest_path_to_root"].as_u64());
}
