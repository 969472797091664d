//! Cost of a task against the number of classes: `cargo run --release -p gpn-train --example scaling -- [DIM]`
//!
//! Class graphs are random: each class has up to eight children, one in twenty a second parent, one in ten is a test
//! class. Tasks have five targets and two hops. Prototypes of length DIM (default 128) are drawn down the tree: that of
//! the parent and a step of their own; queries are further children of random classes. The recall of the cells is also
//! measured where prototypes and queries are noise. Prints a table for Markdown.

use std::hint::black_box;
use std::time::Instant;

use gpn_data::rng::{Purpose, Stream};
use gpn_model::{EXACT_UP_TO, Memory, Neighbourhood, PrototypeIndex};
use gpn_taxonomy::{HopSearch, Taxonomy, TaxonomyBuilder, contract};

const SIZES: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];
const TARGETS: usize = 5;
const HOPS: usize = 2;
const NEAREST: usize = 2;
const TASKS: usize = 2_000;
const SEARCHES: usize = 200;

fn main() {
    let dim = std::env::args().nth(1).map_or(128, |text| text.parse().expect("DIM is a number"));
    println!(
        "| classes | in training | known | unknown | exact | cells | recall | recall, noise | cells made |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    for classes in SIZES {
        let world = World::new(classes);
        let [training, known, unknown] = world.task_graphs();
        let graphs = format!("{training:.0} µs | {known:.0} µs | {unknown:.0} µs");
        println!("| {classes} | {graphs} | {} |", searches(classes, dim));
    }
}

/// A class graph; classes below `training` are training classes.
struct World {
    graph: Taxonomy,
    training: usize,
}

impl World {
    fn new(classes: usize) -> Self {
        let mut stream = Stream::new(1, Purpose::Split, classes as u64);
        // The tree is made in the order of places; training classes get the lower numbers.
        let is_test: Vec<bool> = (0..classes).map(|place| place > 0 && stream.below(10) == 0).collect();
        let mut number = vec![0; classes];
        let order =
            (0..classes).filter(|&place| !is_test[place]).chain((0..classes).filter(|&place| is_test[place]));
        for (class, place) in order.enumerate() {
            number[place] = class as u32;
        }
        let mut builder = TaxonomyBuilder::new();
        for class in 0..classes {
            builder.add_class(&format!("c{class}"));
        }
        for place in 1..classes {
            builder.add_edge(number[(place - 1) / 8], number[place], None);
            if stream.below(20) == 0 {
                builder.add_edge(number[stream.below(place)], number[place], None);
            }
        }
        // invariant: edges lead from lower places to higher ones.
        let graph = builder.build().expect("no cycle").taxonomy;
        Self { graph, training: is_test.iter().filter(|&&is_test| !is_test).count() }
    }

    /// Microseconds per task: in training, hierarchy known, unknown.
    fn task_graphs(&self) -> [f64; 3] {
        let Self { graph, training } = self;
        let classes: Vec<u32> = (0..*training as u32).collect();
        let training_graph = contract(graph, &classes);
        let mut stream = Stream::new(2, Purpose::Split, 0);
        let mut draw = |from: usize, to: usize| -> Vec<u32> {
            (0..TARGETS).map(|_| (from + stream.below(to - from)) as u32).collect()
        };
        let seen: Vec<Vec<u32>> = (0..TASKS).map(|_| draw(0, *training)).collect();
        let new: Vec<Vec<u32>> = (0..TASKS).map(|_| draw(*training, graph.len())).collect();
        let near: Vec<Vec<Vec<u32>>> = (0..TASKS)
            .map(|_| (0..TARGETS).map(|_| draw(0, *training)[..NEAREST].to_vec()).collect())
            .collect();
        let mut search = HopSearch::new(&training_graph);
        [
            microseconds(TASKS, |task| {
                black_box(Neighbourhood::in_training(&training_graph, &seen[task], HOPS, None, &mut search));
            }),
            microseconds(TASKS, |task| {
                black_box(Neighbourhood::known(graph, *training, &new[task], HOPS));
            }),
            microseconds(TASKS, |task| {
                black_box(Neighbourhood::unknown(&training_graph, &new[task], &near[task], HOPS).is_ok());
            }),
        ]
    }
}

