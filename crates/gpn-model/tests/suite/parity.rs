//! Both engines against the golden vectors of the PyTorch implementation.

use std::path::Path;

use gpn_model::{
    Adam, AdamConfig, BackboneKind, ClassifierHead, Device, Embedder, EngineChoice, InputShape, Mode,
    NamedTensor, Update, Weights, save_weights,
};

use crate::golden::{self, Case, assert_close, assert_close_relative};

/// A ResNet-08 with the weights of a case, for the images of `images`.
fn embedder(case: &Case, images: &Case, choice: EngineChoice) -> (Embedder, Weights) {
    let &[_, _, height, width] = &images.arrays["x"].shape[..] else { panic!("x is not a batch of images") };
    let input = InputShape::Image { height, width };
    let config = BackboneKind::ResNet08.config();
    let mut embedder = Embedder::with_engine(&config, input, &Device::cpu(), 1, choice).unwrap();
    embedder.set_exact_batch(images.arrays["x"].shape[0]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state.safetensors");
    let state = case.below("state/").map(|(name, array)| NamedTensor {
        name,
        shape: &array.shape,
        values: &array.values,
    });
    save_weights(&file, state, None).unwrap();
    let weights = Weights::read(&file).unwrap();
    weights.load(&mut embedder).unwrap();
    (embedder, weights)
}

fn resnet08(choice: EngineChoice) {
    for path in golden::paths("d_resnet08_", false) {
        let case = Case::read(&path);
        for (mode, tag) in [(Mode::Train, "train"), (Mode::Eval, "eval")] {
            let what = |part: &str| format!("{} {tag}/{part} ({choice:?})", case.name);
            let (mut embedder, _) = embedder(&case, &case, choice);
            let images = case.values("x");
            let expected = case.values(&format!("{tag}/out"));
            if mode == Mode::Eval {
                assert_close(&what("embed"), &embedder.embed(images).unwrap(), expected, 1e-4);
            }
            let embeddings = embedder.forward(images, mode).unwrap();
            assert_close(&what("out"), &embeddings, expected, 1e-4);
            let grad: Vec<f32> = embeddings.iter().map(|value| 2.0 * value / 1000.0).collect();
            embedder.backward(&grad).unwrap();
            for gradient in embedder.gradients() {
                let expected = case.values(&format!("{tag}/grad/{}", gradient.name));
                assert_close_relative(&what(gradient.name), gradient.values, expected, 1e-3);
            }
            for buffer in embedder.buffers().iter() {
                let after = format!("{tag}/buffers_after/{}", buffer.name);
                let before = format!("state/{}", buffer.name);
                let expected = case.values(if mode == Mode::Train { &after } else { &before });
                assert_close_relative(&what(buffer.name), buffer.values, expected, 1e-4);
            }
        }
    }
}

#[cfg(feature = "burn")]
#[test]
fn resnet08_parity_burn() {
    resnet08(EngineChoice::Burn);
}

#[test]
fn resnet08_parity_kernels() {
    resnet08(EngineChoice::Kernels);
}

fn classifier(choice: EngineChoice) {
    for path in golden::paths("d_resnet08_", true) {
        let case = Case::read(&path);
        let images = path.to_str().unwrap().replace("_classifier.npz", ".npz");
        let images = Case::read(Path::new(&images));
        let what = |part: &str| format!("{} {part} ({choice:?})", case.name);
        let (mut embedder, weights) = embedder(&case, &images, choice);
        let classes = case.values("fc_bias").len();
        let len = embedder.embedding_len();
        let mut head = ClassifierHead::with_engine(len, classes, &Device::cpu(), 1, choice).unwrap();
        weights.load_head(&mut head).unwrap();

        let embeddings = embedder.forward_train(images.values("x")).unwrap();
        let labels: Vec<usize> = case.values("labels").iter().map(|&label| label as usize).collect();
        let pass = head.forward_backward(&embeddings, &labels).unwrap();
        embedder.backward(&pass.grad_embeddings).unwrap();

        assert_close(&what("logits"), &pass.logits, case.values("logits"), 1e-4);
        assert_close(&what("loss"), &[pass.loss], case.values("loss"), 1e-4);
        for gradient in embedder.gradients().chain(head.gradients()) {
            let expected = case.values(&format!("grad/{}", gradient.name));
            assert_close_relative(&what(gradient.name), gradient.values, expected, 1e-3);
        }
    }
}

#[cfg(feature = "burn")]
#[test]
fn classifier_parity_burn() {
    classifier(EngineChoice::Burn);
}

#[test]
fn classifier_parity_kernels() {
    classifier(EngineChoice::Kernels);
}

#[test]
fn adam_parity() {
    for path in golden::paths("f_adam", false) {
        let case = Case::read(&path);
        let mut adam = Adam::new(AdamConfig { weight_decay: 1e-5, ..AdamConfig::default() });
        let mut parameter = case.values("p0").to_vec();
        let steps = case.below("grad").count();
        assert!(steps > 0, "{}: no gradients", case.name);
        for step in 0..steps {
            let gradient = case.values(&format!("grad{step}"));
            let shape = [parameter.len()];
            let update = Update { name: "p", shape: &shape, parameter: &mut parameter, gradient };
            adam.step(&mut [update], 1e-3, step as u64).unwrap();
            let expected = case.values(&format!("p{}", step + 1));
            assert_close(&format!("{} step {step}", case.name), &parameter, expected, 1e-6);
        }
    }
}

#[test]
fn trained_network_parity_loads() {
    let Some(folder) = golden::folder() else { return };
    let file = folder.join("h_trained/network.safetensors");
    if !file.is_file() {
        eprintln!("skipped: no {}", file.display());
        return;
    }
    let weights = Weights::read(&file).unwrap();
    let input = InputShape::Image { height: 32, width: 32 };
    let mut embedder = Embedder::new(&BackboneKind::ResNet08.config(), input, &Device::cpu(), 1).unwrap();
    weights.load(&mut embedder).unwrap();
    let bias = weights.iter().find(|tensor| tensor.name == "emb.fc_classifier.bias").unwrap();
    let mut head = ClassifierHead::new(embedder.embedding_len(), bias.shape[0], &Device::cpu(), 1).unwrap();
    weights.load_head(&mut head).unwrap();
    assert_eq!(head.parameters().get("fc_classifier.bias").unwrap().values, bias.values);
    let other = BackboneKind::Conv4.config();
    let mut other = Embedder::new(&other, input, &Device::cpu(), 1).unwrap();
    let message = weights.load(&mut other).unwrap_err().to_string();
    assert!(message.contains("missing: emb.") && message.contains("extra: emb."), "{message}");
}
