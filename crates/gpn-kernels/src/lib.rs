//! CPU kernels
mod buffer;
mod conv;
mod direct;
mod epilogue;
mod error;
mod geometry;
mod network;
mod norm;
mod parallel;
mod prologue;
mod simd;
mod tile;
mod weights;
mod winograd;

pub use error::KernelError;
pub use network::{Architecture, Mode, Network, TensorInfo};
pub use simd::{Simd, simd_name};
