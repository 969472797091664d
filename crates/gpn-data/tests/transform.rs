//! The transforms against Pillow and torchvision, pixel by pixel.

use gpn_data::transform::{EvalTransform, ImageView, Region, Resampler, Window};
use gpn_golden::{Case, npz_cases};

/// Every array `evalR` of a case: the test transform for side R of its images. Returns how many there are.
fn check_test_transform(case: &Case) -> usize {
    let images = case.array("images");
    let [_, height, width, 3] = images.shape[..] else { panic!("{}: {:?}", case.name, images.shape) };
    let pixels = images.bytes();
    let mut sides = 0;
    for (name, expected) in &case.arrays {
        let Some(side) = name.strip_prefix("eval").and_then(|side| side.parse().ok()) else { continue };
        sides += 1;
        let mut eval = EvalTransform::new(side).unwrap();
        let area = (side * side * 3) as usize;
        let mut out = vec![0u8; area];
        let sources = pixels.chunks_exact(height * width * 3);
        let expected = expected.bytes();
        assert_eq!(expected.len(), images.shape[0] * area, "{} {name}", case.name);
        for (index, (source, expected)) in sources.zip(expected.chunks_exact(area)).enumerate() {
            eval.apply(ImageView::new(width as u32, height as u32, source).unwrap(), &mut out).unwrap();
            assert_eq!(out, expected, "{} {name}, image {index}", case.name);
        }
    }
    sides
}

#[test]
fn parity_test_transform() {
    for case in npz_cases("g_transform") {
        assert!(check_test_transform(&case) > 0, "{} holds no evalR array", case.name);
    }
}

#[test]
fn parity_resize_of_a_crop() {
    let mut resampler = Resampler::new();
    for case in npz_cases("g_resize_of_a_crop") {
        let mut parts = 0;
        for (name, source) in &case.arrays {
            let Some(part) = name.strip_suffix("/source") else { continue };
            parts += 1;
            let [left, top, width, height] = case.array(&format!("{part}/region")).whole()[..] else {
                panic!("{} {part}: a region has four numbers", case.name)
            };
            let expected = case.array(&format!("{part}/resized"));
            let pixels = source.bytes();
            let [rows, columns, out_rows, out_columns] =
                [source.shape[0], source.shape[1], expected.shape[0], expected.shape[1]]
                    .map(|length| length as u32);
            let image = ImageView::new(columns, rows, &pixels).unwrap();
            let window = Window::whole(out_columns, out_rows);
            let mut out = vec![0u8; expected.values.len()];
            resampler.resize(image, Region { left, top, width, height }, window, &mut out).unwrap();
            assert_eq!(out, expected.bytes(), "{} {part}", case.name);
        }
        assert!(parts > 0, "{} holds no parts of images", case.name);
    }
}
