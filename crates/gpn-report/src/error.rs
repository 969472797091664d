//! What can go wrong while showing results.

use std::path::PathBuf;

use gpn_files::ErrorKind;

/// Why a table, a figure or a page could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A file could not be written.
    #[error("cannot write {path}: {source}; check that the folder exists and has room")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A row of a table has too many or too few cells.
    #[error("table \"{table}\": row \"{row}\" has {found} cells for {expected} columns")]
    RowLength {
        /// Title of the table.
        table: String,
        /// Name of the row.
        row: String,
        /// Cells of the row.
        found: usize,
        /// Columns of the table.
        expected: usize,
    },
    /// The data of a figure contradict themselves.
    #[error("figure \"{figure}\": {what}")]
    Figure {
        /// Title of the figure.
        figure: String,
        /// Which part, and what is wrong with it.
        what: String,
    },
    /// A figure is too large for a picture.
    #[error("figure \"{figure}\" cannot be drawn at {width} x {height} pixels: choose a smaller scale")]
    PictureSize {
        /// Title of the figure.
        figure: String,
        /// Pixels across.
        width: u32,
        /// Pixels down.
        height: u32,
    },
    /// Pixels could not be packed into a PNG.
    #[error("figure \"{figure}\" cannot be written as PNG: {source}")]
    Png {
        /// Title of the figure.
        figure: String,
        /// What the encoder says.
        source: png::EncodingError,
    },
    /// Points handed to t-SNE do not form a matrix of numbers.
    #[error("t-SNE: {0}")]
    Tsne(String),
    /// Bytes of a picture are neither PNG nor JPEG.
    #[error("picture \"{0}\" is neither PNG nor JPEG: encode it as one of the two")]
    PictureFormat(String),
}

impl ReportError {
    /// What kind of failure it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Write { source, .. } => ErrorKind::of_io(source),
            Self::PictureSize { .. } => ErrorKind::NoRoom,
            Self::Tsne(_) | Self::PictureFormat(_) => ErrorKind::BadInput,
            Self::RowLength { .. } | Self::Figure { .. } | Self::Png { .. } => ErrorKind::Bug,
        }
    }
}
