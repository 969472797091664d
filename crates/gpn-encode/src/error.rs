//! What can go wrong between an encoder's file and an embedding.

use std::path::{Path, PathBuf};

use gpn_data::DataError;
use gpn_files::ErrorKind;

/// An error of an encoder, of one of its samples or of a table of embeddings.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// A sample or a file of samples cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
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
    /// A file of the encoder is damaged.
    #[error("{file}: {reason}")]
    Damaged {
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A model that is sound but no encoder for this use, or one that cannot be run.
    #[error("{file}: {reason}")]
    Unfit {
        /// The file.
        file: String,
        /// What it is, and what is needed.
        reason: String,
    },
    /// A setting that has no meaning.
    #[error("{place}: `{field}` {reason}")]
    Setting {
        /// Where the settings come from.
        place: String,
        /// The setting.
        field: &'static str,
        /// What is wrong, and what is accepted.
        reason: String,
    },
    /// One sample that cannot be encoded; the others may be fine.
    #[error("{name}: {reason}")]
    Sample {
        /// The sample.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// An encoder that is not the one that a model was made with.
    #[error(
        "encoder {found}: this is not the encoder that the model was made with ({expected}): {difference}"
    )]
    OtherEncoder {
        /// File name of the given encoder.
        found: String,
        /// File name of the encoder that is needed.
        expected: String,
        /// Where they differ.
        difference: String,
    },
    /// Embeddings that cannot be written in the asked form.
    #[error("{}: {reason}", path.display())]
    Write {
        /// The file to be written.
        path: PathBuf,
        /// Why it cannot be.
        reason: String,
    },
    /// The caller stopped the work.
    #[error("stopped before all samples were encoded")]
    Interrupted,
}

/// The result of this crate's functions.
pub type Result<T, E = EncodeError> = std::result::Result<T, E>;

impl EncodeError {
    pub(crate) fn io(action: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source }
    }

    pub(crate) fn unfit(path: &Path, reason: impl Into<String>) -> Self {
        Self::Unfit { file: path.display().to_string(), reason: reason.into() }
    }

    pub(crate) fn damaged(path: &Path, reason: impl Into<String>) -> Self {
        Self::Damaged { file: path.display().to_string(), reason: reason.into() }
    }

    /// What kind of failure it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Data(error) => error.kind(),
            Self::Io { source, .. } => ErrorKind::of_io(source),
            Self::Damaged { .. } => ErrorKind::Damaged,
            Self::Unfit { .. } | Self::Setting { .. } | Self::Sample { .. } | Self::Write { .. } => {
                ErrorKind::BadInput
            }
            Self::OtherEncoder { .. } => ErrorKind::Conflict,
            Self::Interrupted => ErrorKind::Interrupted,
        }
    }
}
