//! Tests through the public interface, in one binary because each would link burn anew.

mod classifier;
mod episode_parity;
mod golden;
mod memory;
mod methods;
mod resume;
mod trained_parity;
