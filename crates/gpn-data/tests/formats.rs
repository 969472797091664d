//! Every kind of PNG, GIF, BMP and WebP gives the pixels it holds (fixtures/make_formats.py).

use std::path::Path;

use gpn_data::decode;
use gpn_golden::Case;

/// The fixture, and the names of its files.
fn fixture() -> (Case, Vec<String>) {
    let case = Case::read(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/formats.npz")));
    let names: Vec<String> =
        case.arrays.keys().filter_map(|name| name.strip_suffix("/file")).map(str::to_owned).collect();
    assert_eq!(names.len(), 62);
    (case, names)
}

#[test]
fn pixels_are_those_of_the_file() {
    let (case, names) = fixture();
    for name in names {
        let file = case.array(&format!("{name}/file")).bytes();
        let expected = case.array(&format!("{name}/pixels"));
        let pixels = expected.bytes();
        let image = decode(&file, &name).unwrap();
        assert_eq!([image.height() as usize, image.width() as usize, 3], expected.shape[..], "{name}");
        assert!(image.pixels() == pixels, "{name}: {:?} for {pixels:?}", image.pixels());
    }
}

#[test]
fn cut_files_are_refused() {
    let (case, names) = fixture();
    for name in names {
        let file = case.array(&format!("{name}/file")).bytes();
        // What is missing is the data, not the empty end.
        for kept in 0..file.len().min(60) {
            assert!(decode(&file[..kept], &name).is_err(), "{name} cut to {kept} bytes");
        }
    }
}
