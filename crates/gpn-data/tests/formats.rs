//! Every kind of PNG, GIF, BMP and WebP gives the pixels it holds (fixtures/make_formats.py).

use gpn_data::decode;
use npyz::npz::NpzArchive;

#[test]
fn pixels_are_those_of_the_file() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/formats.npz");
    let mut archive = NpzArchive::open(path).unwrap();
    let mut names: Vec<String> =
        archive.array_names().filter_map(|name| name.strip_suffix("/file")).map(str::to_owned).collect();
    names.sort();
    assert_eq!(names.len(), 62);
    let mut array = |name: String| {
        let array = archive.by_name(&name).unwrap().unwrap();
        let shape: Vec<u32> = array.shape().iter().map(|&length| length as u32).collect();
        (shape, array.into_vec::<u8>().unwrap())
    };
    for name in names {
        let (_, file) = array(format!("{name}/file"));
        let (shape, pixels) = array(format!("{name}/pixels"));
        let image = decode(&file, &name).unwrap();
        assert_eq!([image.height(), image.width(), 3], shape[..], "{name}");
        assert!(image.pixels() == pixels, "{name}: {:?} for {pixels:?}", image.pixels());
    }
}

#[test]
fn cut_files_are_refused() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/formats.npz");
    let mut archive = NpzArchive::open(path).unwrap();
    let names: Vec<String> =
        archive.array_names().filter(|name| name.ends_with("/file")).map(str::to_owned).collect();
    assert_eq!(names.len(), 62);
    for name in names {
        let file = archive.by_name(&name).unwrap().unwrap().into_vec::<u8>().unwrap();
        // What is missing is the data, not the empty end.
        for kept in 0..file.len().min(60) {
            assert!(decode(&file[..kept], &name).is_err(), "{name} cut to {kept} bytes");
        }
    }
}
