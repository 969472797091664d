//! Times the search for the nearest prototypes: `cargo run --release -p gpn-model --example search -- ROWS QUERIES DIM COUNT
//! FOUND [approximate]`
//!
//! ROWS and QUERIES are files of 32-bit floats, one vector after the other; `bench/search.py` makes them. The COUNT nearest rows of
//! each query go to the file FOUND as 32-bit whole numbers. The first queries are asked one by one, then all at once. Prints
//! a JSON object: seconds of preparation, milliseconds of a query alone and among others, bytes beside the prototypes.

use std::path::Path;
use std::time::Instant;

use gpn_kernels::search::{Codes, nearest};
use gpn_model::{Memory, PrototypeIndex, simd_name};

/// Queries asked alone, and compared with every prototype.
const ALONE: usize = 50;
const SCANNED: usize = 10;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [rows, queries, dim, count, found, way @ ..] = &arguments[..] else {
        panic!("arguments: ROWS QUERIES DIM COUNT FOUND [approximate]");
    };
    let (dim, count): (usize, usize) = (dim.parse().expect("a number"), count.parse().expect("a number"));
    let queries = floats(Path::new(queries));
    let memory = Memory::new(dim, floats(Path::new(rows)));
    if way.first().is_some_and(|way| way == "approximate") {
        let started = Instant::now();
        let index = PrototypeIndex::approximate(&memory);
        let built = started.elapsed().as_secs_f64();
        let (alone, together, answers) = timed(&queries, dim, |queries| index.nearest(queries, count));
        write(Path::new(found), &answers);
        println!(
            "{{\"built\": {built:.3}, \"alone\": {alone:.4}, \"together\": {together:.4}, \"own_recall\": {:.4}}}",
            index.recall()
        );
        return;
    }
    let rows = memory.prototypes();
    let started = Instant::now();
    let codes = Codes::new(rows, dim).expect("finite rows");
    let built = started.elapsed().as_secs_f64();
    let (alone, together, answers) = timed(&queries, dim, |queries| codes.nearest(rows, queries, count));
    let scanned = &queries[..queries.len().min(SCANNED * dim)];
    let started = Instant::now();
    let expected: Vec<Vec<u32>> =
        scanned.chunks_exact(dim).flat_map(|query| nearest(rows, query, dim, count)).collect();
    let scan = started.elapsed().as_secs_f64() * 1e3 / expected.len() as f64;
    let is_equal = answers[..expected.len()] == expected[..];
    write(Path::new(found), &answers);
    println!(
        "{{\"simd\": \"{}\", \"built\": {built:.3}, \"alone\": {alone:.4}, \"together\": {together:.4}, \
         \"scan\": {scan:.3}, \"equal_to_scan\": {is_equal}, \"bytes\": {}}}",
        simd_name(),
        codes.bytes()
    );
    assert!(is_equal, "codes find other rows than a scan");
}

/// Milliseconds of a query alone (the median) and among all, and the answers.
fn timed(queries: &[f32], dim: usize, search: impl Fn(&[f32]) -> Vec<Vec<u32>>) -> (f64, f64, Vec<Vec<u32>>) {
    let mut times: Vec<f64> = queries
        .chunks_exact(dim)
        .take(ALONE)
        .map(|query| {
            let started = Instant::now();
            std::hint::black_box(search(query));
            started.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let started = Instant::now();
    let answers = search(queries);
    let together = started.elapsed().as_secs_f64() * 1e3 / answers.len() as f64;
    (times[times.len() / 2], together, answers)
}

fn floats(path: &Path) -> Vec<f32> {
    use std::io::Read as _;
    let mut file = std::fs::File::open(path).expect("the file is there");
    let bytes = file.metadata().expect("it is a file").len() as usize;
    let mut values = vec![0.0_f32; bytes / 4];
    let mut buffer = vec![0; 1 << 20];
    for part in values.chunks_mut(buffer.len() / 4) {
        let buffer = &mut buffer[..part.len() * 4];
        file.read_exact(buffer).expect("the file is read");
        for (value, bytes) in part.iter_mut().zip(buffer.as_chunks::<4>().0) {
            *value = f32::from_le_bytes(*bytes);
        }
    }
    values
}

fn write(path: &Path, answers: &[Vec<u32>]) {
    let bytes: Vec<u8> = answers.iter().flatten().flat_map(|row| row.to_le_bytes()).collect();
    std::fs::write(path, bytes).expect("the answers are written");
}
