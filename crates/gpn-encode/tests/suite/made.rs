//! The fixtures, and ways to spoil them.

use std::path::{Path, PathBuf};

use gpn_encode::{EncoderConfig, ImageEncoder, TextEncoder};

pub(crate) const PHOTOS: [&str; 4] = ["photo_0.png", "photo_1.png", "photo_2.png", "photo_3.png"];

pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

pub(crate) fn photos() -> Vec<PathBuf> {
    PHOTOS.map(fixture).to_vec()
}

pub(crate) fn conv() -> ImageEncoder {
    ImageEncoder::open(&fixture("conv.onnx"), &EncoderConfig::default()).unwrap()
}

pub(crate) fn tokens() -> TextEncoder {
    TextEncoder::open(&fixture("tokens"), &EncoderConfig::default()).unwrap()
}

/// Copies a folder of fixtures.
pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
