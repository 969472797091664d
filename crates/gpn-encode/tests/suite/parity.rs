//! Embeddings against those of ONNX Runtime on Pillow's pixels.

use gpn_data::RgbImage;
use gpn_data::transform::{Filter, ImageView, Region, Resampler, Window};
use gpn_encode::{EncoderConfig, ImageEncoder, Layout, Resize};
use serde_json::Value;

use crate::made::{PHOTOS, conv, fixture, photos, tokens};

fn golden() -> Value {
    serde_json::from_slice(&std::fs::read(fixture("golden.json")).unwrap()).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

/// Asserts equality to 1e-5 of the largest value.
fn assert_close(found: &[f32], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let largest = expected.iter().fold(0.0f64, |largest, value| largest.max(value.abs()));
    assert!(largest > 0.0, "{what}");
    for (found, expected) in found.iter().zip(expected) {
        assert!((f64::from(*found) - expected).abs() <= 1e-5 * largest, "{what}: {found} is not {expected}");
    }
}

fn decoded(name: &str) -> RgbImage {
    gpn_data::decode(&std::fs::read(fixture(name)).unwrap(), name).unwrap()
}

#[test]
fn parity_bicubic_pixels() {
    for name in PHOTOS {
        let image = decoded(name);
        let view = ImageView::new(image.width(), image.height(), image.pixels()).unwrap();
        let mut out = vec![0; 16 * 16 * 3];
        let whole = Region::whole(image.width(), image.height());
        Resampler::with_filter(Filter::Bicubic).resize(view, whole, Window::whole(16, 16), &mut out).unwrap();
        let expected: Vec<u8> =
            numbers(&golden()["bicubic"][name]).into_iter().map(|value| value as u8).collect();
        assert_eq!(out, expected, "{name}");
    }
}

#[test]
fn parity_pooled_embeddings() {
    let encoder = conv();
    assert_eq!((encoder.dim(), encoder.preprocessing().resize), (12, Resize::Squash));
    let found = encoder.encode(photos().as_slice(), None, &()).unwrap().all().unwrap();
    for (name, found) in PHOTOS.iter().zip(&found) {
        assert_close(found, &numbers(&golden()["conv"][*name]), name);
    }
}

#[test]
fn parity_feature_map_with_channels_last() {
    let encoder = ImageEncoder::open(&fixture("map.onnx"), &EncoderConfig::default()).unwrap();
    let preprocessing = encoder.preprocessing();
    assert_eq!(
        (preprocessing.layout, preprocessing.size, preprocessing.shorter_side),
        (Layout::Nhwc, 20, 23)
    );
    let found = encoder.encode(photos().as_slice(), None, &()).unwrap().all().unwrap();
    for (name, found) in PHOTOS.iter().zip(&found) {
        assert_close(found, &numbers(&golden()["map"][*name]), name);
    }
    let largest = EncoderConfig { output: Some("largest".into()), ..EncoderConfig::default() };
    let encoder = ImageEncoder::open(&fixture("map.onnx"), &largest).unwrap();
    let found = encoder.encode(photos().as_slice(), None, &()).unwrap().all().unwrap();
    for (name, found) in PHOTOS.iter().zip(&found) {
        assert_close(found, &numbers(&golden()["largest"][*name]), name);
    }
}

#[test]
fn parity_texts() {
    let encoder = tokens();
    let golden = golden();
    let texts: Vec<&String> = golden["tokens"].as_object().unwrap().keys().collect();
    assert!(texts.len() >= 6);
    let found = encoder.encode(&texts, None, &()).unwrap().all().unwrap();
    for (text, found) in texts.iter().zip(&found) {
        assert_close(found, &numbers(&golden["tokens"][text.as_str()]), text);
    }
}

#[test]
fn an_embedding_depends_on_its_own_sample_alone() {
    let encoder = tokens();
    let texts: Vec<String> =
        (0..40).map(|number| format!("a {} apple", ["red", "green", "kiwi"][number % 3])).collect();
    let together = encoder.encode(&texts, None, &()).unwrap().all().unwrap();
    for (text, together) in texts.iter().zip(&together) {
        assert_eq!(&encoder.encode(&[text], None, &()).unwrap().all().unwrap()[0], together);
    }
    let one_thread = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let alone = one_thread.install(|| encoder.encode(&texts, None, &()).unwrap().all().unwrap());
    assert_eq!(alone, together);
}

#[test]
fn settings_given_by_the_caller_come_first() {
    let other =
        EncoderConfig { resize: Some(Resize::Crop), normalise: Some(true), ..EncoderConfig::default() };
    let encoder = ImageEncoder::open(&fixture("conv.onnx"), &other).unwrap();
    assert_eq!((encoder.preprocessing().resize, encoder.preprocessing().shorter_side), (Resize::Crop, 18));
    let embedding = encoder.encode_one(&decoded("photo_0.png")).unwrap();
    let length: f32 = embedding.iter().map(|value| value * value).sum();
    assert!((length - 1.0).abs() < 1e-5);
    let difference = conv().id().check(encoder.id()).unwrap_err().to_string();
    assert!(difference.contains("the setting `normalise` is true, not false"), "{difference}");
}
