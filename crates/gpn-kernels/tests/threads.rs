//! The same bits with any number of threads, and from run to run.

use gpn_kernels::{Architecture, KernelError, Mode, Network};

/// Everything a step computes, as bits.
fn step(architecture: Architecture, size: (usize, usize), n: usize, threads: usize) -> Vec<u32> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| {
        let mut net = Network::new(architecture, size.0, size.1).unwrap();
        let wave =
            |len: usize, scale: f32| (0..len).map(|i| (i as f32 * 0.7).sin() * scale).collect::<Vec<f32>>();
        let weights: Vec<Vec<f32>> = net.parameters().iter().map(|p| wave(p.numel(), 0.3)).collect();
        let params: Vec<&[f32]> = weights.iter().map(Vec::as_slice).collect();
        let mut buffers: Vec<Vec<f32>> = net.buffers().iter().map(|b| vec![1.0; b.numel()]).collect();
        let images = wave(n * net.image_len(), 1.0);
        let mut embeddings = vec![0.0; n * net.embedding_len()];
        let mut inferred = embeddings.clone();
        let mut grads: Vec<Vec<f32>> = weights.iter().map(|w| vec![0.0; w.len()]).collect();
        let mut grad_images = vec![0.0; images.len()];
        // Twice: work buffers hold what the first step left in them.
        for _ in 0..2 {
            net.forward(Mode::Train, &params, &mut buffers, &images, n, &mut embeddings).unwrap();
            net.infer(&net.pack(&params, &buffers).unwrap(), &images, n, &mut inferred).unwrap();
            net.backward(&params, &embeddings, &mut grads, Some(&mut grad_images)).unwrap();
        }
        let all = [embeddings, inferred, grad_images].into_iter().chain(grads).chain(buffers);
        all.flatten().map(f32::to_bits).collect()
    })
}

#[test]
fn threads_do_not_change_a_bit() {
    let resnet = Architecture::ResNet { blocks_per_stage: 1 };
    let conv4 = Architecture::Conv4 { width: 24 };
    let resnet12 = Architecture::ResNet12 { channels: [8, 16, 80, 112] };
    let resnet18 = Architecture::ResNet18 { channels: [8, 16, 80, 112] };
    for (architecture, size, n) in [
        (resnet, (32, 32), 37),
        (resnet, (33, 41), 5),
        (resnet, (29, 29), 1),
        (conv4, (21, 16), 70),
        (resnet12, (20, 17), 35),
        (resnet18, (33, 40), 19),
    ] {
        let one = step(architecture, size, n, 1);
        for threads in [1, 2, 3] {
            assert!(
                one == step(architecture, size, n, threads),
                "{architecture:?} {size:?} {n} on {threads}"
            );
        }
    }
}

#[test]
fn inference_is_shared_between_threads() {
    fn is_shareable<T: Send + Sync>(value: T) -> T {
        value
    }
    let resnet = Architecture::ResNet { blocks_per_stage: 1 };
    let net = is_shareable(Network::new(resnet, 32, 32).unwrap());
    let wave =
        |len: usize, scale: f32| (0..len).map(|i| (i as f32 * 0.7).sin() * scale).collect::<Vec<f32>>();
    let weights: Vec<Vec<f32>> = net.parameters().iter().map(|p| wave(p.numel(), 0.3)).collect();
    let params: Vec<&[f32]> = weights.iter().map(Vec::as_slice).collect();
    let buffers: Vec<Vec<f32>> = net.buffers().iter().map(|b| vec![1.0; b.numel()]).collect();
    let packed = is_shareable(net.pack(&params, &buffers).unwrap());
    let n = 21;
    let images = wave(n * net.image_len(), 1.0);
    let infer = |n: usize| {
        let mut embeddings = vec![0.0; n * net.embedding_len()];
        net.infer(&packed, &images[..n * net.image_len()], n, &mut embeddings).unwrap();
        embeddings.into_iter().map(f32::to_bits).collect::<Vec<u32>>()
    };
    let alone = infer(n);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (infer, alone) = (&infer, &alone);
            scope.spawn(move || {
                for call in 0..4 {
                    let n = 1 + (5 * thread + 7 * call) % n;
                    assert!(alone.starts_with(&infer(n)), "{n} images on thread {thread}");
                }
            });
        }
    });
}

#[test]
fn weights_of_another_network_are_refused() {
    let conv4 = |width| Network::new(Architecture::Conv4 { width }, 32, 32).unwrap();
    let (narrow, wide) = (conv4(16), conv4(32));
    let weights: Vec<Vec<f32>> = narrow.parameters().iter().map(|p| vec![0.1; p.numel()]).collect();
    let params: Vec<&[f32]> = weights.iter().map(Vec::as_slice).collect();
    let buffers: Vec<Vec<f32>> = narrow.buffers().iter().map(|b| vec![1.0; b.numel()]).collect();
    let packed = narrow.pack(&params, &buffers).unwrap();
    let image = vec![0.0; wide.image_len()];
    let mut embedding = vec![0.0; wide.embedding_len()];
    let error = wide.infer(&packed, &image, 1, &mut embedding);
    assert!(matches!(error, Err(KernelError::Length { .. })), "{error:?}");
}
