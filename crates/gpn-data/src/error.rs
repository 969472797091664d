//! What can go wrong between a file and a sample. Every message names the file.

use std::path::{Path, PathBuf};

use gpn_files::ErrorKind;

use crate::format::image::ForeignFormat;

/// An error while reading or writing samples.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// The operating system refused a file operation.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// What was attempted, as a verb phrase (`open`, `read`, `rename`).
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's own words.
        source: std::io::Error,
    },
    /// A file does not follow its format.
    #[error("{file}: {reason}")]
    Malformed {
        /// The file, with the entry inside an archive where there is one.
        file: String,
        /// What is wrong, where, and what is expected instead.
        reason: String,
    },
    /// A file or an array is sound, but not of the form that is needed here.
    #[error("{file}: {reason}")]
    Unfit {
        /// The file, with the entry inside an archive where there is one, or what is in memory.
        file: String,
        /// What it is, and what is expected instead.
        reason: String,
    },
    /// A source has classes but no samples, which only a benchmark of classes alone can be made from.
    #[error("{source_name}: it lists classes but holds no samples")]
    NoSamples {
        /// The source's description.
        source_name: String,
    },
    /// A directory is no benchmark.
    #[error("{}: it is no benchmark directory (no {manifest})", path.display())]
    NotABenchmark {
        /// The directory.
        path: PathBuf,
        /// The file that is missing.
        manifest: &'static str,
    },
    /// There is a benchmark at the target already, and it is not to be replaced.
    #[error("{}: it holds a benchmark already", path.display())]
    BenchmarkExists {
        /// The directory.
        path: PathBuf,
    },
    /// There is something else at the target.
    #[error("{}: it exists and is no benchmark; choose another directory", path.display())]
    TargetTaken {
        /// The file or directory.
        path: PathBuf,
    },
    /// Another process is building the same benchmark.
    #[error(
        "{}: {holder} is building it right now; wait until that ends, or choose another directory",
        path.display()
    )]
    Busy {
        /// The directory.
        path: PathBuf,
        /// Who is building it.
        holder: gpn_files::Holder,
    },
    /// A file needs more memory than is allowed for its kind.
    #[error(
        "{file}: {what} takes {size} bytes, more than the limit of {limit}; the file is damaged or hostile"
    )]
    TooLarge {
        /// The file, with the entry inside an archive where there is one.
        file: String,
        /// What is too large.
        what: String,
        /// The size the file asks for.
        size: u64,
        /// The most that is accepted.
        limit: u64,
    },
    /// A pickle contains something that is not plain data.
    #[error(
        "{file}: pickle refused at byte {at}: {what} is not plain data; \
         only numbers, strings, lists, dicts and NumPy arrays are read, and nothing in a pickle is ever run"
    )]
    PickleRefused {
        /// The pickle.
        file: String,
        /// The refused class or opcode, by name.
        what: String,
        /// Offset in the file.
        at: usize,
    },
    /// One image cannot be decoded; the others may be fine.
    #[error("{file}: broken image: {reason}")]
    BrokenImage {
        /// Name of the image within its source.
        file: String,
        /// What the decoder says.
        reason: String,
    },
    /// A file among the images is of a format that is not read; the others may be fine.
    #[error("{file}: is {}, which is not read; {}", format.one(), format.advice())]
    ForeignImage {
        /// Name of the file within its source.
        file: String,
        /// What it is.
        format: ForeignFormat,
    },
    /// An embedding holds a value that is not a finite number.
    #[error(
        "{file}: row {row} (class {class}), column {column} is {value}; embeddings must be finite: mend or remove the row"
    )]
    NotFinite {
        /// The embeddings file.
        file: String,
        /// Row, counted from 0.
        row: usize,
        /// Column, counted from 0.
        column: usize,
        /// Class of the row.
        class: String,
        /// The offending value.
        value: f32,
    },
    /// A source specification is not `KIND:PATH` of a known kind.
    #[error("source `{spec}`: {reason}")]
    BadSource {
        /// The specification as given.
        spec: String,
        /// What is wrong and what to write instead.
        reason: String,
    },
    /// Samples carry classes that the taxonomy does not have.
    #[error("classes of {samples} are not in the taxonomy {taxonomy}: {cause}")]
    UnknownLeaves {
        /// The source of the samples.
        samples: String,
        /// The taxonomy.
        taxonomy: String,
        /// Which classes, and those most like them.
        cause: gpn_taxonomy::TaxonomyError,
    },
    /// The class graph does not fit.
    #[error(transparent)]
    Taxonomy(#[from] gpn_taxonomy::TaxonomyError),
    /// No task of the requested shape can be drawn.
    #[error(transparent)]
    Sampler(#[from] crate::task::SamplerError),
    /// An image cannot be transformed.
    #[error(transparent)]
    Transform(#[from] crate::transform::TransformError),
    /// A synthetic image cannot be drawn.
    #[error(transparent)]
    Synthetic(#[from] crate::synthetic::SyntheticError),
    /// A thread that prepares batches has ended before its work was done.
    #[error(
        "the thread that prepares batch {batch} has stopped; this is a fault of the program, please report it"
    )]
    LoaderStopped {
        /// The batch that did not come.
        batch: u64,
    },
    /// The caller stopped the work.
    #[error("stopped before the work was done; nothing was written")]
    Interrupted,
    /// A sample was asked for in a form or at an index that the source does not have.
    #[error("{source_name}: {reason}")]
    NoSuchSample {
        /// The source's description.
        source_name: String,
        /// What was asked and what there is.
        reason: String,
    },
}

impl DataError {
    /// A system error on `path` while trying to `action`.
    pub(crate) fn io(action: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source }
    }

    /// Something sound that cannot be used.
    pub(crate) fn unfit(file: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Unfit { file: file.into(), reason: reason.into() }
    }

    /// What kind of failure it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Io { source, .. } => ErrorKind::of_io(source),
            Self::Malformed { .. } | Self::TooLarge { .. } | Self::BrokenImage { .. } => ErrorKind::Damaged,
            Self::Unfit { .. }
            | Self::NoSamples { .. }
            | Self::PickleRefused { .. }
            | Self::NotFinite { .. }
            | Self::ForeignImage { .. }
            | Self::BadSource { .. }
            | Self::UnknownLeaves { .. } => ErrorKind::BadInput,
            Self::NotABenchmark { .. } | Self::NoSuchSample { .. } => ErrorKind::NotFound,
            Self::BenchmarkExists { .. } | Self::TargetTaken { .. } | Self::Busy { .. } => {
                ErrorKind::Conflict
            }
            Self::Taxonomy(error) => error.kind(),
            Self::Sampler(error) => error.kind(),
            Self::Transform(error) => error.kind(),
            Self::Synthetic(error) => error.kind(),
            Self::Interrupted => ErrorKind::Interrupted,
            Self::LoaderStopped { .. } => ErrorKind::Bug,
        }
    }

    /// Whether it concerns one sample alone, so that the others can be used without it.
    pub fn is_of_one_sample(&self) -> bool {
        matches!(self, Self::BrokenImage { .. } | Self::ForeignImage { .. })
    }

    /// A format error in `file`.
    pub(crate) fn malformed(file: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Malformed { file: file.into(), reason: reason.into() }
    }
}
