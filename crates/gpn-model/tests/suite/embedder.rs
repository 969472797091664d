//! The embedder on every backbone, and what it refuses.

use gpn_model::{
    Adam, BackboneConfig, BackboneKind, Conv4Config, Device, Embedder, InputShape, MlpConfig, ModelError,
    ResNet12Config, ResNet18Config, Trainable,
};

/// A number between -1 and 1 that has nothing to do with its neighbours (the last steps of MurmurHash).
fn noise(index: usize) -> f32 {
    let mut bits = index as u32;
    bits = (bits ^ (bits >> 16)).wrapping_mul(0x85eb_ca6b);
    bits = (bits ^ (bits >> 13)).wrapping_mul(0xc2b2_ae35);
    ((bits ^ (bits >> 16)) >> 8) as f32 / f32::from(1_u16 << 15) / 256.0 - 1.0
}

/// Small steps of Adam on the sum of squares make it smaller. The last maps of a backbone should have several pixels and `n` several
/// images: statistics of few values make the loss so curved that a step of any given size may be too large.
fn learns(config: &BackboneConfig, input: InputShape, n: usize) {
    let mut embedder = Embedder::new(config, input, &Device::cpu(), 5).unwrap();
    let samples: Vec<f32> = (0..n * input.len()).map(noise).collect();
    let mut adam = Adam::default();
    let mut losses = Vec::new();
    for episode in 0..4 {
        let embeddings = embedder.forward_train(&samples).unwrap();
        assert_eq!(embeddings.len(), n * embedder.embedding_len());
        losses.push(embeddings.iter().map(|value| value * value).sum::<f32>());
        let grad: Vec<f32> = embeddings.iter().map(|value| 2.0 * value).collect();
        embedder.backward(&grad).unwrap();
        adam.step(&mut embedder.updates(), 1e-4, episode).unwrap();
    }
    assert!(losses.is_sorted_by(|a, b| a > b), "{}: {losses:?}", config.name());
    assert!(embedder.embed(&samples).unwrap().iter().all(|value| value.is_finite()));
}

#[test]
fn every_backbone_learns() {
    let image = InputShape::Image { height: 32, width: 32 };
    let photo = InputShape::Image { height: 96, width: 96 };
    learns(&BackboneKind::ResNet08.config(), image, 8);
    learns(&BackboneConfig::Conv4(Conv4Config { width: 8 }), image, 8);
    learns(&BackboneConfig::ResNet12(ResNet12Config { channels: [4, 8, 8, 16] }), image, 8);
    learns(&BackboneConfig::ResNet18(ResNet18Config { channels: [4, 8, 8, 16] }), photo, 8);
    learns(&BackboneConfig::Mlp(MlpConfig { layers: vec![16, 8] }), InputShape::Embedding { len: 12 }, 3);
}

/// What a backward pass calls final does not change any more, and at the end all is.
fn tells_what_is_final(config: &BackboneConfig, input: InputShape) {
    let mut embedder = Embedder::new(config, input, &Device::cpu(), 5).unwrap();
    let samples: Vec<f32> = (0..4 * input.len()).map(noise).collect();
    // Gradients of a pass before must not count.
    for scale in [1.0, 2.0] {
        let embeddings = embedder.forward_train(&samples).unwrap();
        let grad: Vec<f32> = embeddings.iter().map(|value| scale * value).collect();
        let mut told: Vec<(usize, Vec<Vec<f32>>)> = Vec::new();
        embedder
            .backward_with(&grad, &mut |first, gradients| told.push((first, gradients[first..].to_vec())))
            .unwrap();
        assert!(told.is_sorted_by(|before, after| before.0 >= after.0));
        assert_eq!(told.last().unwrap().0, 0);
        let gradients: Vec<Vec<f32>> = embedder.gradients().map(|tensor| tensor.values.to_vec()).collect();
        for (first, then) in told {
            assert!(then == gradients[first..], "{}: from tensor {first} on", config.name());
        }
    }
}

#[test]
fn gradients_that_are_called_final_are() {
    let image = InputShape::Image { height: 32, width: 32 };
    tells_what_is_final(&BackboneKind::ResNet08.config(), image);
    tells_what_is_final(&BackboneConfig::Conv4(Conv4Config { width: 8 }), image);
    tells_what_is_final(&BackboneConfig::ResNet12(ResNet12Config { channels: [4, 8, 8, 16] }), image);
    let vector = InputShape::Embedding { len: 12 };
    tells_what_is_final(&BackboneConfig::Mlp(MlpConfig { layers: vec![16, 8] }), vector);
    tells_what_is_final(&BackboneConfig::Identity, vector);
}

