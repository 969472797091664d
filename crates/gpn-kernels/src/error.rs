//! What can go wrong when a kernel is called.

/// Errors of this crate. Every message says what was given, what is needed and where.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum KernelError {
    /// The image is too small for the architecture's pooling.
    #[error(
        "{architecture} needs images of at least {least}x{least} pixels, got {height}x{width}: resize the images"
    )]
    ImageTooSmall {
        /// Name of the architecture.
        architecture: &'static str,
        /// Smallest height and width it takes.
        least: usize,
        /// Height given.
        height: usize,
        /// Width given.
        width: usize,
    },
    /// An architecture without layers or channels.
    #[error("{what} of the architecture must be at least 1")]
    EmptyArchitecture {
        /// Which setting is zero.
        what: &'static str,
    },
    /// A slice does not have the length its shape asks for.
    #[error("{what} has {got} values, expected {expected}")]
    Length {
        /// What the slice holds (for a tensor: its name).
        what: String,
        /// Length needed.
        expected: usize,
        /// Length given.
        got: usize,
    },
    /// A label that names no class.
    #[error("label {label} of row {row} is not below the number of classes {classes}")]
    Label {
        /// Row of the batch.
        row: usize,
        /// The label.
        label: usize,
        /// Number of classes.
        classes: usize,
    },
    /// Backward was asked for without a forward pass to go back through.
    #[error("backward called without a forward pass: call `forward` first (`infer` keeps nothing for it)")]
    NoForward,
    /// The environment variable `GPN_SIMD` asks for a path this machine or program does not have.
    #[error("GPN_SIMD={asked} is not available here: choose one of {available} or unset it")]
    Simd {
        /// Value of the variable.
        asked: String,
        /// Comma-separated names of the paths that can run.
        available: String,
    },
}

/// Fails unless `got == expected`.
pub(crate) fn check_len(what: &str, got: usize, expected: usize) -> Result<(), KernelError> {
    if got == expected { Ok(()) } else { Err(KernelError::Length { what: what.to_owned(), expected, got }) }
}
