//! `gpn embed`: words, files, the place of the cache.

use std::fs;
use std::path::Path;

use crate::command::{command, failure, gpn, stderr, success};

fn fixture(name: &str) -> String {
    format!("{}/../gpn-encode/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A folder with photos of two classes.
fn photos() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (class, photo) in [("red", 0), ("green", 2)] {
        fs::create_dir_all(folder.path().join("photos").join(class)).unwrap();
        fs::copy(fixture(&format!("photo_{photo}.png")), folder.path().join(format!("photos/{class}/1.png")))
            .unwrap();
    }
    folder
}

fn embedded(folder: &Path, arguments: &[&str]) -> String {
    success(folder, &[&["embed", "--cache", "cache"], arguments].concat())
}

#[test]
fn photos_are_embedded_once_and_described() {
    let folder = photos();
    let folder = folder.path();
    let encoder = fixture("conv.onnx");
    assert_eq!(
        embedded(folder, &[&encoder, "photos", "--out", "e.npy"]),
        "e.npy, e_labels.npy, e_files.npy: 2 embeddings of 12 values with classes\n"
    );
    let again = embedded(folder, &[&encoder, "photos/red/1.png", "--out", "one.parquet"]);
    assert_eq!(again, "one.parquet: 1 embedding of 12 values, 1 from the cache\n");
    let json = embedded(folder, &[&encoder, "photos", "--out", "e.npz", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["embeddings"], &json["dim"], &json["from_cache"]), (&2.into(), &12.into(), &2.into()));
    // The table is a source of samples.
    fs::write(folder.join("kinds.csv"), "child,parent\nred,colour\ngreen,colour\n").unwrap();
    let arguments =
        ["data", "build", "--source=embeddings:e.npz", "--taxonomy=edges:kinds.csv", "--out=bench"];
    success(folder, &[&arguments[..], &["--train-share=1", "--classes-only"]].concat());
}

#[test]
fn a_broken_photo_is_a_warning() {
    let folder = photos();
    fs::write(folder.path().join("photos/red/2.jpg"), "no photo").unwrap();
    let arguments = ["embed", &fixture("conv.onnx"), "photos", "--no-cache", "--out", "e.npy"];
    let output = gpn(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(0));
    let message = stderr(&output);
    assert!(
        message.starts_with("warning: 1 sample is left out: photos/red/2.jpg: broken image"),
        "{message}"
    );
}

#[test]
fn the_cache_is_where_the_user_keeps_caches() {
    let folder = photos();
    let run = |variable: &str, value: &Path| {
        let arguments = ["embed", &fixture("conv.onnx"), "photos", "--force", "--out", "e.npy"];
        let output = command(folder.path(), &arguments)
            .env_remove("XDG_CACHE_HOME")
            .env("HOME", "/nonexistent")
            .env(variable, value)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    };
    run("XDG_CACHE_HOME", &folder.path().join("xdg"));
    run("HOME", &folder.path().join("home"));
    for kept in ["xdg/gpn", "home/.cache/gpn"] {
        assert_eq!(fs::read_dir(folder.path().join(kept)).unwrap().count(), 1, "{kept}");
    }
}

#[test]
fn errors_name_the_option_that_helps() {
    let folder = photos();
    let folder = folder.path();
    let (conv, tokens) = (fixture("conv.onnx"), fixture("tokens"));
    fs::write(folder.join("map.onnx"), {
        // Without the setting in its metadata that names one of its outputs.
        let bytes = fs::read(fixture("map.onnx")).unwrap();
        let at = bytes.windows(10).position(|part| part == b"gpn.output").unwrap();
        [&bytes[..at], b"xyz.output", &bytes[at + 10..]].concat()
    })
    .unwrap();
    let refused = |arguments: &[&str], expected: &str| {
        let message = failure(folder, &[&["embed", "--no-cache"], arguments].concat());
        assert!(message.contains(expected), "{message}");
    };
    refused(&["map.onnx", "photos", "--out", "e.npy"], "features, largest; --encoder-output NAME does that");
    refused(
        &[&conv, "photos", "--out", "e.npy", "--encoder-size", "8"],
        "the model takes 16x16; the options --encoder-",
    );
    refused(&[&conv, "photos", "--out", "e.txt"], "ends in .npy, .npz or .parquet");
    refused(&[&tokens, "photos", "--out", "e.npy"], "it is a directory; name a text file");
    fs::write(folder.join("e.npy"), "mine").unwrap();
    refused(&[&conv, "photos", "--out", "e.npy"], "pass --force to replace it");
    assert_eq!(fs::read(folder.join("e.npy")).unwrap(), b"mine");
}
