//! Times of loading and of the operations at three sizes: `cargo bench -p gpn-taxonomy`.
//!
//! Graphs are made by code: each class has a parent drawn from the classes at about a quarter of its position,
//! so depth grows with the logarithm of the size, and every fifth class has a second parent. Loading happens in a
//! process of its own, whose peak memory is shown.

use std::hint::black_box;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use gpn_taxonomy::{HopSearch, Node, Prefer, contract, leaf_counts, read_edges, spanning_forest, task_graph};

/// The argument with which the benchmark starts itself to load one file.
const LOAD: &str = "--load-file";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == LOAD) {
        return load(Path::new(&arguments[at + 1]));
    }
    let folder = tempfile::tempdir().unwrap();
    println!(
        "{:>9} {:>9} {:>9} {:>9} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "classes",
        "edges",
        "load",
        "peak",
        "contract",
        "2 hops",
        "(found)",
        "task",
        "(found)",
        "tree",
        "leaves"
    );
    for size in [1_000, 100_000, 1_000_000] {
        let path = folder.path().join(format!("{size}.csv"));
        write_graph(size, &path);
        let loaded = Command::new(std::env::current_exe().unwrap()).arg(LOAD).arg(&path).output().unwrap();
        let loaded = String::from_utf8(loaded.stdout).unwrap();
        let (load, peak) = loaded.trim().split_once(' ').unwrap();
        measure(&path, load, peak);
    }
}

fn load(path: &Path) {
    let start = Instant::now();
    let graph = read_edges(path).unwrap().taxonomy;
    let time = start.elapsed();
    black_box(&graph);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    let peak =
        peak.map_or("unknown".to_owned(), |kb| format!("{}MB", kb.trim().parse::<u64>().unwrap() / 1024));
    println!("{} {peak}", text(time));
}

fn measure(path: &Path, load: &str, peak: &str) {
    let graph = read_edges(path).unwrap().taxonomy;
    let mut numbers = Numbers(1);
    let mut node = || numbers.below(graph.len() as u32);

    let keep: Vec<Node> = graph.nodes().filter(|n| n.wrapping_mul(0x9E37_79B1) >> 31 == 0).collect();
    let contraction = time(1, || contract(&graph, &keep).len());

    let mut search = HopSearch::new(&graph);
    let starts: Vec<Node> = (0..1000).map(|_| node()).collect();
    let mut found = 0;
    let hops = time(1, || {
        found = starts.iter().map(|&n| search.neighbours(&graph, n, 2).len()).sum();
    }) / 1000;
    let tasks: Vec<Vec<Node>> = (0..1000).map(|_| (0..5).map(|_| node()).collect()).collect();
    let mut in_tasks = 0;
    let task = time(1, || {
        in_tasks =
            tasks.iter().map(|targets| task_graph(&graph, targets, 2, None, &mut search).nodes.len()).sum();
    }) / 1000;

    let edges: Vec<(Node, Node)> = graph.edges().collect();
    let weights: Vec<f32> = edges.iter().map(|_| numbers.below(1 << 24) as f32).collect();
    let tree = time(1, || spanning_forest(graph.len(), &edges, &weights, Prefer::Heavy).len());
    let leaves = time(1, || leaf_counts(&graph)[0]);
    println!(
        "{:>9} {:>9} {load:>9} {peak:>9} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        graph.len(),
        graph.edge_count(),
        text(contraction),
        text(hops),
        found / 1000,
        text(task),
        in_tasks / 1000,
        text(tree),
        text(leaves)
    );
}

/// The best of three runs, each of `repeat` calls, per call.
fn time<T>(repeat: u32, mut run: impl FnMut() -> T) -> Duration {
    let mut best = Duration::MAX;
    for _ in 0..3 {
        let start = Instant::now();
        for _ in 0..repeat {
            black_box(run());
        }
        best = best.min(start.elapsed() / repeat);
    }
    best
}

fn text(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    match micros {
        ..1e3 => format!("{micros:.1}us"),
        ..1e6 => format!("{:.1}ms", micros / 1e3),
        _ => format!("{:.2}s", micros / 1e6),
    }
}

fn write_graph(size: u32, path: &Path) {
    let mut out = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
    let mut numbers = Numbers(2);
    writeln!(out, "child,parent").unwrap();
    for n in 1..size {
        let parent = n / 5 + numbers.below(n / 10 + 1);
        writeln!(out, "class-{n:08},class-{:08}", parent.min(n - 1)).unwrap();
        if n % 5 == 0 {
            let second = (parent + 1 + numbers.below(n / 10 + 1)).min(n - 1);
            if second != parent {
                writeln!(out, "class-{n:08},class-{second:08}").unwrap();
            }
        }
    }
}

/// A small generator of numbers, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % u64::from(limit)) as u32
    }
}
