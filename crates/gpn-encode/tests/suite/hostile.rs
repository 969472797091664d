//! Wrong encoders and wrong samples: one clear error each.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use gpn_data::ErrorKind;
use gpn_encode::{EncodeError, EncoderConfig, ImageEncoder, Runtime, TextEncoder};

use crate::made::{conv, copy, fixture, photos, tokens};

fn image_error(path: &Path, config: &EncoderConfig) -> EncodeError {
    ImageEncoder::open(path, config).err().unwrap()
}

fn text_error(path: &Path, config: &EncoderConfig) -> EncodeError {
    TextEncoder::open(path, config).err().unwrap()
}

#[test]
fn wrong_image_encoders() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let sound = fs::read(fixture("conv.onnx")).unwrap();
    let none = EncoderConfig::default();
    let named = |output: &str| EncoderConfig { output: Some(output.into()), ..EncoderConfig::default() };
    for (path, config, expected, kind) in [
        (folder.path().join("none.onnx"), none.clone(), "none.onnx: cannot open", ErrorKind::NotFound),
        (
            folder.path().to_owned(),
            none.clone(),
            "it is a directory; name an .onnx file",
            ErrorKind::BadInput,
        ),
        (at("empty.onnx", b""), none.clone(), "it is no ONNX model", ErrorKind::Damaged),
        (at("text.onnx", b"not a model at all"), none.clone(), "it is no ONNX model", ErrorKind::Damaged),
        (at("cut.onnx", &sound[..sound.len() / 2]), none.clone(), "it is no ONNX model", ErrorKind::Damaged),
        (
            fixture("tokens/model.onnx"),
            none.clone(),
            "a text encoder is opened by its folder",
            ErrorKind::BadInput,
        ),
        (fixture("conv.onnx"), named("logits"), "no output `logits`; it has embedding", ErrorKind::BadInput),
        (
            fixture("conv.onnx"),
            EncoderConfig { size: Some(32), ..none.clone() },
            "`size` is 32, but the model takes 16x16",
            ErrorKind::BadInput,
        ),
        (
            fixture("conv.onnx"),
            EncoderConfig { max_tokens: Some(32), ..none.clone() },
            "`max_tokens` is a setting of text encoders",
            ErrorKind::BadInput,
        ),
    ] {
        let error = image_error(&path, &config);
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(error.kind(), kind, "{error}");
    }
}

#[test]
fn an_onnx_runtime_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let config = EncoderConfig {
        runtime: Some(Runtime::OnnxRuntime),
        onnxruntime_library: Some(folder.path().join("libonnxruntime.so")),
        ..EncoderConfig::default()
    };
    let message = image_error(&fixture("conv.onnx"), &config).to_string();
    assert!(message.contains("cannot be run by ONNX Runtime"), "{message}");
}

#[test]
fn damaged_models_are_errors_and_never_panics() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.onnx");
    let sound = fs::read(fixture("conv.onnx")).unwrap();
    let photo = gpn_data::decode(&fs::read(fixture("photo_0.png")).unwrap(), "photo").unwrap();
    let mut refused = 0;
    // Every byte of the graph's description, and some of the weights.
    for place in
        (0..sound.len()).filter(|place| *place < 400 || *place + 600 > sound.len() || place % 97 == 0)
    {
        let mut bytes = sound.clone();
        bytes[place] ^= 0x55;
        fs::write(&path, &bytes).unwrap();
        match ImageEncoder::open(&path, &EncoderConfig::default()) {
            Ok(encoder) => drop(encoder.encode_one(&photo)),
            Err(error) => {
                refused += 1;
                assert!(error.to_string().contains("damaged.onnx"), "{error}");
            }
        }
    }
    assert!(refused > 100, "{refused}");
}

