//! Times training steps and inference of the bare network.
//!
//! `cargo run --release --example step -- [repetitions] [workload ...]`

use std::time::Instant;

use gpn_kernels::linear::{self, Adam};
use gpn_kernels::{Architecture, KernelError, Mode, Network, measured_peak_gflops, simd_name};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

const CLASSES: usize = 773;

fn random(rng: &mut ChaCha8Rng, len: usize, scale: f32) -> Vec<f32> {
    (0..len).map(|_| (rng.next_u32() as f32 / u32::MAX as f32 - 0.5) * 2.0 * scale).collect()
}

/// A tensor with its gradient and Adam's moments.
struct Parameter {
    value: Vec<f32>,
    grad: Vec<f32>,
    moments: [Vec<f32>; 2],
}

impl Parameter {
    fn new(value: Vec<f32>) -> Parameter {
        let zeros = vec![0.0; value.len()];
        Parameter { value, grad: zeros.clone(), moments: [zeros.clone(), zeros] }
    }
}

struct Workload {
    name: &'static str,
    architecture: Architecture,
    size: usize,
    batch: usize,
    trains: bool,
}

fn run(workload: &Workload, repetitions: usize, peak: f64) -> Result<(), KernelError> {
    let Workload { name, architecture, size, batch, trains } = *workload;
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut net = Network::new(architecture, size, size)?;
    let dim = net.embedding_len();
    let weights: Vec<Vec<f32>> = net
        .parameters()
        .iter()
        .map(|p| match p.shape[..] {
            [_, inputs, k, _] => random(&mut rng, p.numel(), ((k * k * inputs) as f32).sqrt().recip()),
            _ => vec![if p.name.ends_with("bias") { 0.0 } else { 1.0 }; p.numel()],
        })
        .collect();
    let mut grads: Vec<Vec<f32>> = weights.iter().map(|w| vec![0.0; w.len()]).collect();
    let mut weights: Vec<Parameter> = weights.into_iter().map(Parameter::new).collect();
    let mut buffers: Vec<Vec<f32>> = net.buffers().iter().map(|b| vec![1.0; b.numel()]).collect();
    let mut head = Parameter::new(random(&mut rng, CLASSES * dim, (dim as f32).sqrt().recip()));
    let mut bias = Parameter::new(vec![0.0; CLASSES]);
    let images = random(&mut rng, batch * net.image_len(), 1.7);
    let labels: Vec<usize> = (0..batch).map(|i| i * 7919 % CLASSES).collect();
    let mut embeddings = vec![0.0; batch * dim];
    let mut grad_embeddings = embeddings.clone();
    let mut logits = vec![0.0; batch * CLASSES];
    let mut grad_logits = logits.clone();
    let adam = Adam { weight_decay: 1e-5, ..Adam::default() };

    let mut best = [f64::INFINITY; 4];
    for step in 1..=repetitions as u32 + 2 {
        let start = Instant::now();
        let params: Vec<&[f32]> = weights.iter().map(|w| w.value.as_slice()).collect();
        if !trains {
            net.infer(&net.pack(&params, &buffers)?, &images, batch, &mut embeddings)?;
            best[3] = best[3].min(start.elapsed().as_secs_f64());
            continue;
        }
        net.forward(Mode::Train, &params, &mut buffers, &images, batch, &mut embeddings)?;
        let forward = start.elapsed().as_secs_f64();
        linear::forward(&embeddings, &head.value, Some(&bias.value), dim, &mut logits)?;
        linear::cross_entropy(&logits, &labels, CLASSES, &mut grad_logits)?;
        let (grad_head, grad_bias) = (&mut head.grad, &mut bias.grad);
        let grad_x = Some(&mut grad_embeddings[..]);
        linear::backward(&embeddings, &head.value, &grad_logits, dim, grad_head, grad_bias, grad_x)?;
        let headed = start.elapsed().as_secs_f64();
        net.backward(&params, &grad_embeddings, &mut grads, None)?;
        let backward = start.elapsed().as_secs_f64();
        for (parameter, grad) in weights.iter_mut().zip(&grads) {
            parameter.grad.copy_from_slice(grad);
        }
        for Parameter { value, grad, moments: [first, second] } in
            weights.iter_mut().chain([&mut head, &mut bias])
        {
            adam.step(step, value, grad, first, second)?;
        }
        let all = start.elapsed().as_secs_f64();
        let times = [forward, headed - forward + all - backward, backward - headed, all];
        for (best, time) in best.iter_mut().zip(times) {
            *best = best.min(time);
        }
    }
    let flops = net.flops() as f64 * batch as f64 * if trains { 3.0 } else { 1.0 };
    let [forward, rest, backward, all] = best.map(|t| t * 1e3);
    let share = flops / (all * 1e-3) / 1e9 / peak;
    print!("{name}  {all:8.2} ms  {:5.1}% of peak (direct FLOPs)", share * 100.0);
    if trains {
        print!("  forward {forward:.2}  backward {backward:.2}  head and Adam {rest:.2}");
    }
    println!();
    Ok(())
}

fn main() -> Result<(), KernelError> {
    let mut arguments = std::env::args().skip(1);
    let repetitions = arguments.next().and_then(|a| a.parse().ok()).unwrap_or(10);
    let chosen: Vec<String> = arguments.collect();
    let threads = rayon::current_num_threads();
    let peak = measured_peak_gflops(threads);
    println!("{} on {threads} threads, measured peak {peak:.0} GFLOP/s", simd_name());
    let resnet = Architecture::ResNet { blocks_per_stage: 1 };
    let conv4 = Architecture::Conv4 { width: 64 };
    let resnet12 = Architecture::ResNet12 { channels: [64, 160, 320, 640] };
    let resnet18 = Architecture::ResNet18 { channels: [64, 128, 256, 512] };
    let workloads = [
        Workload { name: "W1", architecture: resnet, size: 32, batch: 128, trains: true },
        Workload { name: "W2", architecture: resnet, size: 64, batch: 128, trains: true },
        Workload { name: "W3", architecture: resnet, size: 84, batch: 128, trains: true },
        Workload { name: "W4", architecture: resnet, size: 64, batch: 10, trains: true },
        Workload { name: "W5", architecture: resnet, size: 64, batch: 50, trains: true },
        Workload { name: "W6", architecture: resnet, size: 64, batch: 256, trains: false },
        Workload { name: "E", architecture: resnet, size: 32, batch: 10, trains: true },
        Workload { name: "W7", architecture: conv4, size: 64, batch: 128, trains: true },
        Workload { name: "W8", architecture: resnet12, size: 84, batch: 64, trains: true },
        Workload { name: "W9", architecture: resnet18, size: 224, batch: 32, trains: true },
    ];
    for workload in &workloads {
        if chosen.is_empty() || chosen.iter().any(|c| c == workload.name) {
            run(workload, repetitions, peak)?;
        }
    }
    Ok(())
}
