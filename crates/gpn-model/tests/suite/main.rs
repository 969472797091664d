//! Tests through the public interface, in one binary that links quickly.

mod embedder;
#[cfg(feature = "burn")]
mod engines;
mod gnn;
mod parity;
mod prior_parity;
mod propagation_parity;
mod weights;
#[cfg(feature = "wgpu")]
mod wgpu;

#[cfg(feature = "burn")]
use gpn_golden as golden;