/// Cells of the table: exact search, search by cells, its recall on both kinds of prototypes, time to make the cells.
fn searches(classes: usize, dim: usize) -> String {
    let (memory, queries) = prototypes(classes, dim, Kind::Tree);
    let index = PrototypeIndex::new(&memory);
    // The first queries make the codes.
    search(&index, &queries);
    let (exact, exact_time) = search(&index, &queries);
    drop(index);
    if classes <= EXACT_UP_TO {
        return format!("{exact_time:.2} ms | | | |");
    }
    let started = Instant::now();
    let index = PrototypeIndex::approximate(&memory);
    let built = started.elapsed().as_secs_f64();
    let (found, time) = search(&index, &queries);
    let recall = share_found(&exact, &found);
    drop(index);
    drop(memory);
    let (memory, queries) = prototypes(classes, dim, Kind::Noise);
    let [exact, found] = [PrototypeIndex::new(&memory), PrototypeIndex::approximate(&memory)]
        .map(|index| search(&index, &queries).0);
    let of_noise = share_found(&exact, &found);
    format!("{exact_time:.2} ms | {time:.2} ms | {recall:.3} | {of_noise:.3} | {built:.1} s")
}

/// How prototypes lie to each other.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Each is that of its parent and a step of its own.
    Tree,
    /// Independent: the worst case, all classes are about equally far from a query.
    Noise,
}

/// A memory, and queries like its prototypes.
fn prototypes(classes: usize, dim: usize, kind: Kind) -> (Memory, Vec<Vec<f32>>) {
    let mut stream = Stream::new(3, Purpose::Memory, classes as u64);
    let mut step = |prototype: &mut [f32]| {
        for pair in prototype.chunks_mut(2) {
            let (a, b) = stream.normal_pair();
            pair[0] += a;
            pair.iter_mut().skip(1).for_each(|value| *value += b);
        }
    };
    let mut prototypes = vec![0.0; classes * dim];
    for class in 1..classes {
        let (before, own) = prototypes.split_at_mut(class * dim);
        if kind == Kind::Tree {
            own[..dim].copy_from_slice(&before[(class - 1) / 8 * dim..][..dim]);
        }
        step(&mut own[..dim]);
    }
    let memory = Memory::new(dim, prototypes);
    let mut draw = Stream::new(4, Purpose::Memory, 0);
    let queries = (0..SEARCHES).map(|_| {
        let parent = draw.below(classes) as u32;
        let mut query = if kind == Kind::Tree { memory.of(parent).to_vec() } else { vec![0.0; dim] };
        step(&mut query);
        query
    });
    let queries = queries.collect();
    (memory, queries)
}

/// The classes found for each query, and milliseconds for one.
fn search(index: &PrototypeIndex<'_>, queries: &[Vec<f32>]) -> (Vec<Vec<u32>>, f64) {
    let mut found = Vec::new();
    let time = microseconds(SEARCHES, |at| found.push(index.nearest(&queries[at], NEAREST).swap_remove(0)));
    (found, time / 1000.0)
}

/// Which share of the nearest classes was found.
fn share_found(exact: &[Vec<u32>], found: &[Vec<u32>]) -> f64 {
    let hits: usize =
        exact.iter().zip(found).map(|(a, b)| a.iter().filter(|class| b.contains(class)).count()).sum();
    hits as f64 / (SEARCHES * NEAREST) as f64
}

/// Mean time of a run, in microseconds.
fn microseconds(runs: usize, mut run: impl FnMut(usize)) -> f64 {
    let started = Instant::now();
    for at in 0..runs {
        run(at);
    }
    started.elapsed().as_secs_f64() * 1e6 / runs as f64
}
