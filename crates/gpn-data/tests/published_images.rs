//! The order of Tiny-ImageNet's samples against the image list of the reference benchmark.

use gpn_data::{SampleKind, SourceKind, SourceSpec};

/// Needs the published images; says so where they are absent.
#[test]
fn published_order_of_images() {
    let Some(data) = gpn_golden::data_folder() else { return };
    let (archive, list) = (data.join("tiny-imagenet-200.tar"), data.join("tiny-bench/images.csv"));
    if !archive.is_file() || !list.is_file() {
        eprintln!("skipped: {} or {} is absent", archive.display(), list.display());
        return;
    }
    let source = gpn_data::open(&SourceSpec { kind: SourceKind::TinyImagenet, path: archive }).unwrap();
    assert_eq!(source.kind(), SampleKind::Images);
    assert_eq!(source.leaves().len(), 200);
    let text = std::fs::read_to_string(list).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), source.samples().len());
    for (index, (row, sample)) in rows.iter().zip(source.samples()).enumerate() {
        let leaf = &source.leaves()[sample.leaf as usize].id;
        assert_eq!(row[0].parse(), Ok(index));
        assert_eq!(row[1], leaf);
        assert_eq!(sample.file, format!("train/{leaf}/images/{}", row[2]));
    }
    let image = source.image(0).unwrap();
    assert_eq!((image.width(), image.height()), (64, 64));
}
