//! The workloads that the engine's speed is measured by, on the path that training takes: embedder, loss,
//! gradients, Adam.

use std::time::{Duration, Instant};

use gpn_kernels::{Architecture, Network};
pub use gpn_kernels::{measured_peak_gflops, simd_name};

use crate::{
    Adam, BackboneKind, ClassifierHead, Device, Embedder, InputShape, ModelError, ResNet12Config,
    ResNet18Config, Result, Trainable, distance_loss,
};

const CLASSES: usize = 773;
const LEARNING_RATE: f64 = 1e-3;

/// Work that is done over and over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Short name, W1 to W9.
    pub name: &'static str,
    /// What one step does.
    pub title: &'static str,
    /// Images of a step.
    pub images: usize,
    backbone: BackboneKind,
    size: usize,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Classifier,
    /// Shots and queries of each of five classes.
    Episode(usize, usize),
    Inference,
}

/// A prepared workload: each call does one step and returns its loss.
pub type Step = Box<dyn FnMut() -> Result<f32>>;

impl Workload {
    /// All workloads.
    pub const ALL: [Workload; 9] = [
        classifier(
            "W1",
            "training step, batch 128 at 32x32, 773-way head",
            BackboneKind::ResNet08,
            (128, 32),
        ),
        classifier(
            "W2",
            "training step, batch 128 at 64x64, 773-way head",
            BackboneKind::ResNet08,
            (128, 64),
        ),
        classifier(
            "W3",
            "training step, batch 128 at 84x84, 773-way head",
            BackboneKind::ResNet08,
            (128, 84),
        ),
        episode("W4", "episode step, 10 images at 64x64", 1),
        episode("W5", "episode step, 50 images at 64x64", 5),
        Workload {
            name: "W6",
            title: "inference, 256 images at 64x64",
            images: 256,
            backbone: BackboneKind::ResNet08,
            size: 64,
            kind: Kind::Inference,
        },
        classifier("W7", "conv4 training step, batch 128 at 64x64", BackboneKind::Conv4, (128, 64)),
        classifier("W8", "resnet12 training step, batch 64 at 84x84", BackboneKind::ResNet12, (64, 84)),
        classifier("W9", "resnet18 training step, batch 32 at 224x224", BackboneKind::ResNet18, (32, 224)),
    ];

    /// Allocates everything the steps need.
    pub fn prepare(&self) -> Result<Step> {
        match self.kind {
            Kind::Classifier => classifier_step(self.backbone, self.images, self.size),
            Kind::Episode(shot, queries) => episode_step(WAY, shot, queries, self.size),
            Kind::Inference => inference_step(self.images, self.size),
        }
    }

    /// Multiplications and additions of the convolutions of one step, counted as the direct method does them:
    /// a training step does three times those of a forward pass, less the gradient of the images.
    pub fn flops(&self) -> Result<f64> {
        let architecture = match self.backbone {
            BackboneKind::Conv4 => Architecture::Conv4 { width: 64 },
            BackboneKind::ResNet12 => Architecture::ResNet12 { channels: ResNet12Config::default().channels },
            BackboneKind::ResNet18 => Architecture::ResNet18 { channels: ResNet18Config::default().channels },
            _ => Architecture::ResNet { blocks_per_stage: 1 },
        };
        let network = Network::new(architecture, self.size, self.size)?;
        let per_image = match self.kind {
            Kind::Inference => network.flops(),
            _ => 3 * network.flops() - network.first_layer_flops(),
        };
        Ok((self.images as u64 * per_image) as f64)
    }
}

/// Times of single steps, after some to warm up (up to three, but no more after a second): at least three,
/// and as many as fit into `at_least`.
pub fn time(step: &mut Step, at_least: Duration) -> Result<Vec<Duration>> {
    let start = Instant::now();
    for _ in 0..3 {
        step()?;
        if start.elapsed() > Duration::from_secs(1) {
            break;
        }
    }
    let (start, mut times) = (Instant::now(), Vec::new());
    while times.len() < 3 || start.elapsed() < at_least {
        let begin = Instant::now();
        step()?;
        times.push(begin.elapsed());
    }
    Ok(times)
}

const WAY: usize = 5;

const fn classifier(
    name: &'static str,
    title: &'static str,
    backbone: BackboneKind,
    (images, size): (usize, usize),
) -> Workload {
    Workload { name, title, images, backbone, size, kind: Kind::Classifier }
}

/// As many queries as shots.
const fn episode(name: &'static str, title: &'static str, shot: usize) -> Workload {
    Workload {
        name,
        title,
        images: 2 * WAY * shot,
        backbone: BackboneKind::ResNet08,
        size: 64,
        kind: Kind::Episode(shot, shot),
    }
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
    let embedder = Embedder::new(&BackboneKind::ResNet08.config(), square(size), &Device::cpu(), 1)?;
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
