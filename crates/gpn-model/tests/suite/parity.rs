//! Both engines against golden vectors.

use gpn_golden::{Case, assert_close, assert_close_relative, golden_folder, npz_cases};
use gpn_model::{
    Adam, AdamConfig, BackboneConfig, BackboneKind, ClassifierHead, Conv4Config, Device, Embedder,
    EngineChoice, InputShape, MlpConfig, Mode, NamedTensor, ResNet12Config, ResNet18Config, Trainable,
    Update, Weights, save_weights,
};

/// The state of a case as a weight file.
fn weights(case: &Case) -> Weights {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state.safetensors");
    let state = case.below("state/").map(|(name, array)| NamedTensor {
        name,
        shape: &array.shape,
        values: &array.values,
    });
    save_weights(&file, state, None).unwrap();
    Weights::read(&file).unwrap()
}

/// A backbone with the weights of a case, for the samples of `samples`. `exact`: whether it rounds as PyTorch does.
fn embedder(
    config: &BackboneConfig,
    case: &Case,
    samples: &Case,
    choice: EngineChoice,
    exact: bool,
) -> Embedder {
    let shape = &samples.array("x").shape;
    let input = match shape[..] {
        [_, _, height, width] => InputShape::Image { height, width },
        [_, len] => InputShape::Embedding { len },
        _ => panic!("{}: x is no batch of samples: {shape:?}", samples.name),
    };
    let mut embedder = Embedder::with_engine(config, input, &Device::cpu(), 1, choice).unwrap();
    embedder.set_exact_batch(if exact { shape[0] } else { 0 });
    weights(case).load(&mut embedder).unwrap();
    embedder
}

/// Whether to round as PyTorch does: always where values may be near a kink.
fn roundings(case: &Case) -> &'static [bool] {
    if case.is_far_from_kinks() { &[true, false] } else { &[true] }
}

