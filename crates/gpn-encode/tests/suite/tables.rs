//! Tables of embeddings, read back as sources.

use std::path::Path;

use gpn_data::source::{SourceKind, SourceSpec, read_embeddings};
use gpn_encode::{EmbeddingTable, files_of, write};

fn labels() -> Vec<String> {
    ["red apple", "Birne äöü", "red apple", "x"].map(str::to_owned).to_vec()
}

fn files() -> Vec<String> {
    ["a/1.jpg", "b/2.jpg", "a/3 \u{1f34e}.jpg", "4.jpg"].map(str::to_owned).to_vec()
}

const VALUES: [f32; 12] = [1.0, -2.5, 3e-9, 4.0, 5.5, 6.0, 0.0, -0.0, 1e30, 7.25, 8.0, 9.0];

#[test]
fn what_is_written_is_read_as_a_source() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["e.npy", "e.npz", "e.parquet"] {
        let path = folder.path().join(name);
        let (labels, files) = (labels(), files());
        let table = EmbeddingTable { dim: 3, values: &VALUES, labels: Some(&labels), files: &files };
        write(&path, &table).unwrap();
        for file in files_of(&path, true).unwrap() {
            assert!(file.is_file(), "{}", file.display());
        }
        let source =
            gpn_data::open(&SourceSpec { kind: SourceKind::Embeddings, path: path.clone() }).unwrap();
        let mut row = [0.0; 3];
        for (index, sample) in source.samples().iter().enumerate() {
            assert_eq!(source.leaves()[sample.leaf as usize].id, labels[index], "{name}");
            source.embedding(index, &mut row).unwrap();
            assert_eq!(
                row.map(f32::to_bits),
                [0, 1, 2].map(|column| VALUES[index * 3 + column].to_bits()),
                "{name}"
            );
        }
        assert_eq!(source.samples().len(), 4);
    }
}

#[test]
fn tables_without_classes_are_read_as_rows() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["e.npy", "e.npz", "e.parquet"] {
        let path = folder.path().join(name);
        let table = EmbeddingTable { dim: 3, values: &VALUES, labels: None, files: &files() };
        write(&path, &table).unwrap();
        let rows = read_embeddings(&path).unwrap();
        assert_eq!((rows.dim, rows.values.as_slice()), (3, VALUES.as_slice()), "{name}");
    }
}

#[test]
fn other_names_and_uneven_tables_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let files = files();
    let table = EmbeddingTable { dim: 3, values: &VALUES, labels: None, files: &files };
    let message = write(&folder.path().join("e.csv"), &table).unwrap_err().to_string();
    assert!(message.contains("ends in .npy, .npz or .parquet"), "{message}");
    let short = EmbeddingTable { values: &VALUES[..6], ..table };
    assert!(
        write(&folder.path().join("e.npy"), &short).unwrap_err().to_string().contains("not equally many")
    );
    let empty = EmbeddingTable { values: &[], files: &[], ..table };
    assert!(write(&folder.path().join("e.npy"), &empty).is_err());
    assert!(write(Path::new("/no/such/folder/e.npz"), &table).is_err());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
