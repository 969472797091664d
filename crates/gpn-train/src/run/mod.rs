//! A run: the training loop, its directory, checkpoints and metrics, and the model it ships.

pub(crate) mod best;
pub(crate) mod checkpoint;
pub(crate) mod directory;
mod events;
pub(crate) mod finish;
pub(crate) mod metrics;
pub(crate) mod model_card;
mod step;
pub(crate) mod trainer;
