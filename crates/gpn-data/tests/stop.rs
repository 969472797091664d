//! Work that is stopped ends at once, with an error that says so, and leaves nothing behind.

mod made;

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use gpn_data::benchmark::{Benchmark, BuildConfig, build};
use gpn_data::source::{ArraySource, Source, SourceKind, SourceSpec, SyntheticSource};
use gpn_data::synthetic::SyntheticConfig;
use gpn_data::{DataError, ErrorKind, Progress, open_watched};
use gpn_taxonomy::{Taxonomy, TaxonomyBuilder};

/// Stops at call number `at`, counted from 0, and counts all calls.
struct StopAt {
    at: usize,
    calls: AtomicUsize,
}

impl StopAt {
    fn new(at: usize) -> Self {
        Self { at, calls: AtomicUsize::new(0) }
    }
}

impl Progress for StopAt {
    fn update(&self, _done: usize, _total: usize) -> ControlFlow<()> {
        match self.calls.fetch_add(1, Ordering::SeqCst) {
            call if call >= self.at => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().next().is_none()
}

/// Two classes below one.
fn graph() -> Taxonomy {
    let mut builder = TaxonomyBuilder::new();
    let [root, a, b] = ["root", "a", "b"].map(|id| builder.add_class(id));
    builder.add_edge(root, a, None);
    builder.add_edge(root, b, None);
    builder.build().unwrap().taxonomy
}

fn table() -> ArraySource<'static> {
    let labels: Vec<&str> = (0..1000).map(|row| if row % 2 == 0 { "a" } else { "b" }).collect();
    ArraySource::embeddings(vec![0.25; 4000], 4, &labels).unwrap()
}

#[test]
fn a_build_stops_at_every_call_and_leaves_nothing() {
    let images = SyntheticSource::new(SyntheticConfig { size: 8, per_leaf: 8, seed: 0 });
    let image_graph = images.taxonomy().unwrap().unwrap().taxonomy;
    let (table, table_graph) = (table(), graph());
    let sources: [(&dyn Source, &Taxonomy); 2] = [(&images, &image_graph), (&table, &table_graph)];
    let config = BuildConfig { size: 8, ..BuildConfig::default() };
    for (source, graph) in sources {
        // The first call, one in the middle, and the last one that there always is: when all samples are stored.
        for at in [0, 2, source.samples().len().div_ceil(128)] {
            let folder = tempfile::tempdir().unwrap();
            let stop = StopAt::new(at);
            let error =
                build(source, graph, "test", &config, &folder.path().join("bench"), &stop).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Interrupted);
            assert!(is_empty(folder.path()));
            let stop = StopAt::new(at);
            let error = Benchmark::from_source(source, graph, &config, &stop).unwrap_err();
            assert!(matches!(error, DataError::Interrupted), "{error}");
        }
    }
}

#[test]
fn a_stopped_build_leaves_the_benchmark_that_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("bench");
    let config = BuildConfig { replace: true, ..BuildConfig::default() };
    build(&table(), &graph(), "test", &config, &out, &()).unwrap();
    let before = Benchmark::open(&out).unwrap().manifest().fingerprint();
    assert!(build(&table(), &graph(), "test", &config, &out, &StopAt::new(1)).is_err());
    assert_eq!(Benchmark::open(&out).unwrap().manifest().fingerprint(), before);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_source_that_is_not_wanted_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let files = vec![("a/0.png".to_owned(), made::png([0, 0, 0]))];
    let path = made::directory(&folder.path().join("images"), &files);
    let spec = SourceSpec { kind: SourceKind::ImageFolder, path };
    let error = open_watched(&spec, &StopAt::new(0)).err().unwrap();
    assert!(matches!(error, DataError::Interrupted), "{error}");
    assert_eq!(open_watched(&spec, &()).unwrap().samples().len(), 1);
}
