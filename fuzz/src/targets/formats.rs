//! Images and archives.

use std::path::Path;

use gpn_data::format::archive::Archive;

use super::checksums::{mend_png, mend_tar, mend_zip};
use super::written;

fn decode(data: &[u8]) -> bool {
    let Ok(image) = gpn_data::decode(data, "x") else { return false };
    assert_eq!(image.pixels().len(), image.width() as usize * image.height() as usize * 3);
    true
}

pub(super) fn jpeg(data: &[u8], _: &Path) -> bool {
    decode(&[b"\xff\xd8", data].concat())
}

/// PNG, GIF, BMP and WebP.
pub(super) fn image(data: &[u8], _: &Path) -> bool {
    let mut data = data.to_vec();
    if data.starts_with(b"\x89PNG") {
        mend_png(&mut data);
    }
    decode(&data)
}

fn archive(folder: &Path, name: &str, data: &[u8]) -> bool {
    let Ok(archive) = Archive::open(&written(folder, name, data)) else { return false };
    let readable = (0..archive.len()).filter(|&index| archive.read(index).is_ok()).count();
    archive.text("words.txt").is_ok_and(|text| text.is_some()) && readable == archive.len()
}

pub(super) fn tar(data: &[u8], folder: &Path) -> bool {
    let mut data = data.to_vec();
    if !data.starts_with(&[0x1f, 0x8b]) {
        mend_tar(&mut data);
    }
    archive(folder, "x.tar", &data)
}

pub(super) fn zip(data: &[u8], folder: &Path) -> bool {
    let mut data = data.to_vec();
    mend_zip(&mut data);
    archive(folder, "x.zip", &data)
}