#[test]
fn wrong_text_encoders() {
    let folder = tempfile::tempdir().unwrap();
    let spoilt = |name: &str, spoil: &dyn Fn(&Path)| {
        let path = folder.path().join(name);
        copy(&fixture("tokens"), &path);
        spoil(&path);
        path
    };
    let none = EncoderConfig::default();
    let remove = |name: &'static str| move |path: &Path| fs::remove_file(path.join(name)).unwrap();
    let write =
        |name: &'static str, text: &'static str| move |path: &Path| fs::write(path.join(name), text).unwrap();
    for (path, config, expected) in [
        (folder.path().join("none"), none.clone(), "there is no such folder"),
        (fixture("conv.onnx"), none.clone(), "it is a file; a text encoder is a folder"),
        (spoilt("a", &remove("tokenizer.json")), none.clone(), "it has no tokenizer.json"),
        (spoilt("b", &remove("model.onnx")), none.clone(), "it has neither model.onnx nor onnx/model.onnx"),
        (spoilt("c", &write("tokenizer.json", "{}")), none.clone(), "tokenizer.json: it is no tokenizer"),
        (spoilt("d", &write("model.onnx", "x")), none.clone(), "model.onnx: it is no ONNX model"),
        (spoilt("e", &write("modules.json", "[")), none.clone(), "modules.json: line 1: it is no JSON"),
        (
            spoilt("f", &write("modules.json", r#"[{"type": "sentence_transformers.models.Dense"}]"#)),
            none.clone(),
            "its module Dense comes after the model",
        ),
        (
            spoilt("g", &write("1_Pooling/config.json", r#"{"pooling_mode_max_tokens": true}"#)),
            none.clone(),
            "`pooling` is pooling_mode_max_tokens, which is not supported",
        ),
        (
            spoilt("h", &|path: &Path| {
                assert!(fs::copy(fixture("conv.onnx"), path.join("model.onnx")).is_ok());
            }),
            none.clone(),
            "a text encoder has the input input_ids",
        ),
        (
            fixture("tokens"),
            EncoderConfig { max_tokens: Some(2), ..none.clone() },
            "`max_tokens` is 2; it must be between 3 and",
        ),
        (
            fixture("tokens"),
            EncoderConfig { size: Some(2), ..none.clone() },
            "`size` is a setting of image encoders",
        ),
    ] {
        let error = text_error(&path, &config).to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_broken_photo_is_an_error_in_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken.png");
    fs::write(&broken, "no photo").unwrap();
    let copy = folder.path().join("copy.png");
    fs::copy(&broken, &copy).unwrap();
    let mut files = photos();
    files.insert(1, broken);
    files.insert(2, folder.path().join("absent.jpg"));
    files.push(copy);
    let encoded = conv().encode(files.as_slice(), None, &()).unwrap();
    assert_eq!(encoded.computed, 4);
    let failed: Vec<usize> = (0..files.len()).filter(|&place| encoded.embeddings[place].is_err()).collect();
    assert_eq!(failed, [1, 2, 6]);
    for (place, expected) in
        [(1, "broken.png: broken image: "), (2, "absent.jpg: cannot open"), (6, "copy.png: ")]
    {
        let message = encoded.embeddings[place].as_ref().unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn work_stops_when_it_is_told_to() {
    let stop = |_: usize, _: usize| ControlFlow::Break(());
    let error = conv().encode(photos().as_slice(), None, &stop).unwrap_err();
    assert!(matches!(error, EncodeError::Interrupted) && error.kind() == ErrorKind::Interrupted);
    assert!(matches!(tokens().encode(&["a", "b"], None, &stop), Err(EncodeError::Interrupted)));
}

#[test]
fn progress_ends_with_all() {
    let last = std::sync::Mutex::new((0, 0));
    let progress = |done: usize, total: usize| {
        *last.lock().unwrap() = (done, total);
        ControlFlow::Continue(())
    };
    conv().encode(photos().as_slice(), None, &progress).unwrap();
    assert_eq!(*last.lock().unwrap(), (4, 4));
}
