//! What must hold for every graph.

use std::collections::{BTreeMap, BTreeSet};

use gpn_taxonomy::{
    HopSearch, LinkAs, Node, Prefer, Taxonomy, TaxonomyBuilder, collapse_chains, contract,
    contracted_task_graph, hop_distances, leaf_counts, leaves_below, link, linked_task_graph, read_edges,
    read_json, same_leaves, spanning_forest, task_graph, write_csv, write_json,
};
use proptest::prelude::*;

/// A graph of up to 30 classes with odd ids. Edges go from the class that comes earlier in a hidden order, so that
/// positions and edges are unrelated.
fn dag() -> impl Strategy<Value = Taxonomy> {
    let ids = prop::collection::btree_set("[a-c\",;# \t\n\r'\\\\é{}:]{0,6}", 1..30);
    (ids, any::<u64>()).prop_flat_map(|(ids, seed)| {
        let ids: BTreeSet<String> = ids.iter().map(|id| format!("x{id}y").trim().to_owned()).collect();
        let count = ids.len();
        let edges = prop::collection::vec((0..count, 0..count), 0..3 * count);
        let ids: Vec<String> = ids.into_iter().collect();
        (Just(ids), edges, Just((0..count).collect::<Vec<_>>()).prop_shuffle(), Just(seed)).prop_map(
            |(ids, edges, rank, seed)| {
                let mut graph = TaxonomyBuilder::new();
                for (n, id) in ids.iter().enumerate() {
                    let first = if seed >> (n % 64) & 1 == 0 { "#" } else { "" };
                    let node = graph.add_class(&format!("{first}{id}"));
                    if n % 3 == 0 {
                        graph.set_name(node, &format!("name of\n{id}"));
                    }
                }
                for (a, b) in edges {
                    let (a, b) = if rank[a] < rank[b] { (a, b) } else { (b, a) };
                    if a != b {
                        graph.add_edge(a as Node, b as Node, None);
                    }
                }
                graph.build().unwrap().taxonomy
            },
        )
    })
}

/// Ids, parents and children in their order, comparable between graphs with other positions.
fn content(graph: &Taxonomy) -> BTreeMap<&str, (Vec<&str>, Vec<&str>)> {
    let ids = |nodes: &[Node]| nodes.iter().map(|&n| graph.id(n)).collect();
    graph.nodes().map(|n| (graph.id(n), (ids(graph.parents(n)), ids(graph.children(n))))).collect()
}

fn is_reachable(graph: &Taxonomy, from: Node) -> Vec<bool> {
    let mut reached = vec![false; graph.len()];
    let mut open = vec![from];
    while let Some(n) = open.pop() {
        if !std::mem::replace(&mut reached[n as usize], true) {
            open.extend_from_slice(graph.children(n));
        }
    }
    reached
}

/// Labels of connected components, directions ignored.
fn components(nodes: usize, edges: &[(u32, u32)]) -> Vec<usize> {
    let mut label: Vec<usize> = (0..nodes).collect();
    for _ in 0..nodes {
        for &(a, b) in edges {
            let least = label[a as usize].min(label[b as usize]);
            label[a as usize] = least;
            label[b as usize] = least;
        }
    }
    label
}

