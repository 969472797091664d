//! What keeps a server from starting or going on.

use std::net::SocketAddr;
use std::path::PathBuf;

use gpn::ErrorKind;

/// What keeps a server from starting or going on. What goes wrong in a request is a problem of that request alone.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A setting that cannot be used.
    #[error("{0}")]
    Settings(String),
    /// An address that others can reach, without a token.
    #[error(
        "{address} can be reached from elsewhere, and anybody could change the models; a token is needed"
    )]
    TokenMissing {
        /// The address.
        address: SocketAddr,
    },
    /// A model that cannot be served.
    #[error(transparent)]
    Model(#[from] gpn::Error),
    /// The database of a model.
    #[error("{}: {reason}", path.display())]
    Store {
        /// The database.
        path: PathBuf,
        /// What is wrong and what to do.
        reason: String,
        /// What kind of failure it is.
        kind: ErrorKind,
    },
    /// The network.
    #[error("{address}: cannot listen: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's own words.
        source: std::io::Error,
    },
    /// The system refused something else.
    #[error("cannot {action}: {source}")]
    System {
        /// What was attempted.
        action: &'static str,
        /// The system's own words.
        source: std::io::Error,
    },
}

impl ServeError {
    /// What kind of failure it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Settings(_) | Self::TokenMissing { .. } => ErrorKind::BadInput,
            Self::Model(error) => error.kind(),
            Self::Store { kind, .. } => *kind,
            Self::Listen { source, .. } | Self::System { source, .. } => ErrorKind::of_io(source),
        }
    }
}
