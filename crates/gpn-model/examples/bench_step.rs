//! Times the benchmark workloads on the path that training takes: embedder, loss, gradients, Adam.
//!
//! Prints one JSON line per workload: engine, workload, `step_ms` and `peak_mb`. `bench/torch_step.py` is the
//! counterpart in PyTorch, `bench/run.py` interleaves the two.

use std::time::Instant;

use gpn_model::{
    Adam, BackboneKind, ClassifierHead, Device, Embedder, InputShape, ModelError, Result, distance_loss,
};

const CLASSES: usize = 773;
const LEARNING_RATE: f64 = 1e-3;
const WORKLOADS: [&str; 7] = ["W1", "W2", "W3", "W4", "W5", "W6", "W7"];

type Step = Box<dyn FnMut() -> Result<f32>>;

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut workloads = Vec::new();
    let (mut seconds, mut engine) = (3.0, "gpn".to_owned());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--seconds" => seconds = arguments.next().ok_or("--seconds needs a number")?.parse()?,
            "--engine" => engine = arguments.next().ok_or("--engine needs a name")?,
            _ => workloads.push(argument),
        }
    }
    if workloads.is_empty() {
        workloads = WORKLOADS.map(str::to_owned).to_vec();
    }
    for workload in workloads {
        let mut step = match workload.as_str() {
            "W1" => classifier_step(BackboneKind::ResNet08, 128, 32)?,
            "W2" => classifier_step(BackboneKind::ResNet08, 128, 64)?,
            "W3" => classifier_step(BackboneKind::ResNet08, 128, 84)?,
            "W4" => episode_step(5, 1, 1, 64)?,
            "W5" => episode_step(5, 5, 5, 64)?,
            "W6" => inference_step(256, 64)?,
            "W7" => classifier_step(BackboneKind::Conv4, 128, 64)?,
            other => {
                return Err(format!("unknown workload `{other}` (known: {})", WORKLOADS.join(", ")).into());
            }
        };
        for _ in 0..3 {
            step()?;
        }
        let mut times = Vec::new();
        let start = Instant::now();
        while times.len() < 5 || start.elapsed().as_secs_f64() < seconds {
            let begin = Instant::now();
            step()?;
            times.push((begin.elapsed().as_secs_f64() * 1e7).round() / 1e4);
        }
        let line = serde_json::json!({"engine": engine, "workload": workload, "step_ms": times, "peak_mb": peak_mb()});
        println!("{line}");
    }
    Ok(())
}

/// One training step with a linear classifier over all classes.
fn classifier_step(kind: BackboneKind, n: usize, size: usize) -> Result<Step> {
    let device = Device::cpu();
    let mut embedder = Embedder::new(&kind.config(), square(size), &device, 1)?;
    let mut head = ClassifierHead::new(embedder.embedding_len(), CLASSES, &device, 1)?;
    let mut adam = Adam::default();
    let images = images(n, size);
    let labels: Vec<usize> = (0..n).map(|i| i * 89 % CLASSES).collect();
    let mut episode = 0;
    Ok(Box::new(move || {
        episode += 1;
        let embeddings = embedder.forward_train(&images)?;
        let pass = head.forward_backward(&embeddings, &labels)?;
        embedder.backward(&pass.grad_embeddings)?;
        let mut updates = embedder.updates();
        updates.extend(head.updates());
        adam.step(&mut updates, LEARNING_RATE, episode)?;
        Ok(pass.loss)
    }))
}

/// One training step of a few-shot episode: prototypes, squared distances, cross entropy.
fn episode_step(way: usize, shot: usize, queries: usize, size: usize) -> Result<Step> {
    let mut embedder = Embedder::new(&BackboneKind::ResNet08.config(), square(size), &Device::cpu(), 1)?;
    let len = embedder.embedding_len();
    let mut adam = Adam::default();
    let images = images(way * (shot + queries), size);
    let labels: Vec<usize> = (0..way * queries).map(|i| i / queries).collect();
    let mut episode = 0;
    Ok(Box::new(move || {
        episode += 1;
        let embeddings = embedder.forward_train(&images)?;
        let (support, query) = embeddings.split_at(way * shot * len);
        let mut prototypes = vec![0.0; way * len];
        for (sample, embedding) in support.chunks_exact(len).enumerate() {
            for (sum, value) in prototypes[sample / shot * len..].iter_mut().zip(embedding) {
                *sum += value / shot as f32;
            }
        }
        let pass = distance_loss(query, &prototypes, &labels, len)?;
        let mut grad = Vec::with_capacity(embeddings.len());
        for prototype in pass.grad_prototypes.chunks_exact(len) {
            for _ in 0..shot {
                grad.extend(prototype.iter().map(|value| value / shot as f32));
            }
        }
        grad.extend(&pass.grad_queries);
        embedder.backward(&grad)?;
        adam.step(&mut embedder.updates(), LEARNING_RATE, episode)?;
        Ok(pass.loss)
    }))
}

/// Embeddings of a batch, batch norm in evaluation mode.
fn inference_step(n: usize, size: usize) -> Result<Step> {
    let mut embedder = Embedder::new(&BackboneKind::ResNet08.config(), square(size), &Device::cpu(), 1)?;
    let images = images(n, size);
    Ok(Box::new(move || Ok::<f32, ModelError>(embedder.embed(&images)?.iter().sum())))
}

fn square(size: usize) -> InputShape {
    InputShape::Image { height: size, width: size }
}

/// Images of noise with values about as large as those of normalised photographs.
fn images(n: usize, size: usize) -> Vec<f32> {
    let mut state = 1u32;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1u32 << 23) as f32 - 1.0
    };
    (0..n * 3 * size * size).map(|_| 1.7 * noise()).collect()
}

/// Most memory this process has had, where the system tells.
fn peak_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()? / 1024.0)
}