#[test]
fn resnet12_has_the_parameters_of_the_field() {
    let input = InputShape::Image { height: 84, width: 84 };
    let embedder = Embedder::new(&BackboneKind::ResNet12.config(), input, &Device::cpu(), 1).unwrap();
    let count: usize = embedder.parameters().iter().map(|tensor| tensor.values.len()).sum();
    assert_eq!(count, 12_424_320);
    let names: Vec<&str> = embedder.parameters().iter().map(|tensor| tensor.name).collect();
    for name in ["layer1.0.conv1.weight", "layer4.0.bn3.bias", "layer2.0.downsample.0.weight"] {
        assert!(names.contains(&name), "{name} is not in {names:?}");
    }
    assert!(names.contains(&"layer2.0.downsample.1.weight"));
}

/// 11,689,512 of torchvision's, less the 513,000 of its classifier.
#[test]
fn resnet18_has_the_parameters_of_torchvision() {
    let input = InputShape::Image { height: 224, width: 224 };
    let embedder = Embedder::new(&BackboneKind::ResNet18.config(), input, &Device::cpu(), 1).unwrap();
    let count: usize = embedder.parameters().iter().map(|tensor| tensor.values.len()).sum();
    assert_eq!(count, 11_176_512);
    let names: Vec<&str> = embedder.parameters().iter().map(|tensor| tensor.name).collect();
    for name in ["conv1.weight", "bn1.bias", "layer1.1.conv2.weight", "layer4.0.downsample.1.weight"] {
        assert!(names.contains(&name), "{name} is not in {names:?}");
    }
    assert!(!names.contains(&"layer1.0.downsample.0.weight"));
}

#[test]
fn identity_gives_embeddings_as_they_are() {
    let input = InputShape::Embedding { len: 3 };
    let mut embedder = Embedder::new(&BackboneConfig::Identity, input, &Device::cpu(), 1).unwrap();
    let samples = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    assert_eq!(embedder.forward_train(&samples).unwrap(), samples);
    embedder.backward(&samples).unwrap();
    assert!(embedder.updates().is_empty());
    assert_eq!(embedder.embed(&samples).unwrap(), samples);
}

#[test]
fn first_parameters_depend_on_the_seed_alone() {
    let input = InputShape::Image { height: 32, width: 32 };
    let build = |seed| Embedder::new(&BackboneKind::ResNet08.config(), input, &Device::cpu(), seed).unwrap();
    assert_eq!(build(1).parameters(), build(1).parameters());
    assert_ne!(build(1).parameters(), build(2).parameters());
}

#[test]
fn wrong_calls_are_refused() {
    let input = InputShape::Image { height: 32, width: 32 };
    let mut embedder = Embedder::new(&BackboneKind::ResNet08.config(), input, &Device::cpu(), 1).unwrap();
    let images = vec![0.5; 2 * input.len()];
    assert!(matches!(embedder.embed(&images[1..]), Err(ModelError::WrongLength { .. })));
    assert!(matches!(embedder.embed(&[]), Err(ModelError::WrongLength { .. })));
    assert!(matches!(embedder.backward(&[0.0; 128]), Err(ModelError::NoForward)));
    embedder.forward_train(&images).unwrap();
    assert!(matches!(embedder.backward(&[0.0; 127]), Err(ModelError::WrongLength { .. })));
    assert!(matches!(embedder.backward(&[0.0; 128]), Err(ModelError::NoForward)));
}

