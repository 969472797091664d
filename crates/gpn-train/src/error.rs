//! What can go wrong in training and evaluation.

use std::path::PathBuf;

use gpn_files::ErrorKind;

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
    /// Tasks of the requested shape.
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
    /// A directory or file of this name is there already, or is used by another process.
    #[error("{}: {reason}", path.display())]
    Conflict {
        /// The directory or file.
        path: PathBuf,
        /// What is in the way, and what to do.
        reason: String,
    },
    /// A run is there already.
    #[error("{}: it holds a run already", path.display())]
    RunExists {
        /// The run directory.
        path: PathBuf,
    },
    /// A directory is not a run.
    #[error("{}: it is no run (no config.toml)", path.display())]
    NotARun {
        /// The directory.
        path: PathBuf,
    },
    /// A directory that should hold a model holds none.
    #[error("{}: it is no run and holds no model.safetensors; name a model file or a run", path.display())]
    NoModel {
        /// The directory.
        path: PathBuf,
    },
    /// A run whose model is wanted before it is there.
    #[error("{}: its training is not finished", path.display())]
    Unfinished {
        /// The run directory.
        path: PathBuf,
        /// Its best model so far, with the episodes it was trained for.
        best: Option<(u64, PathBuf)>,
    },
    /// A run that has nothing to show yet.
    #[error("{}: it has no checkpoint yet", path.display())]
    NoCheckpoint {
        /// The run directory.
        path: PathBuf,
    },
    /// A file is not a model, or cannot be read.
    #[error("{}: {reason}; name the model.safetensors of a run, or write it anew by resuming the run", path.display())]
    NotAModel {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Weights without the description of a model.
    #[error("{}: it holds weights, but no model", path.display())]
    WeightsOnly {
        /// The file.
        path: PathBuf,
    },
    /// A benchmark without samples.
    #[error("{}: it holds classes only, no samples to train on", path.display())]
    NoSamples {
        /// The benchmark directory.
        path: PathBuf,
    },
    /// A build without MPI is asked to train with other processes.
    #[error("this program was built without MPI")]
    WithoutMpi,
    /// MPI does not serve.
    #[error("MPI: {reason}")]
    Mpi {
        /// What is wrong, and what to do.
        reason: String,
    },
    /// The processes that are to train together do not fit together.
    #[error("rank {rank}: {reason}")]
    Rank {
        /// The process.
        rank: usize,
        /// What is wrong with it, and what to do.
        reason: String,
    },
    /// The work was stopped.
    #[error("stopped")]
    Interrupted,
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
    /// A file does not hold what it should: it is damaged, or was changed.
    #[error("{}: {reason}", path.display())]
    Malformed {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong, and what to do.
        reason: String,
    },
}

impl TrainError {
    /// What kind of failure it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Data(error) => error.kind(),
            Self::Model(error) => error.kind(),
            Self::Taxonomy(error) => error.kind(),
            Self::Sampler(error) => error.kind(),
            Self::Setting { .. }
            | Self::NoSamples { .. }
            | Self::WithoutMpi
            | Self::Mpi { .. }
            | Self::Rank { .. } => ErrorKind::BadInput,
            Self::NotARun { .. } | Self::NoModel { .. } | Self::WeightsOnly { .. } => ErrorKind::NotFound,
            Self::Conflict { .. }
            | Self::RunExists { .. }
            | Self::Unfinished { .. }
            | Self::NoCheckpoint { .. } => ErrorKind::Conflict,
            Self::NotAModel { .. } | Self::Malformed { .. } => ErrorKind::Damaged,
            Self::Interrupted => ErrorKind::Interrupted,
            Self::Io { source, .. } => ErrorKind::of_io(source),
        }
    }
}
