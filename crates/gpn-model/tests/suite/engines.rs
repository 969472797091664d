//! The two engines agree, on sizes and batches that golden vectors do not have.
//!
//! A value within rounding of a kink (zero before a ReLU, a tie before a maximum) falls on either side of it, as the
//! processor rounds, and then gradients differ visibly. So each batch is chosen by the network's definition in double
//! precision, which is the same everywhere: no value of it lies near a kink.

#[path = "../../../gpn-kernels/tests/reference/mod.rs"]
mod reference;

use gpn_kernels::Architecture;
use gpn_model::{
    BackboneConfig, BackboneKind, Conv4Config, Device, Embedder, EngineChoice, InputShape, Mode,
    ResNet12Config, ResNet18Config, Trainable,
};

use crate::golden::assert_close_relative;

/// Distance from a kink that rounding does not cross: values are about 1, and both engines round them to some 1e-6.
const MARGIN: f64 = 2e-5;
/// Batches that each comparison finds, and most that it looks at.
const BATCHES: usize = 3;
const LOOK_AT: u32 = 200;

/// Values that look like noise, between -1 and 1.
fn noise(len: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1u32 << 23) as f32 - 1.0
    };
    (0..len).map(|_| next()).collect()
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| f64::from(value)).collect()
}

/// The definition's distance from a kink in a step of `embedder`.
fn margin(embedder: &Embedder, mode: Mode, images: &[f32]) -> f64 {
    let architecture = match embedder.config() {
        BackboneConfig::ResNet(config) => Architecture::ResNet { blocks_per_stage: config.blocks_per_stage },
        BackboneConfig::Conv4(config) => Architecture::Conv4 { width: config.width },
        BackboneConfig::ResNet12(config) => Architecture::ResNet12 { channels: config.channels },
        BackboneConfig::ResNet18(config) => Architecture::ResNet18 { channels: config.channels },
        other => panic!("{} has no reference", other.name()),
    };
    let InputShape::Image { height, width } = embedder.input() else { panic!("images are compared") };
    let n = images.len() / embedder.input().len();
    let parameters: Vec<Vec<f64>> = embedder.parameters().iter().map(|tensor| wide(tensor.values)).collect();
    let buffers: Vec<Vec<f64>> = embedder.buffers().iter().map(|tensor| wide(tensor.values)).collect();
    reference::embed(architecture, mode, &parameters, &buffers, &wide(images), (n, height, width)).1
}

/// A step in either mode on each engine, the second with statistics moved by the first, and embeddings.
fn agree(config: &BackboneConfig, [height, width]: [usize; 2], n: usize) {
    let input = InputShape::Image { height, width };
    let build = |choice| Embedder::with_engine(config, input, &Device::cpu(), 3, choice).unwrap();
    let mut compared = 0;
    for seed in 0..LOOK_AT {
        let images = noise(n * input.len(), seed);
        let (mut burn, mut kernels) = (build(EngineChoice::Burn), build(EngineChoice::Kernels));
        let what = |part: &str| format!("{} {height}x{width} batch {n} seed {seed}: {part}", config.name());
        assert_eq!(burn.parameters(), kernels.parameters(), "{}", what("parameters"));
        assert_eq!(burn.buffers(), kernels.buffers(), "{}", what("buffers"));
        for mode in [Mode::Train, Mode::Eval] {
            if margin(&kernels, mode, &images) < MARGIN {
                break;
            }
            let expected = burn.forward(&images, mode).unwrap();
            let got = kernels.forward(&images, mode).unwrap();
            assert_close_relative(&what("forward"), &got, &expected, 1e-4);
            let grad = noise(expected.len(), 7);
            burn.backward(&grad).unwrap();
            kernels.backward(&grad).unwrap();
            for (expected, got) in burn.gradients().zip(kernels.gradients()) {
                assert_close_relative(&what(expected.name), got.values, expected.values, 1e-4);
            }
            for (expected, got) in burn.buffers().iter().zip(kernels.buffers().iter()) {
                assert_close_relative(&what(expected.name), got.values, expected.values, 1e-4);
            }
            let expected = burn.embed(&images).unwrap();
            assert_close_relative(&what("embed"), &kernels.embed(&images).unwrap(), &expected, 1e-4);
            compared += 1;
        }
        if compared >= 2 * BATCHES {
            return;
        }
    }
    panic!("{} {height}x{width} batch {n}: only {compared} steps were away from kinks", config.name());
}

#[test]
fn resnet08_engines_agree() {
    let config = BackboneKind::ResNet08.config();
    agree(&config, [32, 32], 2);
    agree(&config, [30, 37], 1);
    agree(&config, [33, 29], 1);
}

#[test]
fn resnet20_engines_agree() {
    agree(&BackboneKind::ResNet20.config(), [29, 29], 1);
}

#[test]
fn resnet12_engines_agree() {
    agree(&BackboneConfig::ResNet12(ResNet12Config { channels: [4, 8, 8, 16] }), [16, 19], 2);
}

#[test]
fn resnet18_engines_agree() {
    agree(&BackboneConfig::ResNet18(ResNet18Config { channels: [4, 8, 8, 16] }), [33, 38], 1);
}

#[test]
fn conv4_engines_agree() {
    agree(&BackboneKind::Conv4.config(), [16, 16], 1);
    agree(&BackboneConfig::Conv4(Conv4Config { width: 10 }), [19, 35], 2);
}
