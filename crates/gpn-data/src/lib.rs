//! Samples for graph meta-learning: from the files people have to batches for training.
//!
//! - A [`source::Source`] is a data set in the form in which it is handed around: a folder of images, an archive, the
//!   published files of tieredImageNet or CIFAR-100, a table of embeddings, or the built-in [`synthetic`] one.
//! - [`benchmark::build`] joins a source and a taxonomy into a benchmark directory: classes of all levels divided into
//!   training, Close and Far, samples assigned to them and packed into one array.
//! - [`task::TaskSampler`] draws few-shot tasks from it, and [`loader::Loader`] delivers their samples, augmented by the
//!   [`transform`]s, as batches.
//!
//! ```
//! use gpn_data::benchmark::{Benchmark, BuildConfig, Part, Split, build};
//! use gpn_data::source::{Source, SyntheticSource};
//! use gpn_data::synthetic::SyntheticConfig;
//! use gpn_data::task::{TaskConfig, TaskSampler};
//!
//! # let folder = tempfile::tempdir()?;
//! # let out = folder.path().join("bench");
//! let source = SyntheticSource::new(SyntheticConfig { size: 8, ..SyntheticConfig::default() });
//! let taxonomy = source.taxonomy().unwrap()?.taxonomy;
//! let config = BuildConfig { size: 8, ..BuildConfig::default() };
//! build(&source, &taxonomy, "built in", &config, &out, &())?;
//!
//! let benchmark = Benchmark::open(&out)?;
//! let pool = benchmark.task_pool(Split::Close, Part::Test);
//! let sampler = TaskSampler::new(&pool, TaskConfig { queries: 15, ..TaskConfig::default() }, 0)?;
//! assert_eq!(sampler.task(0)?.classes.len(), 5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Files are never trusted: sizes are checked before memory is taken, pickles are parsed as data, and an error
//! names the file, the place in it and what to do. An image that cannot be decoded is an error of that image
//! alone ([`DataError::is_of_one_sample`]). [`DataError::kind`] says what kind of failure an error is.

pub mod benchmark;
mod contain;
mod error;
pub mod format;
pub mod loader;
mod progress;
pub mod rng;
pub mod source;
pub mod synthetic;
pub mod task;
pub mod transform;

pub use contain::{contain, panic_is_contained};
pub use error::DataError;
pub use format::image::{RgbImage, decode};
pub use gpn_files::ErrorKind;
pub use progress::Progress;
pub use source::{
    Leaf, SampleInfo, SampleKind, Source, SourceKind, SourceNote, SourceSpec, open, open_watched,
};
