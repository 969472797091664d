//! Backbones of gated propagation networks, and what trains them.
//!
//! An [`Embedder`] takes samples as plain `f32` slices, normalised images `[n, 3, height, width]` or
//! embeddings `[n, len]` of another program, and returns embeddings `[n, embedding_len]`. Give it the
//! gradient of a loss with respect to these embeddings, and it computes the gradients of all its parameters.
//! Any number of threads may embed with one embedder.
//!
//! | part | what it is |
//! |---|---|
//! | [`Embedder`] | a backbone with its parameters and batch-norm buffers: forward, backward, fast embedding |
//! | [`BackboneKind`], [`BackboneConfig`] | which backbone: `resnet08`, `resnet20`, `conv4`, `resnet12`, `resnet18`, `mlp`, `identity` |
//! | [`ClassifierHead`] | linear classifier with cross entropy, for the auxiliary task |
//! | [`Propagator`] | the gated propagation of prototypes over a task's class graph |
//! | [`prior`] | the graph prior: prototypes from few samples and the classes around a class, in closed form |
//! | [`CosineHead`], [`fit_cosine_head`] | the cosine classifier of Baseline++, and its fit to a support set |
//! | [`Gnn`] | the few-shot graph neural network of Garcia and Bruna |
//! | [`distance_loss`] | cross entropy over squared distances to prototypes, for episodes |
//! | [`Trainable`] | what all of them have in common: parameters, gradients, updates, loading from a file |
//! | [`Adam`], [`StepDecay`] | the optimiser over named tensors, and the learning rate over time |
//! | [`Weights`], [`save_weights`] | safetensors files with PyTorch's parameter names |
//! | [`Device`] | `cpu`, or `cuda`, `rocm`, `wgpu` where the cargo feature of that name is built |
//!
//! # Engines
//! On the processor, every backbone runs on gpn-kernels as one differentiable operation. On any other device
//! it runs on burn's modules and autodiff, which the cargo feature of a device builds (or `burn`, to compare
//! the two on the processor): burn takes longer to compile than all the rest. Parameters live in one place
//! for both: named `Vec<f32>` on the host ([`TensorList`]), used by the kernels without a copy and copied to
//! the device by burn. First values depend on the seed alone. [`EngineChoice`] picks an engine by hand; tests
//! hold the two to the same numbers.
//!
//! # A training step
//! ```
//! use gpn_model::{Adam, BackboneKind, Device, Embedder, InputShape, StepDecay, Trainable, distance_loss};
//!
//! let input = InputShape::Image { height: 32, width: 32 };
//! let mut embedder = Embedder::new(&BackboneKind::ResNet08.config(), input, &Device::cpu(), 7)?;
//! let (mut adam, schedule) = (Adam::default(), StepDecay::default());
//! let len = embedder.embedding_len();
//!
//! // Two classes, one support image and one query image each: support first.
//! let images: Vec<f32> = (0..4 * input.len()).map(|i| (i % 251) as f32 / 251.0 - 0.5).collect();
//! for episode in 0..2 {
//!     let embeddings = embedder.forward_train(&images)?;
//!     let (prototypes, queries) = embeddings.split_at(2 * len);
//!     let pass = distance_loss(queries, prototypes, &[0, 1], len)?;
//!     embedder.backward(&[pass.grad_prototypes, pass.grad_queries].concat())?;
//!     adam.step(&mut embedder.updates(), schedule.rate(episode), episode)?;
//! }
//! # Ok::<(), gpn_model::ModelError>(())
//! ```

mod backbone;
pub mod bench;
mod cells;
mod cosine_fit;
mod cosine_head;
mod device;
mod distance;
mod embedder;
mod engine;
mod error;
pub mod gnn;
mod head;
mod init;
mod matmul;
mod memory;
pub mod methods;
mod nearest_name;
mod neighbourhood;
mod optim;
pub mod prior;
pub mod propagation;
mod propagator;
mod prototype_index;
mod tensors;
mod trainable;
mod vector;
mod weight_file;
mod weights;

pub use backbone::{
    BackboneConfig, BackboneKind, Conv4Config, InputShape, MlpConfig, Mode, ResNet12Config, ResNet18Config,
    ResNetConfig,
};
pub use cosine_fit::{CosineFit, fit_cosine_head};
pub use cosine_head::CosineHead;
pub use device::{Device, DeviceKind};
pub use distance::{DistancePass, distance_loss, squared_distance};
pub use embedder::Embedder;
pub use engine::{EngineChoice, OnFinal};
pub use error::{ModelError, Result};
pub use gnn::{Gnn, GnnConfig, GnnPass};
pub use gpn_kernels::{EXACT_BATCH, simd_name};
pub use head::{ClassifierHead, HeadInit, HeadPass};
pub use memory::{Memory, accuracy, class_means, mix};
pub use neighbourhood::{Neighbourhood, SpanningTree};
pub use optim::{Adam, AdamConfig, StepDecay, Update};
pub use propagation::{PropagationConfig, PropagationGraph};
pub use propagator::Propagator;
pub use prototype_index::{EXACT_UP_TO, PrototypeIndex};
pub use tensors::{NamedTensor, TensorInfo, TensorList};
pub use trainable::{Trainable, TrainableTensors};
pub use weights::{Weights, save as save_weights, to_bytes as weight_bytes};
