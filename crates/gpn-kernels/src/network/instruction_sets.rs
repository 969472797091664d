//! The same bits with every instruction set but the portable one, network by network.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::{Architecture, Mode, Network};
use crate::simd::Simd;

fn random(rng: &mut ChaCha8Rng, len: usize, scale: f32) -> Vec<f32> {
    (0..len).map(|_| (rng.next_u32() as f32 / u32::MAX as f32 - 0.5) * 2.0 * scale).collect()
}

/// Everything some steps of gradient descent compute, as bits, by name.
fn steps(
    architecture: Architecture,
    (h, w): (usize, usize),
    n: usize,
    exact: usize,
    simd: Simd,
) -> Vec<(String, Vec<u32>)> {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut net = Network::with_simd(architecture, h, w, simd).unwrap();
    net.set_exact_batch(exact);
    let mut weights: Vec<Vec<f32>> = net
        .parameters()
        .iter()
        .map(|p| match p.shape[..] {
            [_, inputs, k, _] => random(&mut rng, p.numel(), (3.0 / ((k * k * inputs) as f32)).sqrt()),
            _ => random(&mut rng, p.numel(), 1.0),
        })
        .collect();
    let mut buffers: Vec<Vec<f32>> = net.buffers().iter().map(|b| vec![1.0; b.numel()]).collect();
    let images = random(&mut rng, n * net.image_len(), 1.5);
    let target = random(&mut rng, n * net.embedding_len(), 1.0);
    let mut grads: Vec<Vec<f32>> = weights.iter().map(|w| vec![0.0; w.len()]).collect();
    let mut grad_images = vec![0.0; images.len()];
    let (mut embeddings, mut inferred) = (vec![0.0; target.len()], vec![0.0; target.len()]);
    let mut seen = Vec::new();
    let mut see = |what: String, values: &[f32]| {
        assert!(values.iter().all(|v| v.is_finite()), "{what} is not finite");
        seen.push((what, values.iter().map(|v| v.to_bits()).collect()));
    };
    for (step, mode) in [Mode::Train, Mode::Eval, Mode::Train].into_iter().enumerate() {
        let params: Vec<&[f32]> = weights.iter().map(Vec::as_slice).collect();
        net.infer(&net.pack(&params, &buffers).unwrap(), &images, n, &mut inferred).unwrap();
        see(format!("step {step}: infer"), &inferred);
        net.forward(mode, &params, &mut buffers, &images, n, &mut embeddings).unwrap();
        see(format!("step {step}: forward"), &embeddings);
        net.backward(&params, &target, &mut grads, Some(&mut grad_images)).unwrap();
        see(format!("step {step}: gradient of images"), &grad_images);
        for (info, grad) in net.parameters().iter().zip(&grads) {
            see(format!("step {step}: gradient of {}", info.name), grad);
        }
        for (info, buffer) in net.buffers().iter().zip(&buffers) {
            see(format!("step {step}: {}", info.name), buffer);
        }
        for (weight, grad) in weights.iter_mut().flatten().zip(grads.iter().flatten()) {
            *weight -= 1e-3 * grad;
        }
    }
    seen
}

fn check(architecture: Architecture, size: (usize, usize), n: usize) {
    let Some(fused) = Simd::available().into_iter().find(|simd| simd.name() == "fused") else {
        return; // Only the portable instruction set runs here: there is nothing to compare.
    };
    for exact in [0, n] {
        let expected = steps(architecture, size, n, exact, fused);
        for simd in Simd::available().into_iter().filter(|simd| simd.is_fused()) {
            for ((what, bits), (_, expected)) in
                steps(architecture, size, n, exact, simd).iter().zip(&expected)
            {
                assert!(
                    bits == expected,
                    "{} {architecture:?} {size:?} {n}, exact {exact}: {what} differs",
                    simd.name()
                );
            }
        }
    }
}

#[test]
fn resnets_are_the_same_bits() {
    let resnet = |blocks_per_stage| Architecture::ResNet { blocks_per_stage };
    check(resnet(1), (32, 32), 11);
    check(resnet(1), (64, 64), 3);
    check(resnet(1), (84, 84), 2);
    check(resnet(1), (33, 41), 5);
    check(resnet(1), (29, 47), 1);
    check(resnet(3), (32, 32), 4);
}

#[test]
fn wide_resnets_are_the_same_bits() {
    check(Architecture::ResNet12 { channels: [8, 16, 20, 33] }, (21, 35), 5);
    check(Architecture::ResNet12 { channels: [16, 80, 112, 96] }, (16, 18), 3);
    check(Architecture::ResNet18 { channels: [8, 16, 20, 33] }, (37, 45), 5);
    check(Architecture::ResNet18 { channels: [16, 80, 112, 272] }, (32, 64), 3);
}

#[test]
fn conv4_is_the_same_bits() {
    check(Architecture::Conv4 { width: 64 }, (32, 32), 4);
    check(Architecture::Conv4 { width: 64 }, (21, 37), 3);
    check(Architecture::Conv4 { width: 24 }, (19, 16), 9);
    check(Architecture::Conv4 { width: 5 }, (16, 17), 2);
}
