//! Weight files: prefixes, errors, exact bytes.

use gpn_model::{
    BackboneKind, ClassifierHead, Device, Embedder, InputShape, NamedTensor, Trainable, Weights, save_weights,
};

const INPUT: InputShape = InputShape::Image { height: 32, width: 32 };

fn resnet08(seed: u64) -> Embedder {
    Embedder::new(&BackboneKind::ResNet08.config(), INPUT, &Device::cpu(), seed).unwrap()
}

/// The state of an embedder under other names.
fn renamed(embedder: &Embedder, rename: impl Fn(&str) -> String) -> Vec<(String, Vec<usize>, Vec<f32>)> {
    embedder.state().map(|t| (rename(t.name), t.shape.to_vec(), t.values.to_vec())).collect()
}

fn views(tensors: &[(String, Vec<usize>, Vec<f32>)]) -> impl Iterator<Item = NamedTensor<'_>> {
    tensors.iter().map(|(name, shape, values)| NamedTensor { name, shape, values })
}

#[test]
fn every_prefix_loads_and_other_parts_are_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weights.safetensors");
    let source = resnet08(1);
    for prefix in ["", "emb.", "module.", "module.emb."] {
        let mut tensors = renamed(&source, |name| format!("{prefix}{name}"));
        tensors.push((format!("{prefix}bn_1.num_batches_tracked"), vec![], vec![7.0]));
        tensors.push((format!("{prefix}fc_classifier.weight"), vec![2, 64], vec![0.5; 128]));
        tensors.push((format!("{prefix}fc_classifier.bias"), vec![2], vec![0.25; 2]));
        if prefix.ends_with("emb.") {
            tensors.push(("memory".into(), vec![1, 64], vec![0.0; 64]));
        }
        save_weights(&file, views(&tensors), None).unwrap();
        let weights = Weights::read(&file).unwrap();
        let mut target = resnet08(2);
        weights.load(&mut target).unwrap();
        assert_eq!(target.parameters(), source.parameters(), "prefix `{prefix}`");
        assert_eq!(target.buffers(), source.buffers(), "prefix `{prefix}`");
        let mut head = ClassifierHead::new(64, 2, &Device::cpu(), 1).unwrap();
        weights.load_head(&mut head).unwrap();
        assert_eq!(head.parameters().get("fc_classifier.bias").unwrap().values, [0.25; 2]);
        let mut wider = ClassifierHead::new(64, 3, &Device::cpu(), 1).unwrap();
        let message = weights.load_head(&mut wider).unwrap_err().to_string();
        assert!(message.contains("is [2, 64], expected [3, 64]"), "{message}");
    }
}

#[test]
fn all_problems_are_listed_and_nothing_is_changed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weights.safetensors");
    let mut tensors = renamed(&resnet08(1), str::to_owned);
    tensors.retain(|(name, ..)| name != "bn_1.bias");
    tensors.push(("stage_4.0.conv_a.weight".into(), vec![1], vec![0.0]));
    for (name, shape, _) in &mut tensors {
        if name == "conv_1_3x3.weight" {
            *shape = vec![16, 27];
        }
    }
    save_weights(&file, views(&tensors), None).unwrap();
    let mut target = resnet08(2);
    let before = target.parameters().clone();
    let message = Weights::read(&file).unwrap().load(&mut target).unwrap_err().to_string();
    for part in [
        "weights.safetensors for resnet08",
        "3 problems",
        "missing: bn_1.bias [16]",
        "mis-shaped: conv_1_3x3.weight is [16, 27], expected [16, 3, 3, 3]",
        "extra: stage_4.0.conv_a.weight",
    ] {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
    assert_eq!(*target.parameters(), before);
}