fn component_count(labels: &[usize]) -> usize {
    labels.iter().collect::<BTreeSet<_>>().len()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_graph_survives_csv(graph in dag()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("graph.csv");
        write_csv(&graph, &path).unwrap();
        let back = read_edges(&path).unwrap();
        prop_assert!(back.warnings.is_empty());
        prop_assert_eq!(content(&graph), content(&back.taxonomy));
    }

    #[test]
    fn a_graph_survives_json(graph in dag()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("graph.json");
        write_json(&graph, &path).unwrap();
        let back = read_json(&path).unwrap().taxonomy;
        let edges = |graph: &Taxonomy| -> BTreeSet<(String, String)> {
            graph.edges().map(|(p, c)| (graph.id(p).to_owned(), graph.id(c).to_owned())).collect()
        };
        prop_assert_eq!(edges(&graph), edges(&back));
        prop_assert_eq!(graph.len(), back.len());
        for n in graph.nodes() {
            let there = back.find(graph.id(n)).unwrap();
            prop_assert_eq!(graph.own_name(n), back.own_name(there));
        }
    }

    #[test]
    fn an_order_puts_parents_first(graph in dag()) {
        let mut place = vec![usize::MAX; graph.len()];
        for (at, &n) in graph.topological_order().iter().enumerate() {
            place[n as usize] = at;
        }
        prop_assert!(place.iter().all(|&at| at < graph.len()));
        prop_assert!(graph.edges().all(|(parent, child)| place[parent as usize] < place[child as usize]));
    }

    #[test]
    fn contraction_keeps_reachability(graph in dag(), mask in any::<u32>()) {
        let keep: Vec<Node> = graph.nodes().filter(|n| mask >> n & 1 == 1).collect();
        let part = contract(&graph, &keep);
        prop_assert_eq!(part.len(), keep.len());
        for (at, &n) in keep.iter().enumerate() {
            prop_assert_eq!(part.id(at as Node), graph.id(n));
            let before = is_reachable(&graph, n);
            let after = is_reachable(&part, at as Node);
            for (to, &m) in keep.iter().enumerate() {
                prop_assert_eq!(before[m as usize], after[to]);
            }
        }
        // Contraction in two steps is the same as in one.
        let half: Vec<Node> = graph.nodes().filter(|n| mask >> n & 1 == 1 || n % 2 == 0).collect();
        let first = contract(&graph, &half);
        let ids: Vec<&str> = keep.iter().map(|&n| graph.id(n)).collect();
        let second = contract(&first, &first.find_all(&ids).unwrap());
        let edges = |graph: &Taxonomy| graph.edges().collect::<BTreeSet<_>>();
        prop_assert_eq!(edges(&second), edges(&part));
    }

    #[test]
    fn a_spanning_forest_spans_and_no_swap_is_better(graph in dag(), seed in any::<u32>(), heavy in any::<bool>()) {
        let edges: Vec<(u32, u32)> = graph.edges().collect();
        // Few distinct weights, so that ties are common.
        let weight = |at: usize| (seed.wrapping_mul(at as u32 + 1).wrapping_mul(0x9E37_79B1) >> 29) as f32;
        let weights: Vec<f32> = (0..edges.len()).map(weight).collect();
        let prefer = if heavy { Prefer::Heavy } else { Prefer::Light };
        let tree = spanning_forest(graph.len(), &edges, &weights, prefer);
        let labels = components(graph.len(), &edges);
        prop_assert_eq!(tree.len(), graph.len() - component_count(&labels));
        let spanned = components(graph.len(), &tree.iter().map(|&at| edges[at]).collect::<Vec<_>>());
        prop_assert_eq!(&spanned, &labels);
        for &out in &tree {
            let rest: Vec<_> = tree.iter().filter(|&&at| at != out).map(|&at| edges[at]).collect();
            let parts = components(graph.len(), &rest);
            for (at, &(a, b)) in edges.iter().enumerate() {
                if parts[a as usize] != parts[b as usize] {
                    let better = if heavy { weights[at] > weights[out] } else { weights[at] < weights[out] };
                    prop_assert!(!better, "edge {} should replace {}", at, out);
                }
            }
        }
    }

    #[test]
    fn leaves_are_counted_once(graph in dag()) {
        let sets: Vec<Vec<Node>> = graph.nodes().map(|n| leaves_below(&graph, n)).collect();
        let lengths: Vec<u32> = sets.iter().map(|set| set.len() as u32).collect();
        prop_assert_eq!(leaf_counts(&graph), lengths);
        let grouped: BTreeSet<Node> = same_leaves(&graph).into_iter().flatten().collect();
        for n in graph.nodes() {
            let twins = graph.nodes().filter(|&m| sets[m as usize] == sets[n as usize]).count();
            prop_assert_eq!(grouped.contains(&n), twins > 1);
        }
        let collapsed = collapse_chains(&graph);
        prop_assert!(same_leaves(&collapsed).is_empty());
        prop_assert_eq!(collapsed.len(), sets.iter().collect::<BTreeSet<_>>().len());
        prop_assert_eq!(collapsed.leaves().count(), graph.leaves().count());
    }

    #[test]
    fn a_task_graph_is_the_ball_around_its_targets(graph in dag(), mask in any::<u32>(), hops in 0usize..5) {
        let targets: Vec<Node> = graph.nodes().filter(|n| mask >> n & 1 == 1).collect();
        let task = task_graph(&graph, &targets, hops, None, &mut HopSearch::new(&graph));
        let distances = hop_distances(&graph, &targets);
        let ball: BTreeSet<Node> = graph.nodes().filter(|&n| distances[n as usize] as usize <= hops).collect();
        prop_assert_eq!(task.nodes.iter().copied().collect::<BTreeSet<_>>(), ball.clone());
        let inside = graph.edges().filter(|(a, b)| ball.contains(a) && ball.contains(b)).collect::<BTreeSet<_>>();
        let edges = task.edges.iter().map(|&(a, b)| (task.nodes[a as usize], task.nodes[b as usize]));
        prop_assert_eq!(edges.collect::<BTreeSet<_>>(), inside);
        prop_assert!(task.edges.is_sorted());
    }

    #[test]
    fn a_local_task_graph_is_that_of_the_contraction(
        graph in dag(), mask in any::<u64>(), picks in prop::collection::vec(any::<prop::sample::Index>(), 1..5), hops in 0_usize..4,
    ) {
        let mut targets: Vec<Node> = picks.iter().map(|pick| pick.index(graph.len()) as Node).collect();
        targets.sort_unstable();
        targets.dedup();
        targets.rotate_left(1);
        let is_kept = |n: Node| mask >> n & 1 == 1 || targets.contains(&n);
        let kept: Vec<Node> = graph.nodes().filter(|&n| is_kept(n)).collect();
        let contracted = contract(&graph, &kept);
        let rows: Vec<Node> = targets.iter().map(|n| kept.binary_search(n).unwrap() as Node).collect();
        let mut expected = task_graph(&contracted, &rows, hops, None, &mut HopSearch::new(&contracted));
        for n in &mut expected.nodes {
            *n = kept[*n as usize];
        }
        prop_assert_eq!(contracted_task_graph(&graph, &targets, hops, is_kept), expected);
    }

    #[test]
    fn a_local_task_graph_is_that_of_the_linked_graph(
        graph in dag(), picks in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..4), 0..4), hops in 0_usize..4,
    ) {
        let links: Vec<Vec<Node>> = picks
            .iter()
            .map(|picks| picks.iter().map(|pick| pick.index(graph.len()) as Node).collect())
            .collect();
        let names: Vec<String> = (0..links.len()).map(|new| format!("new {new}")).collect();
        let new: Vec<(&str, &[Node])> = names.iter().map(String::as_str).zip(links.iter().map(Vec::as_slice)).collect();
        let linked = link(&graph, &new, LinkAs::Parent).unwrap();
        let targets: Vec<Node> = (graph.len() as Node..linked.len() as Node).collect();
        let expected = task_graph(&linked, &targets, hops + 1, None, &mut HopSearch::new(&linked));
        prop_assert_eq!(linked_task_graph(&graph, &links, hops), expected);
    }
}
