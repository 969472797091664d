//! File formats, read with every size checked before memory is taken.

pub mod archive;
pub mod element;
pub mod image;
mod jpeg;
pub(crate) mod map;
pub mod natural;
pub mod npy;
pub(crate) mod pickle;
mod tar_index;
mod zip_index;
