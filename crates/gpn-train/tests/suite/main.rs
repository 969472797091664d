//! Tests through the public interface, in one binary that links quickly.

mod distributed;
mod episode_parity;
mod evaluation_case;
mod fixture;
mod memory;
mod methods;
mod resume;
mod trained_parity;
