//! Trained models: what a model file holds, and how it is checked.

pub(crate) mod changes;
mod check;
pub(crate) mod exact_sum;
pub(crate) mod file;
pub(crate) mod taught;
