//! Frozen encoders: from photos and texts to embeddings, by networks that others have trained.
//!
//! **In** come an ONNX model ([`ImageEncoder`], [`TextEncoder`]) with settings ([`EncoderConfig`]), and samples: image files, a
//! [`Source`](gpn_data::Source), texts. **Out** comes one embedding for each sample, or the error of that sample ([`Encoded`]). Images
//! are spread over rayon's threads. Models run by `tract`, in pure Rust; with the cargo feature
//! `ort` an installed ONNX Runtime can be chosen instead. Without the feature `encoders` (a default) the crate is small, and every
//! model is refused with a message that says so.
//!
//! - An [`EmbeddingCache`] keeps embeddings by the content of samples, so that nothing is encoded twice.
//! - An [`EncoderId`] is what a model file records, so that later samples are checked to go through the same encoder.
//! - [`write()`] puts embeddings into `.npy`, `.npz` or Parquet files, which `gpn-data` reads as a source.
//!
//! ```no_run
//! use std::path::{Path, PathBuf};
//! use gpn_encode::{EmbeddingCache, EmbeddingTable, EncoderConfig, ImageEncoder};
//!
//! let encoder = ImageEncoder::open(Path::new("lite0.onnx"), &EncoderConfig::default())?;
//! let cache = EmbeddingCache::new(Path::new("cache"));
//! let photos: Vec<PathBuf> = vec!["a.jpg".into(), "b.jpg".into()];
//! let embeddings = encoder.encode(photos.as_slice(), Some(&cache), &())?.all()?;
//! let files: Vec<String> = photos.iter().map(|photo| photo.display().to_string()).collect();
//! let table = EmbeddingTable { dim: encoder.dim(), values: &embeddings.concat(), labels: None, files: &files };
//! gpn_encode::write(Path::new("photos.parquet"), &table)?;
//! # Ok::<(), gpn_encode::EncodeError>(())
//! ```

mod cache;
mod config;
mod encode;
mod error;
mod id;
mod image;
mod onnx;
mod preprocessing;
#[cfg_attr(not(feature = "encoders"), expect(dead_code, reason = "nothing runs a model there"))]
mod runtime;
mod text;
mod watch;
mod write;

pub use cache::{ContentHash, EmbeddingCache};
pub use config::{EncoderConfig, Interpolation, Layout, Pooling, Resize, Runtime, ValueRange};
pub use encode::Encoded;
pub use error::{EncodeError, Result};
pub use id::{EncoderId, Preparation, TextPreparation};
pub use image::{ImageContent, ImageEncoder, Images};
pub use preprocessing::Preprocessing;
pub use text::TextEncoder;
pub use write::{EmbeddingTable, TableFormat, files_of, write};
