//! What can go wrong, in one type for every front end.

use std::path::PathBuf;

use gpn_files::ErrorKind;

/// An error of the application library. [`kind`](Self::kind) says what sort it is, so that a front end can answer with a
/// status, an exception or an exit code.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Samples, benchmarks or tasks.
    #[error(transparent)]
    Data(#[from] gpn_data::DataError),
    /// Frozen encoders, their samples and tables of embeddings.
    #[error(transparent)]
    Encode(#[from] gpn_encode::EncodeError),
    /// Backbones, methods or weight files.
    #[error(transparent)]
    Model(#[from] gpn_model::ModelError),
    /// The class graph.
    #[error(transparent)]
    Taxonomy(#[from] gpn_taxonomy::TaxonomyError),
    /// Training, evaluation, run directories and model files.
    #[error(transparent)]
    Train(#[from] gpn_train::TrainError),
    /// Figures and pages.
    #[error(transparent)]
    Report(#[from] gpn_report::ReportError),
    /// A class that does not exist, is not clear, or cannot be used in this way.
    #[error("class `{class}`: {reason}")]
    Class {
        /// The class as given.
        class: String,
        /// What is wrong and what to do.
        reason: String,
    },
    /// A class that the model does not have.
    #[error("class `{class}`: {reason}")]
    NoSuchClass {
        /// The class as given.
        class: String,
        /// The nearest name, or what else to do.
        reason: String,
    },
    /// A class that has been taught before.
    #[error("class `{class}`: it is already taught with {samples} sample{}", if *samples == 1 { "" } else { "s" })]
    AlreadyTaught {
        /// The class.
        class: String,
        /// Samples it has.
        samples: usize,
    },
    /// A class that has its place in the graph already.
    #[error("class `{class}`: it has its place already; teach it anew to give it another")]
    AlreadyPlaced {
        /// The class.
        class: String,
    },
    /// A method that cannot be taught classes one by one.
    #[error(
        "{method} answers whole tasks and has no prototypes to teach or compare; evaluate it, or train another method"
    )]
    NoPrototypes {
        /// Name of the method.
        method: String,
    },
    /// There is nothing to choose from.
    #[error("there is no class to choose from; teach some")]
    NothingToChoose,
    /// Close classes would be as far as Far ones.
    #[error("Close ({close}) must end before Far ({far}) begins")]
    HopsOverlap {
        /// Hops of Close classes, in words.
        close: String,
        /// Hops of Far classes.
        far: String,
    },
    /// An experiment without data.
    #[error("the benchmark directory is missing: only the quick scale has built-in data")]
    BenchmarkMissing,
    /// A run is to go on with another benchmark.
    #[error("{}: it is not the benchmark that {} was started on", data.display(), run.display())]
    OtherBenchmark {
        /// The benchmark given.
        data: PathBuf,
        /// The run.
        run: PathBuf,
    },
    /// Photos or texts for a model whose encoder is not there.
    #[error("{}: the model needs its encoder `{encoder}` to take this; it is neither where it was nor beside the model", path.display())]
    EncoderMissing {
        /// The samples.
        path: PathBuf,
        /// File name of the encoder.
        encoder: String,
    },
    /// Something given does not fit.
    #[error("{what}: {reason}")]
    Input {
        /// What was given.
        what: String,
        /// What is wrong and what to do.
        reason: String,
    },
    /// Something is in the way.
    #[error("{what}: {reason}")]
    Conflict {
        /// What.
        what: String,
        /// What is in the way and what to do.
        reason: String,
    },
    /// A file is there already.
    #[error("{}: it exists already", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The file of a shard is there already, and was made from something else.
    #[error("{}: {reason}", path.display())]
    NotThisShard {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        reason: &'static str,
    },
    /// A source of samples without a class graph of its own.
    #[error("{source_spec} brings no class graph of its own")]
    TaxonomyMissing {
        /// The source.
        source_spec: String,
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
}

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl From<gpn_data::task::SamplerError> for Error {
    fn from(error: gpn_data::task::SamplerError) -> Self {
        Self::Train(error.into())
    }
}

impl Error {
    /// What kind of failure it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Data(error) => error.kind(),
            Self::Encode(error) => error.kind(),
            Self::Model(error) => error.kind(),
            Self::Taxonomy(error) => error.kind(),
            Self::Train(error) => error.kind(),
            Self::Report(error) => error.kind(),
            Self::HopsOverlap { .. }
            | Self::BenchmarkMissing
            | Self::OtherBenchmark { .. }
            | Self::Class { .. }
            | Self::NoPrototypes { .. }
            | Self::EncoderMissing { .. }
            | Self::Input { .. }
            | Self::TaxonomyMissing { .. } => ErrorKind::BadInput,
            Self::NoSuchClass { .. } | Self::NothingToChoose => ErrorKind::NotFound,
            Self::AlreadyTaught { .. }
            | Self::AlreadyPlaced { .. }
            | Self::Conflict { .. }
            | Self::NotThisShard { .. }
            | Self::Exists { .. } => ErrorKind::Conflict,
            Self::Io { source, .. } => ErrorKind::of_io(source),
        }
    }

    #[expect(clippy::needless_pass_by_value, reason = "callers pass what displays a path")]
    pub(crate) fn input(what: impl ToString, reason: impl Into<String>) -> Self {
        Self::Input { what: what.to_string(), reason: reason.into() }
    }

    pub(crate) fn interrupted() -> Self {
        Self::Train(gpn_train::TrainError::Interrupted)
    }
}