/// The gradients of an MLP against finite differences of its definition in f64.
#[test]
fn mlp_gradients_are_those_of_the_definition() {
    let lengths = [5, 7, 3];
    let config = BackboneConfig::Mlp(MlpConfig { layers: lengths[1..].to_vec() });
    let mut embedder =
        Embedder::new(&config, InputShape::Embedding { len: lengths[0] }, &Device::cpu(), 9).unwrap();
    let samples: Vec<f32> = (0..4 * lengths[0]).map(|i| ((i * 37 % 23) as f32 - 11.0) / 7.0).collect();
    let wide = |values: &[f32]| values.iter().map(|&value| f64::from(value)).collect::<Vec<f64>>();
    let parameters: Vec<Vec<f64>> = embedder.parameters().iter().map(|tensor| wide(tensor.values)).collect();
    let objective = |parameters: &[Vec<f64>]| -> f64 {
        let embeddings = wide(&samples)
            .chunks(lengths[0])
            .flat_map(|sample| {
                let mut x = sample.to_vec();
                for layer in 0..2 {
                    let (weight, bias) = (&parameters[2 * layer], &parameters[2 * layer + 1]);
                    let row =
                        |o: usize| weight[o * x.len()..(o + 1) * x.len()].iter().zip(&x).map(|(w, x)| w * x);
                    x = (0..bias.len()).map(|o| bias[o] + row(o).sum::<f64>()).collect();
                    if layer == 0 {
                        for value in &mut x {
                            *value = value.max(0.0);
                        }
                    }
                }
                x
            })
            .collect::<Vec<f64>>();
        embeddings.iter().enumerate().map(|(i, e)| e * ((i % 5) as f64 - 1.5)).sum()
    };
    let embeddings = embedder.forward_train(&samples).unwrap();
    let grad: Vec<f32> = (0..embeddings.len()).map(|i| (i % 5) as f32 - 1.5).collect();
    embedder.backward(&grad).unwrap();
    for (tensor, gradient) in embedder.gradients().enumerate() {
        for element in 0..gradient.values.len() {
            let moved = |step: f64| {
                let mut moved = parameters.clone();
                moved[tensor][element] += step;
                objective(&moved)
            };
            let slope = (moved(1e-7) - moved(-1e-7)) / 2e-7;
            let got = f64::from(gradient.values[element]);
            assert!((got - slope).abs() < 1e-4, "{} {element}: {got} instead of {slope}", gradient.name);
        }
    }
}

fn images(n: usize) -> Vec<f32> {
    (0..n * 3 * 32 * 32).map(|i| ((i * 7919 % 1009) as f32 - 504.0) / 300.0).collect()
}

#[test]
fn threads_share_one_embedder() {
    fn is_shareable<T: Send + Sync>(_: &T) {}
    let input = InputShape::Image { height: 32, width: 32 };
    for config in [BackboneKind::ResNet08.config(), BackboneConfig::Conv4(Conv4Config { width: 8 })] {
        let build = || Embedder::new(&config, input, &Device::cpu(), 3).unwrap();
        let images = images(19);
        let alone = build().embed(&images).unwrap();
        let embedder = build();
        is_shareable(&embedder);
        let len = embedder.embedding_len();
        // All threads begin at once, with an embedder whose weights nobody has packed yet.
        let barrier = std::sync::Barrier::new(8);
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (barrier, embedder, images, alone) = (&barrier, &embedder, &images, &alone);
                scope.spawn(move || {
                    barrier.wait();
                    for call in 0..5 {
                        let (first, n) = ((thread + call) % 8, 1 + (3 * thread + 5 * call) % 11);
                        let samples = &images[first * input.len()..(first + n) * input.len()];
                        let expected = &alone[first * len..(first + n) * len];
                        assert_eq!(embedder.embed(samples).unwrap(), expected);
                    }
                });
            }
        });
    }
}

#[test]
fn a_pool_of_the_caller_does_the_work() {
    let input = InputShape::Image { height: 32, width: 32 };
    let embedder = Embedder::new(&BackboneKind::ResNet08.config(), input, &Device::cpu(), 3).unwrap();
    let images = images(9);
    let expected = embedder.embed(&images).unwrap();
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        assert_eq!(pool.install(|| embedder.embed(&images)).unwrap(), expected);
    }
}

#[test]
fn embeddings_follow_the_parameters() {
    let input = InputShape::Image { height: 32, width: 32 };
    let mut embedder = Embedder::new(&BackboneKind::ResNet08.config(), input, &Device::cpu(), 3).unwrap();
    let images = images(10);
    let before = embedder.embed(&images).unwrap();
    let embeddings = embedder.forward_train(&images).unwrap();
    let moved = embedder.embed(&images).unwrap();
    assert_ne!(moved, before, "running statistics moved");
    // The forward pass still waits for its backward pass.
    embedder.backward(&embeddings).unwrap();
    Adam::default().step(&mut embedder.updates(), 1e-3, 1).unwrap();
    let trained = embedder.embed(&images).unwrap();
    assert_ne!(trained, moved, "parameters moved");

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weights.safetensors");
    gpn_model::save_weights(&file, embedder.state(), None).unwrap();
    let mut other = Embedder::new(&BackboneKind::ResNet08.config(), input, &Device::cpu(), 4).unwrap();
    assert_ne!(other.embed(&images).unwrap(), trained);
    gpn_model::Weights::read(&file).unwrap().load(&mut other).unwrap();
    assert_eq!(other.embed(&images).unwrap(), trained);
}