/// Embeddings, gradients of sum(out^2) / 1000 and buffers in both modes.
fn check_backbone(config: &BackboneConfig, case: &Case, choice: EngineChoice) {
    for &exact in roundings(case) {
        for (mode, tag) in [(Mode::Train, "train"), (Mode::Eval, "eval")] {
            let how = format!("{choice:?}, exact {exact}");
            let what = |part: &str| format!("{} {tag}/{part} ({how})", case.name);
            let mut embedder = embedder(config, case, case, choice, exact);
            let samples = case.values("x");
            let expected = case.values(&format!("{tag}/out"));
            if mode == Mode::Eval {
                assert_close(&what("embed"), &embedder.embed(samples).unwrap(), expected, 1e-4);
            }
            let embeddings = embedder.forward(samples, mode).unwrap();
            assert_close(&what("out"), &embeddings, expected, 1e-4);
            let grad: Vec<f32> = embeddings.iter().map(|value| 2.0 * value / 1000.0).collect();
            embedder.backward(&grad).unwrap();
            assert!(embedder.gradients().count() > 0, "{}", what("no gradients"));
            for gradient in embedder.gradients() {
                case.assert_gradient(&how, &format!("{tag}/grad/{}", gradient.name), gradient.values, 1e-3);
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

fn is_classifier(case: &Case) -> bool {
    case.name.ends_with("_classifier")
}

fn resnet08(choice: EngineChoice) {
    for case in npz_cases("d_resnet08_").iter().filter(|case| !is_classifier(case)) {
        check_backbone(&BackboneKind::ResNet08.config(), case, choice);
    }
}

fn resnet20(choice: EngineChoice) {
    for case in npz_cases("d_resnet20_") {
        check_backbone(&BackboneKind::ResNet20.config(), &case, choice);
    }
}

fn conv4(choice: EngineChoice) {
    for case in npz_cases("d_conv4_") {
        let width = case.array("state/block_1.conv.weight").shape[0];
        check_backbone(&BackboneConfig::Conv4(Conv4Config { width }), &case, choice);
    }
}

/// Channels of the four stages of a case.
fn channels(case: &Case) -> [usize; 4] {
    [1, 2, 3, 4].map(|stage| case.array(&format!("state/layer{stage}.0.conv1.weight")).shape[0])
}

fn resnet12(choice: EngineChoice) {
    for case in npz_cases("d_resnet12_") {
        let config = ResNet12Config { channels: channels(&case) };
        check_backbone(&BackboneConfig::ResNet12(config), &case, choice);
    }
}

fn resnet18(choice: EngineChoice) {
    for case in npz_cases("d_resnet18_") {
        let config = ResNet18Config { channels: channels(&case) };
        check_backbone(&BackboneConfig::ResNet18(config), &case, choice);
    }
}

fn mlp(choice: EngineChoice) {
    for case in npz_cases("d_mlp_") {
        let layers = case.below("state/").filter(|(name, _)| name.ends_with("bias"));
        let layers = layers.map(|(_, bias)| bias.values.len()).collect();
        check_backbone(&BackboneConfig::Mlp(MlpConfig { layers }), &case, choice);
    }
}

fn classifier(choice: EngineChoice) {
    let mut compared = 0;
    for case in npz_cases("d_resnet08_").iter().filter(|case| is_classifier(case)) {
        let images = Case::read(&case.path.with_file_name(case.name.replace("_classifier", ".npz")));
        for &exact in roundings(&images) {
            let how = format!("{choice:?}, exact {exact}");
            let what = |part: &str| format!("{} {part} ({how})", case.name);
            let config = BackboneKind::ResNet08.config();
            let mut embedder = embedder(&config, case, &images, choice, exact);
            let classes = case.values("fc_bias").len();
            let len = embedder.embedding_len();
            let mut head = ClassifierHead::with_engine(len, classes, &Device::cpu(), 1, choice).unwrap();
            weights(case).load_head(&mut head).unwrap();

            let embeddings = embedder.forward_train(images.values("x")).unwrap();
            let labels: Vec<usize> =
                case.array("labels").whole().iter().map(|&label| label as usize).collect();
            let pass = head.forward_backward(&embeddings, &labels).unwrap();
            embedder.backward(&pass.grad_embeddings).unwrap();

            assert_close(&what("logits"), &pass.logits, case.values("logits"), 1e-4);
            assert_close(&what("loss"), &[pass.loss], case.values("loss"), 1e-4);
            for gradient in embedder.gradients().chain(head.gradients()) {
                case.assert_gradient(&how, &format!("grad/{}", gradient.name), gradient.values, 1e-3);
            }
            compared += 1;
        }
    }
    assert!(compared > 0, "no classifier case");
}

#[cfg(feature = "burn")]
mod burn {
    use gpn_model::EngineChoice::Burn;

    #[test]
    fn resnet08_parity_burn() {
        super::resnet08(Burn);
    }

    #[test]
    fn resnet20_parity_burn() {
        super::resnet20(Burn);
    }

    #[test]
    fn conv4_parity_burn() {
        super::conv4(Burn);
    }

    #[test]
    fn resnet12_parity_burn() {
        super::resnet12(Burn);
    }

    #[test]
    fn resnet18_parity_burn() {
        super::resnet18(Burn);
    }

    #[test]
    fn mlp_parity_burn() {
        super::mlp(Burn);
    }

    #[test]
    fn classifier_parity_burn() {
        super::classifier(Burn);
    }
}

#[test]
fn resnet08_parity_kernels() {
    resnet08(EngineChoice::Kernels);
}

#[test]
fn resnet20_parity_kernels() {
    resnet20(EngineChoice::Kernels);
}

#[test]
fn conv4_parity_kernels() {
    conv4(EngineChoice::Kernels);
}

#[test]
fn resnet12_parity_kernels() {
    resnet12(EngineChoice::Kernels);
}

#[test]
fn resnet18_parity_kernels() {
    resnet18(EngineChoice::Kernels);
}

#[test]
fn mlp_parity_kernels() {
    mlp(EngineChoice::Kernels);
}

#[test]
fn classifier_parity_kernels() {
    classifier(EngineChoice::Kernels);
}

#[test]
fn adam_parity() {
    for case in npz_cases("f_adam") {
        let mut adam = Adam::new(AdamConfig { weight_decay: 1e-5, ..AdamConfig::default() });
        let mut parameter = case.values("p0").to_vec();
        let steps = case.below("grad").count();
        assert!(steps > 0, "{}: no gradients", case.name);
        for step in 0..steps {
            let gradient = &mut case.values(&format!("grad{step}")).to_vec();
            let shape = [parameter.len()];
            let update = Update { name: "p", shape: &shape, parameter: &mut parameter, gradient };
            adam.step(&mut [update], 1e-3, step as u64).unwrap();
            let expected = case.values(&format!("p{}", step + 1));
            assert_close(&format!("{} step {step}", case.name), &parameter, expected, 1e-6);
        }
    }
}

/// A ResNet-08 at 32x32 and its classifier take what a file holds, and another backbone says what does not fit.
fn check_loading(weights: &Weights, prefix: &str) {
    let input = InputShape::Image { height: 32, width: 32 };
    let mut embedder = Embedder::new(&BackboneKind::ResNet08.config(), input, &Device::cpu(), 1).unwrap();
    weights.load(&mut embedder).unwrap();
    let given = |name: &str| {
        weights.iter().find(|tensor| tensor.name == format!("{prefix}{name}")).expect(name).values.to_vec()
    };
    for tensor in embedder.parameters().iter().chain(embedder.buffers().iter()) {
        assert_eq!(tensor.values, given(tensor.name), "{}", tensor.name);
    }
    let bias = given("fc_classifier.bias");
    let mut head = ClassifierHead::new(embedder.embedding_len(), bias.len(), &Device::cpu(), 1).unwrap();
    weights.load_head(&mut head).unwrap();
    assert_eq!(head.parameters().get("fc_classifier.bias").unwrap().values, bias);
    let mut other = Embedder::new(&BackboneKind::Conv4.config(), input, &Device::cpu(), 1).unwrap();
    let message = weights.load(&mut other).unwrap_err().to_string();
    assert!(message.contains("missing: ") && message.contains("extra: "), "{message}");
}

#[test]
fn trained_network_parity_loads() {
    let cases = npz_cases("d_resnet08_32_classifier");
    check_loading(&weights(&cases[0]), "");
    let file = golden_folder().map(|folder| folder.join("h_trained/network.safetensors"));
    if let Some(file) = file.filter(|file| file.is_file()) {
        check_loading(&Weights::read(&file).unwrap(), "emb.");
    }
}
