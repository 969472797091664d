//! The nearest of many rows by `hnsw_rs`, for `bench/search.py`: ROWS QUERIES DIM COUNT FOUND LINKS BUILD_BEAM SEARCH_BEAM.
//!
//! Prints what the other engines print: seconds to build, milliseconds of a query alone and of one among all, bytes.

use std::time::Instant;

use hnsw_rs::prelude::*;

fn values(path: &str) -> Vec<f32> {
    let bytes = std::fs::read(path).expect("the file can be read");
    bytes.as_chunks::<4>().0.iter().map(|value| f32::from_le_bytes(*value)).collect()
}

/// Memory of the process, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<usize>().ok());
    1024 * kilobytes.unwrap_or(0)
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| words[at].parse::<usize>().expect("a number");
    let (dim, count, links, build, beam) = (number(2), number(3), number(5), number(6), number(7));
    let (rows, queries) = (values(&words[0]), values(&words[1]));
    let (before, started) = (resident(), Instant::now());
    let layers = 16;
    let mut index = Hnsw::<f32, DistL2>::new(links, rows.len() / dim, layers, build, DistL2 {});
    let numbered: Vec<(&[f32], usize)> = rows.chunks_exact(dim).enumerate().map(|(at, row)| (row, at)).collect();
    index.parallel_insert_slice(&numbered);
    index.set_searching_mode(true);
    let built = started.elapsed().as_secs_f64();
    let bytes = resident() - before;

    let mut alone: Vec<f64> = queries
        .chunks_exact(dim)
        .take(50)
        .map(|query| {
            let started = Instant::now();
            std::hint::black_box(index.search(query, count, beam));
            1e3 * started.elapsed().as_secs_f64()
        })
        .collect();
    alone.sort_by(f64::total_cmp);
    let all: Vec<Vec<f32>> = queries.chunks_exact(dim).map(<[f32]>::to_vec).collect();
    let started = Instant::now();
    let found = index.parallel_search(&all, count, beam);
    let together = 1e3 * started.elapsed().as_secs_f64() / all.len() as f64;

    let mut answers = Vec::with_capacity(4 * count * all.len());
    for neighbours in &found {
        for place in 0..count {
            let id = neighbours.get(place).map_or(u32::MAX, |near| near.d_id as u32);
            answers.extend(id.to_le_bytes());
        }
    }
    std::fs::write(&words[4], answers).expect("the answers can be written");
    let alone = alone[alone.len() / 2];
    println!("{{\"built\": {built:.3}, \"alone\": {alone:.4}, \"together\": {together:.4}, \"bytes\": {bytes}}}");
}
