//! The transforms against Pillow and torchvision: golden vectors where they are present, a small fixture always.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gpn_data::transform::{EvalTransform, ImageView, Region, Resampler, Window};
use npyz::npz::NpzArchive;

struct Array {
    shape: Vec<u32>,
    values: Vec<u32>,
}

impl Array {
    fn bytes(&self) -> Vec<u8> {
        self.values.iter().map(|&v| u8::try_from(v).unwrap()).collect()
    }
}

/// All integer arrays of an archive, by name.
fn read(path: &Path) -> BTreeMap<String, Array> {
    let mut archive = NpzArchive::open(path).unwrap();
    let names: Vec<String> = archive.array_names().map(str::to_owned).collect();
    let mut arrays = BTreeMap::new();
    for name in names {
        let file = archive.by_name(&name).unwrap().unwrap();
        let shape = file.shape().iter().map(|&n| n as u32).collect();
        let values = if file.dtype().descr().contains("u1") {
            file.into_vec::<u8>().unwrap().into_iter().map(u32::from).collect()
        } else {
            file.into_vec::<u32>().unwrap()
        };
        arrays.insert(name, Array { shape, values });
    }
    arrays
}

fn fixture() -> BTreeMap<String, Array> {
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/resample.npz"))
}

#[test]
fn parity_golden_test_transform() {
    let folder = std::env::var_os("GPN_GOLDEN_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/golden"), PathBuf::from);
    let path = folder.join("g_transform.npz");
    if !path.exists() {
        eprintln!("skipped: {} is absent; set GPN_GOLDEN_DIR to the golden vectors", path.display());
        return;
    }
    let arrays = read(&path);
    let images = &arrays["images"];
    let (height, width) = (images.shape[1], images.shape[2]);
    let pixels = images.bytes();
    let mut cases = 0;
    for (name, expected) in &arrays {
        let Some(side) = name.strip_prefix("eval").and_then(|side| side.parse().ok()) else { continue };
        cases += 1;
        let mut eval = EvalTransform::new(side).unwrap();
        let area = (side * side * 3) as usize;
        let mut out = vec![0u8; area];
        let sources = pixels.chunks_exact((height * width * 3) as usize);
        for (index, (source, expected)) in sources.zip(expected.bytes().chunks_exact(area)).enumerate() {
            eval.apply(ImageView::new(width, height, source).unwrap(), &mut out).unwrap();
            assert_eq!(out, expected, "{name}, image {index}");
        }
    }
    assert!(cases > 0, "{} holds no evalR array", path.display());
    eprintln!("{cases} sides, {} images each, all equal", images.shape[0]);
}

#[test]
fn parity_fixture_resize_of_a_crop() {
    let arrays = fixture();
    let mut resampler = Resampler::new();
    let mut cases = 0;
    for (name, source) in &arrays {
        let Some(case) = name.strip_suffix("/source") else { continue };
        cases += 1;
        let [left, top, width, height] = arrays[&format!("{case}/region")].values[..] else {
            panic!("{case}")
        };
        let expected = &arrays[&format!("{case}/resized")];
        let pixels = source.bytes();
        let image = ImageView::new(source.shape[1], source.shape[0], &pixels).unwrap();
        let window = Window::whole(expected.shape[1], expected.shape[0]);
        let mut out = vec![0u8; expected.values.len()];
        resampler.resize(image, Region { left, top, width, height }, window, &mut out).unwrap();
        assert_eq!(out, expected.bytes(), "case {case}");
    }
    assert_eq!(cases, 12);
}

#[test]
fn parity_fixture_test_transform() {
    let arrays = fixture();
    let mut cases = 0;
    for (name, expected) in &arrays {
        let Some((case, side)) = name.split_once("/eval_") else { continue };
        let Ok(side) = side.parse() else { continue };
        cases += 1;
        let source = &arrays[&format!("{case}/eval_source")];
        let pixels = source.bytes();
        let image = ImageView::new(source.shape[1], source.shape[0], &pixels).unwrap();
        let mut out = vec![0u8; expected.values.len()];
        EvalTransform::new(side).unwrap().apply(image, &mut out).unwrap();
        assert_eq!(out, expected.bytes(), "{name}");
    }
    assert_eq!(cases, 5);
}
