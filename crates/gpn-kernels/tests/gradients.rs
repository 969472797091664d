//! Outputs against the definition in f64, gradients against finite differences of it: every layer and
//! every fused step, at odd sizes, on every instruction set.

mod reference;

use gpn_kernels::{Architecture, KernelError, Mode, Network, Simd};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Small, so that a step takes no ReLU across zero.
const STEP: f64 = 1e-9;
const TOLERANCE: f64 = 2e-4;

fn random(rng: &mut ChaCha8Rng, len: usize, scale: f32, centre: f32) -> Vec<f32> {
    (0..len).map(|_| (rng.next_u32() as f32 / u32::MAX as f32 - 0.5) * 2.0 * scale + centre).collect()
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&v| f64::from(v)).collect()
}

fn check(architecture: Architecture, mode: Mode, (n, h, w): (usize, usize, usize)) {
    let mut rng = ChaCha8Rng::seed_from_u64((h * 100 + w) as u64);
    let first = Network::new(architecture, h, w).unwrap();
    let params: Vec<Vec<f32>> = first
        .parameters()
        .iter()
        .map(|p| match p.shape[..] {
            [_, inputs, k, _] => random(&mut rng, p.numel(), (3.0 / ((k * k * inputs) as f32)).sqrt(), 0.0),
            _ if p.name.ends_with("bias") => random(&mut rng, p.numel(), 0.3, 0.0),
            // Some scales are negative: max pooling must not swap with batch norm.
            _ => random(&mut rng, p.numel(), 1.0, 0.6),
        })
        .collect();
    let start: Vec<Vec<f32>> = first
        .buffers()
        .iter()
        .map(|b| random(&mut rng, b.numel(), 0.3, if b.name.ends_with("var") { 1.0 } else { 0.0 }))
        .collect();
    let images = random(&mut rng, n * first.image_len(), 1.0, 0.0);
    // The objective is the dot product of the embeddings with these.
    let target = random(&mut rng, n * first.embedding_len(), 1.0, 0.0);
    let (params64, buffers64): (Vec<_>, Vec<_>) =
        (params.iter().map(|p| wide(p)).collect(), start.iter().map(|b| wide(b)).collect());
    let images64 = wide(&images);
    let embed = |params: &[Vec<f64>], images: &[f64]| {
        reference::embed(architecture, mode, params, &buffers64, images, (n, h, w)).0
    };
    let objective = |params: &[Vec<f64>], images: &[f64]| -> f64 {
        embed(params, images).iter().zip(&target).map(|(e, t)| e * f64::from(*t)).sum()
    };
    let expected = embed(&params64, &images64);

    // One random direction per tensor.
    let directions: Vec<Vec<f32>> = params.iter().map(|p| random(&mut rng, p.len(), 1.0, 0.0)).collect();
    let image_direction = random(&mut rng, images.len(), 1.0, 0.0);
    let slopes: Vec<f64> = (0..params.len())
        .map(|t| {
            let moved = |sign: f64| {
                let mut moved = params64.clone();
                for (v, d) in moved[t].iter_mut().zip(&directions[t]) {
                    *v += sign * STEP * f64::from(*d);
                }
                objective(&moved, &images64)
            };
            (moved(1.0) - moved(-1.0)) / (2.0 * STEP)
        })
        .collect();
    let moved = |sign: f64| -> Vec<f64> {
        images64.iter().zip(&image_direction).map(|(v, d)| v + sign * STEP * f64::from(*d)).collect()
    };
    let image_slope = (objective(&params64, &moved(1.0)) - objective(&params64, &moved(-1.0))) / (2.0 * STEP);

    for (simd, exact_batch) in Simd::available().into_iter().flat_map(|simd| [(simd, 0), (simd, n)]) {
        let case = format!("{} {architecture:?} {mode:?} {n}x{h}x{w} exact {exact_batch}", simd.name());
        let mut net = Network::with_simd(architecture, h, w, simd).unwrap();
        net.set_exact_batch(exact_batch);
        let views: Vec<&[f32]> = params.iter().map(Vec::as_slice).collect();
        let mut buffers = start.clone();
        let mut embeddings = vec![0.0; target.len()];
        net.forward(mode, &views, &mut buffers, &images, n, &mut embeddings).unwrap();
        for (got, expected) in embeddings.iter().zip(&expected) {
            assert!((f64::from(*got) - expected).abs() < 1e-4 * expected.abs().max(1.0), "{case}");
        }
        if mode == Mode::Eval {
            let mut inferred = vec![0.0; target.len()];
            net.infer(&net.pack(&views, &buffers).unwrap(), &images, n, &mut inferred).unwrap();
            for (got, expected) in inferred.iter().zip(&expected) {
                assert!((f64::from(*got) - expected).abs() < 1e-4 * expected.abs().max(1.0), "{case}: infer");
            }
        }
        let mut grads: Vec<Vec<f32>> = params.iter().map(|p| vec![f32::NAN; p.len()]).collect();
        let mut grad_images = vec![f32::NAN; images.len()];
        net.backward(&views, &target, &mut grads, Some(&mut grad_images)).unwrap();
        let slope = |grad: &[f32], direction: &[f32]| -> (f64, f64) {
            let products: Vec<f64> =
                grad.iter().zip(direction).map(|(g, d)| f64::from(*g) * f64::from(*d)).collect();
            (products.iter().sum(), products.iter().map(|p| p * p).sum::<f64>().sqrt())
        };
        for (t, info) in net.parameters().iter().enumerate() {
            let (got, size) = slope(&grads[t], &directions[t]);
            assert!(
                (got - slopes[t]).abs() < TOLERANCE * size.max(1e-2),
                "{case}: {} has slope {got} instead of {}",
                info.name,
                slopes[t]
            );
        }
        let (got, size) = slope(&grad_images, &image_direction);
        assert!((got - image_slope).abs() < TOLERANCE * size.max(1e-2), "{case}: images {got} {image_slope}");
    }
}

