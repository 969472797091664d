//! Nothing is encoded twice, whoever encoded it first.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpn_data::Source;
use gpn_data::source::{SourceKind, SourceSpec, SyntheticSource};
use gpn_data::synthetic::SyntheticConfig;
use gpn_encode::{EmbeddingCache, EncoderConfig, ImageEncoder};

use crate::made::{conv, fixture, photos, tokens};

#[test]
fn a_second_run_encodes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let cache = EmbeddingCache::new(folder.path());
    let encoder = conv();
    let first = encoder.encode(photos().as_slice(), Some(&cache), &()).unwrap();
    assert_eq!((first.computed, first.from_cache), (4, 0));
    // Under other names, in another order, twice: the content counts.
    let other = tempfile::tempdir().unwrap();
    let mut copies: Vec<PathBuf> = Vec::new();
    for (number, photo) in photos().iter().rev().enumerate() {
        copies.push(other.path().join(format!("{number}.png")));
        fs::copy(photo, copies.last().unwrap()).unwrap();
    }
    let second = conv().encode(copies.as_slice(), Some(&cache), &()).unwrap();
    assert_eq!((second.computed, second.from_cache), (0, 4));
    let mut second = second.all().unwrap();
    second.reverse();
    assert_eq!(first.all().unwrap(), second);
    // Another setting is another encoder.
    let other = EncoderConfig { normalise: Some(true), ..EncoderConfig::default() };
    let other = ImageEncoder::open(&fixture("conv.onnx"), &other).unwrap();
    assert_eq!(other.encode(photos().as_slice(), Some(&cache), &()).unwrap().computed, 4);
}

#[test]
fn a_source_of_image_files_shares_the_cache_with_the_files() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("photos/some")).unwrap();
    for (number, photo) in photos().iter().enumerate() {
        fs::copy(photo, folder.path().join(format!("photos/some/{number}.png"))).unwrap();
    }
    let cache = EmbeddingCache::new(&folder.path().join("cache"));
    let encoder = conv();
    let files = encoder.encode(photos().as_slice(), Some(&cache), &()).unwrap();
    let spec = SourceSpec { kind: SourceKind::ImageFolder, path: folder.path().join("photos") };
    let source = gpn_data::open(&spec).unwrap();
    let encoded = encoder.encode(source.as_ref(), Some(&cache), &()).unwrap();
    assert_eq!((encoded.computed, encoded.from_cache), (0, 4));
    assert_eq!(encoded.all().unwrap(), files.all().unwrap());
    // A source without files is told apart by its pixels.
    let drawn = SyntheticSource::new(SyntheticConfig { size: 8, per_leaf: 1, ..SyntheticConfig::default() });
    let drawn: &dyn Source = &drawn;
    let count = drawn.samples().len();
    let first = encoder.encode(drawn, Some(&cache), &()).unwrap();
    let second = encoder.encode(drawn, Some(&cache), &()).unwrap();
    assert_eq!((first.from_cache, second.computed, second.from_cache), (0, 0, count));
    assert_eq!(first.all().unwrap(), second.all().unwrap());
}

#[test]
fn the_same_content_is_encoded_once() {
    let texts = ["a red apple", "a pear", "a red apple", "a red apple"];
    let encoded = tokens().encode(&texts, None, &()).unwrap();
    assert_eq!(encoded.computed, 2);
    let embeddings = encoded.all().unwrap();
    assert_eq!(embeddings[0], embeddings[3]);
    assert_ne!(embeddings[0], embeddings[1]);
}

#[test]
fn a_damaged_record_is_encoded_anew_with_a_note() {
    let folder = tempfile::tempdir().unwrap();
    let cache = EmbeddingCache::new(folder.path());
    let encoder = conv();
    let sound = encoder.encode(photos().as_slice(), Some(&cache), &()).unwrap().all().unwrap();
    let path = fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    let mut bytes = fs::read(&path).unwrap();
    let last = bytes.len() - 20;
    bytes[last] ^= 1;
    fs::write(&path, bytes).unwrap();
    let again = encoder.encode(photos().as_slice(), Some(&cache), &()).unwrap();
    assert_eq!((again.computed, again.from_cache), (1, 3));
    assert!(again.notes[0].contains("1 damaged record discarded"), "{:?}", again.notes);
    assert_eq!(again.all().unwrap(), sound);
    let third = encoder.encode(photos().as_slice(), Some(&cache), &()).unwrap();
    assert_eq!((third.computed, third.notes.len()), (0, 0));
}

const CACHE_OF_CHILD: &str = "GPN_TEST_ENCODE_CACHE";
const PART_OF_CHILD: &str = "GPN_TEST_ENCODE_PART";

fn texts_of(part: usize) -> Vec<String> {
    let words = ["red", "green", "apple", "pear", "store", "the"];
    let word = |number: usize| words[number % words.len()];
    (0..216).map(|n| format!("{} {} {} {}", word(n), word(n / 6), word(n / 36), word(n + part))).collect()
}

/// Not a test of its own: what the processes of the next test do.
#[test]
fn a_process_that_encodes() {
    let (Ok(folder), Ok(part)) = (std::env::var(CACHE_OF_CHILD), std::env::var(PART_OF_CHILD)) else {
        return;
    };
    let cache = EmbeddingCache::new(Path::new(&folder));
    let encoder = tokens();
    for text in texts_of(part.parse().unwrap()) {
        let encoded = encoder.encode(&[text], Some(&cache), &()).unwrap();
        assert!(encoded.notes.is_empty(), "{:?}", encoded.notes);
    }
}

#[test]
fn processes_at_once_lose_and_damage_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let child = |part: &str| {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "cache::a_process_that_encodes"])
            .env(CACHE_OF_CHILD, folder.path())
            .env(PART_OF_CHILD, part)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap()
    };
    let children = ["0", "1", "2"].map(child);
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let cache = EmbeddingCache::new(folder.path());
    let texts: Vec<String> = (0..3).flat_map(texts_of).collect();
    let encoded = tokens().encode(&texts, Some(&cache), &()).unwrap();
    assert_eq!((encoded.computed, encoded.from_cache), (0, texts.len()));
    assert!(encoded.notes.is_empty());
    assert_eq!(encoded.all().unwrap(), tokens().encode(&texts, None, &()).unwrap().all().unwrap());
}

#[cfg(unix)]
#[test]
fn a_killed_process_leaves_nothing_that_is_believed() {
    let folder = tempfile::tempdir().unwrap();
    let expected = tokens().encode(&texts_of(0), None, &()).unwrap().all().unwrap();
    for round in 0..5 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "cache::a_process_that_encodes"])
            .env(CACHE_OF_CHILD, folder.path())
            .env(PART_OF_CHILD, "0")
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(40 * round));
        let _ = child.kill();
        let _ = child.wait();
        let cache = EmbeddingCache::new(folder.path());
        let found = tokens().encode(&texts_of(0), Some(&cache), &()).unwrap();
        assert_eq!(found.all().unwrap(), expected, "round {round}");
        for entry in fs::read_dir(folder.path()).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "embeddings") {
                fs::remove_file(path).unwrap();
            }
        }
    }
}