#[test]
fn files_are_the_same_bytes_each_time_and_carry_metadata() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
    for file in [&a, &b] {
        save_weights(file, resnet08(1).state(), Some(r#"{"way":5}"#)).unwrap();
    }
    assert_eq!(std::fs::read(&a).unwrap(), std::fs::read(&b).unwrap());
    assert_eq!(Weights::read(&a).unwrap().metadata(), Some(r#"{"way":5}"#));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left beside");
}

#[test]
fn broken_and_absent_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weights.safetensors");
    let message = Weights::read(&file).unwrap_err().to_string();
    assert!(message.contains("cannot read") && message.contains("weights.safetensors"), "{message}");
    std::fs::write(&file, b"no tensors here").unwrap();
    let message = Weights::read(&file).unwrap_err().to_string();
    assert!(message.contains("not a readable safetensors file"), "{message}");
    let nowhere = folder.path().join("absent/weights.safetensors");
    let message = save_weights(&nowhere, resnet08(1).state(), None).unwrap_err().to_string();
    assert!(message.contains("cannot write"), "{message}");
}

#[test]
fn files_of_other_programs_load_without_a_checksum() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weights.safetensors");
    let source = resnet08(1);
    let bytes: Vec<(String, Vec<usize>, Vec<u8>)> = renamed(&source, str::to_owned)
        .into_iter()
        .map(|(name, shape, values)| (name, shape, values.iter().flat_map(|v| v.to_le_bytes()).collect()))
        .collect();
    let views = bytes.iter().map(|(name, shape, bytes)| {
        let view = safetensors::tensor::TensorView::new(safetensors::Dtype::F32, shape.clone(), bytes);
        (name, view.unwrap())
    });
    let plain = safetensors::serialize(views, None).unwrap();
    std::fs::write(&file, plain).unwrap();
    let weights = Weights::read(&file).unwrap();
    assert!(!weights.has_checksum());
    let mut target = resnet08(2);
    weights.load(&mut target).unwrap();
    assert_eq!(target.parameters(), source.parameters());
    save_weights(&file, source.state(), None).unwrap();
    assert!(Weights::read(&file).unwrap().has_checksum());
}

#[test]
fn our_metadata_without_a_checksum_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weights.safetensors");
    save_weights(&file, resnet08(1).state(), Some("text")).unwrap();
    let bytes = std::fs::read(&file).unwrap();
    let text = String::from_utf8_lossy(&bytes[8..200]).into_owned();
    let at = 8 + text.find("gpn.blake3").unwrap();
    let mut changed = bytes.clone();
    changed[at] ^= 1;
    std::fs::write(&file, &changed).unwrap();
    let message = Weights::read(&file).unwrap_err().to_string();
    assert!(message.contains("is damaged: it lacks its checksum"), "{message}");
}

#[test]
fn every_flipped_bit_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weights.safetensors");
    save_weights(&file, resnet08(1).state(), Some(r#"{"way":5,"note":"some text"}"#)).unwrap();
    let bytes = std::fs::read(&file).unwrap();
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let spread =
        |from: usize, to: usize, count: usize| (0..count).map(move |i| from + i * (to - from) / count);
    let places =
        spread(0, 8, 8).chain(spread(8, 8 + header, 150)).chain(spread(8 + header, bytes.len(), 150));
    for (number, at) in places.enumerate() {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (number % 8);
        std::fs::write(&file, &changed).unwrap();
        assert!(Weights::read(&file).is_err(), "bit {} of byte {at}", number % 8);
    }
}

#[test]
fn values_that_are_not_finite_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weights.safetensors");
    for (value, shown) in [(f32::NAN, "NaN"), (f32::INFINITY, "inf"), (f32::NEG_INFINITY, "-inf")] {
        for (tensor, element) in [("bn_1.bias", 0), ("conv_1_3x3.weight", 431)] {
            let mut tensors = renamed(&resnet08(1), str::to_owned);
            tensors.iter_mut().find(|(name, ..)| name == tensor).unwrap().2[element] = value;
            save_weights(&file, views(&tensors), None).unwrap();
            let message = Weights::read(&file).unwrap_err().to_string();
            let expected = format!("tensor `{tensor}` is {shown} at element {element}");
            assert!(message.contains(&expected), "{message}");
        }
    }
}
