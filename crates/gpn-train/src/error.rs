//! What can go wrong in training and evaluation.

use std::path::PathBuf;

/// Errors of training, evaluation, run directories and model files.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// Samples, benchmarks or tasks.
    #[error(transparent)]
    Data(#[from] gpn_data::DataError),
    /// Backbones, optimiser or weight files.
    #[error(transparent)]
    Model(#[from] gpn_model::ModelError),
    /// The class graph.
    #[error(transparent)]
    Taxonomy(#[from] gpn_taxonomy::TaxonomyError),
    /// Tasks of the wished shape.
    #[error(transparent)]
    Sampler(#[from] gpn_data::task::SamplerError),
    /// A setting that does not exist or does not fit.
    #[error("setting `{key}`: {reason}")]
    Setting {
        /// The setting as given.
        key: String,
        /// What is wrong and what to write instead.
        reason: String,
    },
    /// A class that does not exist, is not clear, or cannot be taught.
    #[error("class `{class}`: {reason}")]
    Class {
        /// The class as given.
        class: String,
        /// What is wrong and what to do.
        reason: String,
    },
    /// The operating system refused a file operation.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// What was attempted.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's own words.
        source: std::io::Error,
    },
    /// A file does not hold what it should.
    #[error("{}: {reason}", path.display())]
    Malformed {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong, and what to do.
        reason: String,
    },
}
