//! Times an encoder: opening it, encoding all samples, and reading them from the cache. Prints one line of JSON.
//!
//! `encoding_speed ENCODER SAMPLES THREADS [LIBRARY]`: SAMPLES is a folder of photos, or a file with one text a line; LIBRARY is the
//! shared library of ONNX Runtime, for a build with the feature `ort`. `bench/encode.py` runs it beside other programs.

use std::path::{Path, PathBuf};
use std::time::Instant;

use gpn_encode::{EmbeddingCache, Encoded, EncoderConfig, ImageEncoder, Runtime, TextEncoder};

/// What ends the program; threads pass it on.
type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [encoder, samples, threads, library @ ..] = arguments.as_slice() else {
        return Err("give ENCODER SAMPLES THREADS [LIBRARY]".into());
    };
    let config = EncoderConfig {
        runtime: (!library.is_empty()).then_some(Runtime::OnnxRuntime),
        onnxruntime_library: library.first().map(PathBuf::from),
        ..EncoderConfig::default()
    };
    let (encoder, samples) = (Path::new(encoder), Path::new(samples));
    let threads = rayon::ThreadPoolBuilder::new().num_threads(threads.parse()?).build()?;
    let folder = tempfile::tempdir()?;
    let cache = EmbeddingCache::new(folder.path());
    threads.install(|| {
        let started = Instant::now();
        if encoder.is_dir() {
            let opened = TextEncoder::open(encoder, &config)?;
            let opening = started.elapsed();
            let text = std::fs::read_to_string(samples)?;
            let texts: Vec<&str> = text.lines().collect();
            report(opening, || opened.encode(&texts, Some(&cache), &()))
        } else {
            let opened = ImageEncoder::open(encoder, &config)?;
            let opening = started.elapsed();
            let mut photos: Vec<PathBuf> = std::fs::read_dir(samples)?
                .map(|entry| entry.map(|entry| entry.path()))
                .collect::<Result<_, _>>()?;
            photos.sort();
            report(opening, || opened.encode(photos.as_slice(), Some(&cache), &()))
        }
    })
}

/// Encodes twice: the first time all, the second time from the cache.
fn report(
    opening: std::time::Duration,
    encode: impl Fn() -> gpn_encode::Result<Encoded>,
) -> Result<(), Failure> {
    let started = Instant::now();
    let first = encode()?;
    let encoding = started.elapsed();
    let started = Instant::now();
    let second = encode()?;
    let cached = started.elapsed();
    if second.computed > 0 || first.from_cache > 0 {
        return Err("the cache did not keep what was encoded".into());
    }
    let count = first.embeddings.len();
    if first.all()? != second.all()? {
        return Err("the cache gives other embeddings".into());
    }
    println!(
        "{{\"samples\": {count}, \"open\": {:.6}, \"encode\": {:.6}, \"from_cache\": {:.6}}}",
        opening.as_secs_f64(),
        encoding.as_secs_f64(),
        cached.as_secs_f64()
    );
    Ok(())
}
