//! Tables of embeddings from photos and texts.

use std::fs;
use std::path::{Path, PathBuf};

use gpn::encode::{EmbeddingCache, EncoderConfig};
use gpn::{EmbedRequest, Watch, embed};
use gpn_data::source::{SourceKind, SourceSpec};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../gpn-encode/tests/fixtures").join(name)
}

fn request<'a>(encoder: &'a Path, inputs: &'a [PathBuf], out: &'a Path) -> EmbedRequest<'a> {
    EmbedRequest {
        encoder,
        config: EncoderConfig::default(),
        cache: None,
        inputs,
        text_column: "text",
        out,
        replace: false,
    }
}

/// A folder of photos, one folder per class, one of the photos broken.
fn photos() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (class, photo) in [("red", 0), ("red", 1), ("green", 2), ("green", 3)] {
        fs::create_dir_all(folder.path().join("photos").join(class)).unwrap();
        let target = folder.path().join(format!("photos/{class}/{photo}.png"));
        fs::copy(fixture(&format!("photo_{photo}.png")), target).unwrap();
    }
    fs::write(folder.path().join("photos/red/broken.jpg"), "no photo").unwrap();
    folder
}

#[test]
fn a_folder_of_photos_becomes_a_labelled_table() {
    let folder = photos();
    let (encoder, inputs) = (fixture("conv.onnx"), [folder.path().join("photos")]);
    let cache = EmbeddingCache::new(&folder.path().join("cache"));
    for (round, name) in ["e.npy", "e.npz", "e.parquet"].iter().enumerate() {
        let out = folder.path().join(name);
        let request = EmbedRequest { cache: Some(&cache), ..request(&encoder, &inputs, &out) };
        let embedded = embed(&request, &Watch::default()).unwrap();
        assert_eq!((embedded.embeddings, embedded.dim, embedded.labelled), (4, 12, true));
        assert_eq!(embedded.from_cache, if round == 0 { 0 } else { 4 });
        assert!(embedded.failed.len() == 1 && embedded.failed[0].contains("broken.jpg: broken image"));
        let source = gpn_data::open(&SourceSpec { kind: SourceKind::Embeddings, path: out.clone() }).unwrap();
        let classes: Vec<&str> =
            source.samples().iter().map(|sample| source.leaves()[sample.leaf as usize].id.as_str()).collect();
        assert_eq!(classes, ["green", "green", "red", "red"], "{name}");
        // What is there is not replaced unasked.
        let refused = embed(&request, &Watch::default()).unwrap_err();
        assert!(refused.to_string().contains("it exists already"), "{refused}");
    }
}

#[test]
fn texts_come_from_lines_or_a_column() {
    let folder = tempfile::tempdir().unwrap();
    let lines = folder.path().join("texts.txt");
    fs::write(&lines, "a red apple\n\nthe store\r\n").unwrap();
    let table = folder.path().join("names.csv");
    fs::write(&table, "class;text\nfruit;a red apple\nshop;the store\n").unwrap();
    let encoder = fixture("tokens");
    let out = folder.path().join("a.npz");
    let embedded = embed(&request(&encoder, &[lines], &out), &Watch::default()).unwrap();
    assert_eq!((embedded.embeddings, embedded.dim, embedded.labelled), (2, 6, false));
    let labelled = folder.path().join("b.npz");
    let inputs = [table.clone()];
    let embedded = embed(&request(&encoder, &inputs, &labelled), &Watch::default()).unwrap();
    assert_eq!((embedded.embeddings, embedded.labelled), (2, true));
    assert_eq!(
        gpn_data::source::read_embeddings(&out).unwrap(),
        gpn_data::source::read_embeddings(&labelled).unwrap()
    );
    let other = folder.path().join("c.npz");
    let wrong = EmbedRequest { text_column: "name", ..request(&encoder, &inputs, &other) };
    let message = embed(&wrong, &Watch::default()).unwrap_err().to_string();
    assert!(message.contains("there is no column `name`; there are class, text"), "{message}");
}

#[test]
fn what_cannot_be_embedded_is_said() {
    let folder = photos();
    let out = folder.path().join("e.npy");
    let (conv, broken) = (fixture("conv.onnx"), [folder.path().join("photos/red/broken.jpg")]);
    for (encoder, inputs, out, expected) in [
        (conv.as_path(), &broken[..], out.as_path(), "nothing was written: "),
        (&conv, &[folder.path().join("absent.jpg")], &out, "absent.jpg: cannot open"),
        (&conv, &[folder.path().to_owned()], Path::new("e.csv"), "ends in .npy, .npz or .parquet"),
        (
            folder.path(),
            &broken,
            &out,
            "it is neither a text encoder (no tokenizer.json) nor a run directory",
        ),
        (&fixture("tokens"), &[folder.path().to_owned()], &out, "it is a directory; name a text file"),
    ] {
        let message = embed(&request(encoder, inputs, out), &Watch::default()).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
    assert!(!out.exists());
}