#[test]
fn resnet_gradients_are_those_of_the_definition() {
    let resnet = |blocks_per_stage| Architecture::ResNet { blocks_per_stage };
    check(resnet(1), Mode::Train, (2, 29, 33));
    check(resnet(1), Mode::Eval, (1, 30, 32));
    check(resnet(2), Mode::Train, (1, 32, 29));
    check(resnet(2), Mode::Eval, (2, 31, 29));
}

#[test]
fn conv4_gradients_are_those_of_the_definition() {
    for mode in [Mode::Train, Mode::Eval] {
        check(Architecture::Conv4 { width: 5 }, mode, (3, 16, 19));
        check(Architecture::Conv4 { width: 20 }, mode, (2, 37, 21));
        check(Architecture::Conv4 { width: 32 }, mode, (1, 32, 16));
    }
}

#[test]
fn resnet12_gradients_are_those_of_the_definition() {
    check(Architecture::ResNet12 { channels: [5, 16, 20, 33] }, Mode::Train, (2, 16, 21));
    check(Architecture::ResNet12 { channels: [8, 8, 8, 8] }, Mode::Eval, (1, 19, 17));
}

#[test]
fn resnet18_gradients_are_those_of_the_definition() {
    check(Architecture::ResNet18 { channels: [5, 16, 20, 33] }, Mode::Train, (2, 33, 38));
    check(Architecture::ResNet18 { channels: [8, 8, 8, 8] }, Mode::Eval, (1, 35, 32));
}

#[test]
fn wrong_calls_are_refused() {
    let mut net = Network::new(Architecture::Conv4 { width: 4 }, 16, 16).unwrap();
    let params: Vec<Vec<f32>> = net.parameters().iter().map(|p| vec![0.1; p.numel()]).collect();
    let mut views: Vec<&[f32]> = params.iter().map(Vec::as_slice).collect();
    let mut buffers: Vec<Vec<f32>> = net.buffers().iter().map(|b| vec![1.0; b.numel()]).collect();
    let mut grads = params.clone();
    assert_eq!(net.backward(&views, &[], &mut grads, None), Err(KernelError::NoForward));
    let images = vec![0.0; net.image_len()];
    let mut embeddings = vec![0.0; net.embedding_len()];
    assert!(net.forward(Mode::Train, &views, &mut buffers, &images[1..], 1, &mut embeddings).is_err());
    assert!(net.forward(Mode::Train, &views[1..], &mut buffers, &images, 1, &mut embeddings).is_err());
    views[0] = &views[0][1..];
    let error = net.forward(Mode::Train, &views, &mut buffers, &images, 1, &mut embeddings).unwrap_err();
    assert!(error.to_string().contains("block_1.conv.weight"), "{error}");
    assert_eq!(
        net.forward(
            Mode::Eval,
            &params.iter().map(Vec::as_slice).collect::<Vec<_>>(),
            &mut buffers,
            &[],
            0,
            &mut []
        ),
        Ok(())
    );
}
