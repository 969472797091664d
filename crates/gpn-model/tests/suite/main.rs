//! Tests through the public interface, in one binary because each would link burn anew.

mod embedder;
mod engines;
mod gnn;
mod golden;
mod parity;
mod weights;
#[cfg(feature = "wgpu")]
mod wgpu;
