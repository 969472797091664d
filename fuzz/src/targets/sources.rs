//! Data sets: embeddings, CIFAR-100, the pickles of tieredImageNet, lists and task files.

use std::path::Path;

use gpn_data::format::npy::Header;
use gpn_data::source::read_embeddings;
use gpn_data::task::read_tasks;
use gpn_data::{SampleKind, SourceKind, SourceSpec};

use super::checksums::mend_zip;
use super::{parts, written};

/// Opens a source and reads all of it.
fn read_all(kind: SourceKind, path: &Path) -> bool {
    let Ok(source) = gpn_data::open(&SourceSpec { kind, path: path.to_owned() }) else { return false };
    let is_readable = |&index: &usize| match source.kind() {
        SampleKind::Images => source.image(index).is_ok(),
        SampleKind::Embeddings { dim } => source.embedding(index, &mut vec![0.0; dim]).is_ok(),
    };
    let readable = (0..source.samples().len()).filter(is_readable).count();
    source.taxonomy().is_none_or(|taxonomy| taxonomy.is_ok()) && readable == source.samples().len()
}

/// As a table of embeddings, and as the labels of one.
pub(super) fn npy(data: &[u8], folder: &Path) -> bool {
    let _ = Header::parse(data, "x.npy");
    let are_embeddings = read_embeddings(&written(folder, "x.npy", data)).is_ok();
    let table = written(folder, "y.npy", &table(3, 2));
    written(folder, "y_labels.npy", data);
    read_all(SourceKind::Embeddings, &table) || are_embeddings
}

/// An `.npy` file of zeros.
fn table(rows: usize, columns: usize) -> Vec<u8> {
    let text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}\n");
    let head = [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text.as_bytes()].concat();
    [head, vec![0; rows * columns * 4]].concat()
}

/// Labels as lines and as CSV.
pub(super) fn labels(data: &[u8], folder: &Path) -> bool {
    let rows = data.split(|&byte| byte == b'\n').count() - 1;
    let is_accepted = |name: &str| {
        let table = written(folder, &format!("{name}.npy"), &table(rows, 1));
        written(folder, &format!("{name}_labels.{name}"), data);
        read_all(SourceKind::Embeddings, &table)
    };
    ["csv", "txt"].into_iter().filter(|name| is_accepted(name)).count() > 0
}

pub(super) fn npz(data: &[u8], folder: &Path) -> bool {
    let mut data = data.to_vec();
    mend_zip(&mut data);
    let path = written(folder, "x.npz", &data);
    let _ = read_embeddings(&path);
    read_all(SourceKind::Embeddings, &path)
}

pub(super) fn parquet(data: &[u8], folder: &Path) -> bool {
    let path = written(folder, "x.parquet", data);
    let _ = read_embeddings(&path);
    read_all(SourceKind::Embeddings, &path)
}

/// `train.bin`, the names of the fine and of the coarse classes.
pub(super) fn cifar(data: &[u8], folder: &Path) -> bool {
    let mut parts = parts(data);
    for name in ["train.bin", "fine_label_names.txt", "coarse_label_names.txt"] {
        written(folder, name, parts.next().unwrap_or_default());
    }
    read_all(SourceKind::Cifar100, folder)
}

/// Labels and images of tieredImageNet, one after the other; then the lists of names.
pub(super) fn pickle(data: &[u8], folder: &Path) -> bool {
    const LABELS: &[u8] = b"}(U\x0elabel_specific](K\x00K\x00eU\x12label_specific_str](U\x01aeu.";
    const IMAGES: &[u8] = b"](B\x02\x00\x00\x00abB\x02\x00\x00\x00cde.";
    let mut parts = parts(data);
    let pickle = parts.next().unwrap_or_default();
    for (name, file) in [("class_names.txt", parts.next()), ("synsets.txt", parts.next())] {
        match file {
            Some(file) => drop(written(folder, name, file)),
            // Whether it was there or not, it is not there now.
            None => drop(std::fs::remove_file(folder.join(name))),
        }
    }
    let is_accepted = |images: &[u8], labels: &[u8]| {
        written(folder, "train_images_png.pkl", images);
        written(folder, "train_labels.pkl", labels);
        read_all(SourceKind::TieredImagenet, folder)
    };
    let (as_images, as_labels) = (is_accepted(pickle, LABELS), is_accepted(IMAGES, pickle));
    as_images || as_labels
}

pub(super) fn leaves(data: &[u8], folder: &Path) -> bool {
    read_all(SourceKind::Leaves, &written(folder, "leaves.csv", data))
}

pub(super) fn tasks(data: &[u8], folder: &Path) -> bool {
    read_tasks(&written(folder, "tasks.json", data)).is_ok()
}
