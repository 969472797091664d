//! CPU kernels for few-shot backbones. The crate knows no framework: slices of f32 go in and come out.
//!
//! # What comes in, what goes out
//! A [`Network`] is an [`Architecture`] (a ResNet or Conv4) at an image size, with its work buffers.
//! Weights stay with the caller, as flat slices in PyTorch's order and under PyTorch's names
//! ([`Network::parameters`], [`Network::buffers`]). Images `[n, 3, h, w]` become embeddings
//! `[n, embedding_len]` with [`Network::forward`], which keeps what [`Network::backward`] needs to turn
//! gradients of embeddings into gradients of the weights, or with [`Network::infer`], which keeps nothing and may run on
//! any number of threads at once.
//! An [`Mlp`] does the same for embeddings that are given.
//! [`linear`] holds what comes after a backbone: linear heads, cross-entropy, distances and Adam; [`search`] finds the
//! nearest of a million prototypes.
//!
//! ```
//! use gpn_kernels::{Architecture, Mode, Network};
//!
//! let mut net = Network::new(Architecture::ResNet { blocks_per_stage: 1 }, 32, 32)?;
//! let weights: Vec<Vec<f32>> = net.parameters().iter().map(|p| vec![0.05; p.numel()]).collect();
//! let params: Vec<&[f32]> = weights.iter().map(Vec::as_slice).collect();
//! let mut buffers: Vec<Vec<f32>> = net.buffers().iter().map(|b| vec![1.0; b.numel()]).collect();
//!
//! let images = vec![0.5; 2 * net.image_len()];
//! let mut embeddings = vec![0.0; 2 * net.embedding_len()];
//! net.forward(Mode::Train, &params, &mut buffers, &images, 2, &mut embeddings)?;
//!
//! let mut grads: Vec<Vec<f32>> = weights.iter().map(|w| vec![0.0; w.len()]).collect();
//! net.backward(&params, &embeddings, &mut grads, None)?;
//! # Ok::<(), gpn_kernels::KernelError>(())
//! ```
//!
//! # How it is fast
//! - Maps lie in memory with the channels of a pixel together, in blocks of 16, so that a vector holds
//!   channels of one pixel (`geometry`).
//! - Every convolution is register tiles of one inner loop (`tile`): directly, for images, stride 2 and kernels of 1x1 and
//!   7x7 (`direct`, `strided`, `weight_gradient`), or after Winograd's transform, for stride 1 (`winograd`), ragged edges
//!   included. Weights lie in blocks of 16 outputs (`weights`); where they are too many for the cache, a block of them
//!   sweeps the pixels of several images.
//! - Batch norm, activation, shortcut and pooling happen on the way into a convolution (`prologue`, `pool`) or on the way
//!   out (`epilogue`): a map is written once, as the raw output of its convolution, and read where it is needed.
//! - AVX-512, AVX2 with FMA, or plain Rust is chosen when the program runs (`simd`); the environment variable
//!   `GPN_SIMD` (`avx512`, `avx2`, `fused`, `portable`) forces one.
//! - Threads are woken once per pass and spin from layer to layer (`team`). Inference takes only threads that no other
//!   pass uses (`reservation`).
//! - Weights for inference are packed once and used by all calls ([`Network::pack`]).
//! - Buffers are allocated at the first batch of a size, in huge pages where there are any, and used again.
//!
//! # What it promises
//! Results are the same bits from run to run, with any number of threads, and with every instruction set but
//! `portable`: a batch is cut into parts by its size alone, the sums of the parts are added in order (`parallel`), and
//! no sum depends on the length of a vector or the height of a register tile. Statistics of a batch are summed in
//! f64, and Winograd's points and sums are chosen to round about as little as the direct method, because a
//! ReLU near zero that falls on the other side changes gradients visibly in a small batch.

#![allow(
    clippy::inline_always,
    reason = "a kernel must end up inside the one function that enables its instruction set"
)]
#![allow(clippy::needless_range_loop, reason = "loops over register tiles index several arrays by constants")]

mod ahead;
mod buffer;
mod conv;
mod direct;
mod epilogue;
mod error;
mod geometry;
pub mod linear;
mod mlp;
mod network;
mod norm;
mod parallel;
mod peak;
mod pool;
mod prologue;
mod reservation;
pub mod search;
mod simd;
mod strided;
mod tail;
mod team;
mod tile;
mod weight_gradient;
mod weights;
mod winograd;

pub use error::KernelError;
pub use mlp::Mlp;
pub use network::{Architecture, EXACT_BATCH, Mode, Network, PackedWeights, TensorInfo};
pub use peak::measured_peak_gflops;
pub use simd::{Simd, rounding, simd_name};
