//! The embedder on the backbones that burn alone computes, and what it refuses.

use gpn_model::{
    Adam, BackboneConfig, BackboneKind, Device, Embedder, EngineChoice, InputShape, MlpConfig, ModelError,
    ResNet12Config,
};

/// Steps of Adam on the sum of squares make it smaller.
fn learns(config: &BackboneConfig, input: InputShape, n: usize) {
    let mut embedder = Embedder::new(config, input, &Device::cpu(), 5).unwrap();
    let samples: Vec<f32> = (0..n * input.len()).map(|i| ((i * 31 % 17) as f32 - 8.0) / 8.0).collect();
    let mut adam = Adam::default();
    let mut losses = Vec::new();
    for episode in 0..4 {
        let embeddings = embedder.forward_train(&samples).unwrap();
        assert_eq!(embeddings.len(), n * embedder.embedding_len());
        losses.push(embeddings.iter().map(|value| value * value).sum::<f32>());
        let grad: Vec<f32> = embeddings.iter().map(|value| 2.0 * value).collect();
        embedder.backward(&grad).unwrap();
        adam.step(&mut embedder.updates(), 1e-2, episode).unwrap();
    }
    assert!(losses.is_sorted_by(|a, b| a > b), "{}: {losses:?}", config.name());
    assert!(embedder.embed(&samples).unwrap().iter().all(|value| value.is_finite()));
}

#[test]
fn every_backbone_learns() {
    let image = InputShape::Image { height: 32, width: 32 };
    learns(&BackboneKind::ResNet08.config(), image, 3);
    learns(&BackboneConfig::ResNet12(ResNet12Config { channels: [4, 8, 8, 16] }), image, 3);
    learns(&BackboneConfig::Mlp(MlpConfig { layers: vec![16, 8] }), InputShape::Embedding { len: 12 }, 3);
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
    embedder.forward_train(&images).unwrap();
    embedder.embed(&images).unwrap();
    assert!(matches!(embedder.backward(&[0.0; 128]), Err(ModelError::NoForward)));
    let mlp = BackboneKind::Mlp.config();
    let embeddings = InputShape::Embedding { len: 4 };
    let error = Embedder::with_engine(&mlp, embeddings, &Device::cpu(), 1, EngineChoice::Kernels).err();
    assert!(matches!(error, Some(ModelError::NoKernels { .. })));
}
