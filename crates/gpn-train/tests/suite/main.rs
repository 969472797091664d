//! Tests through the public interface, in one binary that links quickly.

mod classifier;
mod damage;
mod episode_parity;
mod evaluation_case;
mod memory;
mod methods;
mod resume;
mod trained_parity;
