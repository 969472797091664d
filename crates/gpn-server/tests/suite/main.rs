//! The server through its sockets, in one binary that links quickly.

mod api;
mod client;
mod documented;
mod durable;
mod fixture;
mod guarded;
mod hostile;
mod inference;
