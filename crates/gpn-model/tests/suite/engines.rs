//! The two engines agree, on sizes and batches that golden vectors do not have.

use gpn_model::{
    BackboneConfig, BackboneKind, Conv4Config, Device, Embedder, EngineChoice, InputShape, Mode,
};

use crate::golden::assert_close_relative;

/// Values that look like noise, between -1 and 1.
fn noise(len: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1u32 << 23) as f32 - 1.0
    };
    (0..len).map(|_| next()).collect()
}

/// Batches that each comparison tries.
const BATCHES: u32 = 8;

/// A step in either mode on each engine, the second with statistics moved by the first, and embeddings.
fn agree(config: &BackboneConfig, [height, width]: [usize; 2], n: usize) {
    let input = InputShape::Image { height, width };
    let what = |part: &str| format!("{} {height}x{width} batch {n}: {part}", config.name());
    for seed in 0..BATCHES {
        let build = |choice| Embedder::with_engine(config, input, &Device::cpu(), 3, choice).unwrap();
        let (mut burn, mut kernels) = (build(EngineChoice::Burn), build(EngineChoice::Kernels));
        assert_eq!(burn.parameters(), kernels.parameters(), "{}", what("parameters"));
        assert_eq!(burn.buffers(), kernels.buffers(), "{}", what("buffers"));
        for mode in [Mode::Train, Mode::Eval] {
            let images = noise(n * input.len(), seed);
            let expected = burn.forward(&images, mode).unwrap();
            assert_close_relative(
                &what("forward"),
                &kernels.forward(&images, mode).unwrap(),
                &expected,
                1e-4,
            );
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
        }
    }
}

#[test]
fn resnet08_engines_agree() {
    let config = BackboneKind::ResNet08.config();
    agree(&config, [32, 32], 5);
    agree(&config, [30, 37], 3);
    agree(&config, [33, 29], 1);
}

#[test]
fn resnet20_engines_agree() {
    agree(&BackboneKind::ResNet20.config(), [32, 32], 3);
}

#[test]
fn conv4_engines_agree() {
    agree(&BackboneKind::Conv4.config(), [32, 32], 3);
    agree(&BackboneConfig::Conv4(Conv4Config { width: 10 }), [19, 35], 5);
}
