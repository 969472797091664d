//! Connections, bodies, guards, errors and metrics: what every request passes through.

pub(crate) mod body;
pub(crate) mod connections;
pub(crate) mod extract;
pub(crate) mod guard;
pub(crate) mod metrics;
pub(crate) mod problem;
