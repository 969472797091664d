//! The fuzz targets over their committed seeds and over every input that once failed.

use std::fs;
use std::path::{Path, PathBuf};

#[path = "../../../../fuzz/src/targets/mod.rs"]
mod targets;

/// The files of `fuzz/WHAT/TARGET`, sorted; none where there is no such folder.
fn files(what: &str, target: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(what).join(target);
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn no_seed_or_regression_makes_a_reader_panic() {
    for (name, target) in targets::TARGETS {
        let seeds = files("corpus", name);
        assert!(!seeds.is_empty(), "fuzz/corpus/{name} is empty");
        let mut accepted = 0;
        for file in seeds.into_iter().chain(files("regressions", name)) {
            let folder = tempfile::tempdir().unwrap();
            println!("{}", file.display());
            accepted += usize::from(target(&fs::read(&file).unwrap(), folder.path()));
        }
        assert!(
            accepted > 0,
            "no seed in fuzz/corpus/{name} is valid any more; write them anew with fuzz/make_corpus.py"
        );
    }
}
