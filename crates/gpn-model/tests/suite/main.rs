//! Tests through the public interface, in one binary that links quickly.

mod embedder;
#[cfg(feature = "burn")]
mod engines;
mod gnn;
mod golden;
mod parity;
mod weights;
#[cfg(feature = "wgpu")]
mod wgpu;
