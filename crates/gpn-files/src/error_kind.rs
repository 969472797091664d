//! What kind of failure an error is.

use std::io;

use serde::{Deserialize, Serialize};

/// What kind of failure an error is, whatever crate it comes from: what a program decides by, where a person reads the
/// message. An HTTP status, an exit code or a Python exception follows from it.
///
/// ```
/// use gpn_files::ErrorKind;
///
/// assert_eq!(ErrorKind::NotFound.name(), "not_found");
/// let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
/// assert_eq!(ErrorKind::of_io(&full), ErrorKind::NoRoom);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// What the caller gave cannot be used: a wrong setting, a table of the wrong shape, a graph with a cycle.
    BadInput,
    /// Something that was named does not exist: a file, a class, a benchmark.
    NotFound,
    /// The state of the world forbids it: the target exists, another process holds the lock.
    Conflict,
    /// A file is not what it was when it was written, or ends too early.
    Damaged,
    /// Disk or memory does not suffice.
    NoRoom,
    /// The caller stopped the work.
    Interrupted,
    /// A fault of this program.
    Bug,
}

impl ErrorKind {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::BadInput,
        Self::NotFound,
        Self::Conflict,
        Self::Damaged,
        Self::NoRoom,
        Self::Interrupted,
        Self::Bug,
    ];

    /// The name in JSON: `bad_input`, `not_found`, ...
    pub fn name(self) -> &'static str {
        match self {
            Self::BadInput => "bad_input",
            Self::NotFound => "not_found",
            Self::Conflict => "conflict",
            Self::Damaged => "damaged",
            Self::NoRoom => "no_room",
            Self::Interrupted => "interrupted",
            Self::Bug => "bug",
        }
    }

    /// The kind of an error of the operating system. One that says nothing else (a path that may not be read, a name that
    /// is no file's) is bad input.
    pub fn of_io(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotFound,
            io::ErrorKind::AlreadyExists
            | io::ErrorKind::DirectoryNotEmpty
            | io::ErrorKind::ResourceBusy
            | io::ErrorKind::WouldBlock => Self::Conflict,
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => Self::Damaged,
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge
            | io::ErrorKind::OutOfMemory => Self::NoRoom,
            io::ErrorKind::Interrupted => Self::Interrupted,
            _ => Self::BadInput,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_errors_have_a_kind() {
        for (system, kind) in [
            (io::ErrorKind::NotFound, ErrorKind::NotFound),
            (io::ErrorKind::AlreadyExists, ErrorKind::Conflict),
            (io::ErrorKind::UnexpectedEof, ErrorKind::Damaged),
            (io::ErrorKind::StorageFull, ErrorKind::NoRoom),
            (io::ErrorKind::PermissionDenied, ErrorKind::BadInput),
        ] {
            assert_eq!(ErrorKind::of_io(&system.into()), kind);
        }
    }

    #[test]
    fn names_are_those_of_json() {
        for kind in ErrorKind::ALL {
            let name = serde::de::value::StrDeserializer::<serde::de::value::Error>::new(kind.name());
            assert_eq!(ErrorKind::deserialize(name).unwrap(), kind);
        }
    }
}
